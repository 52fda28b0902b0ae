#!/bin/bash
# What is installed serves somebody else's project: by CMake, by pkg-config, in
# C++, with comm alone, shared and static; shows only tac_ names with a version;
# goes on working when its folder is moved; honours DESTDIR; and says what it
# lacks. $BUILD is the build folder, $SOURCE the source tree.
set -euo pipefail

build=${BUILD:?set BUILD to the build folder}
source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    exit 1
}

quietly() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        fail "$*"
    }
}

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

if [ -n "$(cached TACIT_SANITIZE)" ]; then
    echo "skipped: the build is sanitized"
    exit 77
fi
components=$(cached TACIT_COMPONENTS)
version=$(sed -n 's/^#define TAC_VERSION_STRING "\(.*\)"$/\1/p' \
    "$source_dir/base/include/tacit/export.h")
export CC
CC=$(cached CMAKE_C_COMPILER)
export CMAKE_BUILD_PARALLEL_LEVEL=2

# ---- what is there ----------------------------------------------------------

check_library() { # NAME A_SYMBOL
    local lib=$lib_dir/$1 alien soname
    soname=$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    [ "$soname" = "$1.${version%%.*}" ] || fail "$1 has the SONAME '$soname'"
    [ -f "$lib.$version" ] || fail "no $1.$version"
    nm -D --defined-only "$lib" | awk '{ print $NF }' >"$work/names"
    alien=$(grep -vE '^tac_[a-z0-9]' "$work/names" || true)
    [ -z "$alien" ] || fail "$1 shows $alien"
    grep -qx "$2@@tac_${version%.*}" "$work/names" ||
        fail "$1 does not show $2 with the version tac_${version%.*}"
}

check_libraries() {
    local needed
    check_library libtacit_comm.so tac_allreduce
    needed=$(readelf -d "$lib_dir/libtacit_comm.so" |
        sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so' || true)
    [ -z "$needed" ] || fail "libtacit_comm.so needs $needed"
    [ ! -e "$lib_dir/libtacit_localsgd.so" ] ||
        check_library libtacit_localsgd.so tac_localsgd_step
    [ ! -e "$lib_dir/libtacit_comm_mpi.so" ] ||
        check_library libtacit_comm_mpi.so tac_comm_create_mpi
    [ ! -e "$lib_dir/libtacit.so" ] || check_library libtacit.so tac_launch
}

# No file names the folder where it was built or installed.
check_paths() {
    local bad
    bad=$(grep -rlF -e "$build" -e "$prefix" "$prefix/lib"*/{cmake,pkgconfig} \
        "$prefix"/lib/*/{cmake,pkgconfig} 2>/dev/null || true)
    [ -z "$bad" ] || fail "these name a folder of this machine: $bad"
    bad=$(readelf -d "$lib_dir"/libtacit*.so 2>/dev/null |
        grep -E 'R(UN)?PATH' | grep -F "$build" || true)
    [ -z "$bad" ] || fail "a library looks into the build folder: $bad"
}

# ---- projects of somebody else ----------------------------------------------

configure() { # FOLDER COMPONENTS
    timeout 100 cmake -S "$source_dir/tests/consumer/cmake" -B "$work/$1" \
        -DCMAKE_PREFIX_PATH="$prefix" "-DWANT=$2"
}

run_all() { # PROGRAM...
    local program
    for program in "$@"; do
        timeout 30 "$program" >"$work/out" 2>&1 ||
            { cat "$work/out"; fail "$program: rc $?"; }
        grep -q '^ok' "$work/out" || fail "$program: $(cat "$work/out")"
    done
}

by_cmake() {
    local want=comm programs=(sum sum_static) program
    if [ "$components" != comm ]; then
        want="comm;localsgd"
        programs+=(local local_static)
    fi
    if [ "$components" = all ]; then
        want="$want;ddp"
        programs+=(whole)
    fi
    quietly configure all "$want"
    quietly cmake --build "$work/all"
    run_all "${programs[@]/#/$work/all/}"
    for program in comm_mpi comm_mpi_static; do
        [ -x "$work/all/$program" ] || continue
        mpirun -np 2 "$work/all/$program" >"$work/out" 2>&1 ||
            { cat "$work/out"; fail "$program: rc $?"; }
        grep -q '^2 ranks.*: 0 wrong' "$work/out" ||
            fail "$program: $(cat "$work/out")"
        programs+=("$program")
    done
    echo "by CMake: ${programs[*]}"
}

# refused COMPONENT TEXT
refused() {
    if configure "no-$1" "$1" >"$work/log" 2>&1; then
        fail "a component '$1' is found"
    fi
    tr -s '\n ' ' ' <"$work/log" | grep -qF "$2" ||
        { cat "$work/log"; fail "'$1': the message lacks '$2'"; }
}

by_pkg_config() {
    local target=all programs=(sum sum_static cxx)
    command -v pkg-config >/dev/null && command -v make >/dev/null || return 0
    if [ "$components" = comm ]; then target=comm; else programs+=(local); fi
    command -v c++ >/dev/null || fail "no C++ compiler"
    mkdir -p "$work/pc"
    PKG_CONFIG_PATH=$lib_dir/pkgconfig quietly make -C "$work/pc" -B \
        -f "$source_dir/tests/consumer/pkgconfig/Makefile" "$target"
    run_all "${programs[@]/#/$work/pc/}"
    echo "by pkg-config: ${programs[*]}"
}

prefix=$work/first
quietly cmake --install "$build" --prefix "$prefix"
lib_dir=$(dirname "$(find "$prefix" -name libtacit_comm.so)")
check_libraries
check_paths

# Moved, before anything was built against it.
mv "$prefix" "$work/moved folder"
prefix="$work/moved folder"
lib_dir=$(dirname "$(find "$prefix" -name libtacit_comm.so)")
by_cmake
refused nonsense "there are only comm, comm_mpi"
[ -e "$lib_dir/libtacit_comm_mpi.so" ] || refused comm_mpi "built without MPI"
[ ! -x "$prefix/bin/tacit_info" ] ||
    quietly "$prefix/bin/tacit_info" --version
if [ -e "$lib_dir/tacit/libtacit_ucx.so" ] && [ -x "$prefix/bin/ddp_train" ]; then
    "$prefix/bin/tacit_info" >"$work/out" 2>&1 || fail "tacit_info: rc $?"
fi

# A folder without a space: make and pkg-config don't like them.
mv "$prefix" "$work/again"
prefix=$work/again
lib_dir=$(dirname "$(find "$prefix" -name libtacit_comm.so)")
by_pkg_config

# What docs/embedding.md shows for ctypes.
if command -v python3 >/dev/null; then
    sed -n '/^```python$/,/^```$/{/^```/d;p}' "$source_dir/docs/embedding.md" \
        >"$work/snippet.py"
    LD_LIBRARY_PATH=$lib_dir timeout 30 python3 "$work/snippet.py" \
        >"$work/out" 2>&1 || { cat "$work/out"; fail "ctypes"; }
    grep -qF '[1.0, 2.0, 3.0, 4.0]' "$work/out" || fail "ctypes: $(cat "$work/out")"
    echo "by ctypes"
fi

# One component, for a package builder.
export DESTDIR=$work/stage
quietly cmake --install "$build" --component comm --prefix /opt/tacit
unset DESTDIR
prefix=$work/stage/opt/tacit
[ -f "$prefix/include/tacit/comm.h" ] || fail "DESTDIR: no comm.h"
for alien in bin include/tacit/localsgd.h include/tacit/comm_mpi.h \
    include/tacit/tape.h; do
    [ ! -e "$prefix/$alien" ] || fail "--component comm installs $alien"
done
quietly configure component comm
! grep -q '^MPI_' "$work/component/CMakeCache.txt" ||
    fail "find_package(tacit COMPONENTS comm) looks for MPI"
[ "$components" = comm ] || refused localsgd "not installed: localsgd"
echo "ok"
