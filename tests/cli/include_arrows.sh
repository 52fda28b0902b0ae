#!/bin/bash
# The arrows between the folders, checked on the sources themselves.
#
#  1. A folder includes public headers ("tacit/x.h") only of itself and of the
#     folders that its arrows reach, and private headers only of its own.
#  2. base/ and comm/ include nothing from outside but the C library, and MPI
#     in comm/, and UCX in comm/transports/ucx/ (a plug-in).
#  3. Each public header compiles alone, as C11 -pedantic and as C++17.
#
# Before the real tree, the checks are run on a made-up tree that breaks each
# rule once: a check that finds nothing there is itself broken.
#
#   include_arrows.sh [TREE]      default: $SOURCE, else the tree it lies in
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=${1-${SOURCE-$here/../..}}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# folder: the folders that it may use besides itself. "*": all with headers.
arrows() {
    cat <<'END'
base:
comm: base
localsgd: comm base
engine: base
amp: engine base
models: engine amp base
data: base
ddp: *
bench: *
examples: *
tests: *
END
}

# Folders of a tree that have public headers.
public_folders() {
    local dir
    for dir in "$1"/*/include/tacit; do
        [ -d "$dir" ] || continue
        dir=${dir%/include/tacit}
        echo "${dir##*/}"
    done
}

# Folders whose public headers folder $2 of tree $1 sees, itself first.
seen_by() {
    local line
    line=$(arrows | sed -n "s/^$2:[ ]*//p")
    case $line in
    '*') line=$(public_folders "$1" | tr '\n' ' ') ;;
    esac
    echo "$2 $line"
}

sources_of() {
    find "$1" -type f \( -name '*.c' -o -name '*.h' -o -name '*.cu' \
        -o -name '*.cpp' \) | sort
}

# Lines "file:number:<name>" or "file:number:"name"" of a folder.
includes_of() {
    sources_of "$1" | xargs -r grep -nHoE \
        '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]*[>"]' |
        sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*/:/'
}

# The folder whose public header $2 ("tacit/x.h") is; "" if there is none.
owner_of() {
    local file
    for file in "$1"/*/include/"$2"; do
        if [ -f "$file" ]; then
            file=${file#"$1"/}
            echo "${file%%/*}"
            return
        fi
    done
}

check_public() {
    local root=$1 folder=$2 place=$3 name=$4 owner
    owner=$(owner_of "$root" "$name")
    if [ -z "$owner" ]; then
        echo "$place: no folder has the public header $name"
    elif [[ " $(seen_by "$root" "$folder") " != *" $owner "* ]]; then
        echo "$place: $folder must not use $owner ($name)"
    fi
}

# A private header lies beside the file or at the top of the folder. A test may
# look inside the library that its name begins with; those of the programs that
# measure lie in bench/.
check_private() {
    local root=$1 folder=$2 place=$3 name=$4 file=${3%%:*} dir lib
    case $name in
    ../* | */../*)
        echo "$place: $name leaves its folder"
        return
        ;;
    esac
    lib=${file##*/}
    lib=${lib%%_*}
    case $lib in sweep | experiments | replay | efficiency) lib=bench ;; esac
    if [ "$folder" != tests ]; then lib=$folder; fi
    for dir in "${file%/*}" "$folder" "$lib"; do
        if [ -f "$root/$dir/$name" ]; then return; fi
    done
    echo "$place: $name is neither public nor a private header of $folder"
}

# Libraries that base/ and comm/ must do without. (The dynamic section of
# libtacit_comm.so shows the same from the other side: comm_alone.sh.)
check_outside() {
    local folder=$1 place=$2 name=$3
    case $folder in
    base | comm) ;;
    *) return ;;
    esac
    case $name in
    mpi.h) if [ "$folder" = comm ]; then return; fi ;;
    ucp/* | ucs/*) case $place in comm/transports/ucx/*) return ;; esac ;;
    zlib.h | ini.h | xxhash.h | jansson.h | hwloc.h | dnnl* | oneapi/* | \
        ucp/* | ucs/* | uct/* | cuda* | nccl.h | omp.h | criterion/*) ;;
    *) return ;;
    esac
    echo "$place: $folder must not use <$name>"
}

check_folder() {
    local root=$1 folder=$2 file line name
    while IFS=: read -r file line name; do
        file=${file#"$root"/}
        case $name in
        \"tacit/* | \<tacit/*)
            check_public "$root" "$folder" "$file:$line" "${name:1:-1}" ;;
        \"*) check_private "$root" "$folder" "$file:$line" "${name:1:-1}" ;;
        *) check_outside "$folder" "$file:$line" "${name:1:-1}" ;;
        esac
    done < <(includes_of "$root/$folder")
}

# A folder with public headers that the table above does not know would go
# unchecked.
check_includes() {
    local root=$1 folder
    while read -r folder; do
        arrows | grep -q "^$folder:" ||
            echo "$folder/: not in the table of $0; give it its arrows"
    done < <(public_folders "$root")
    while IFS=: read -r folder _; do
        if [ -d "$root/$folder" ]; then check_folder "$root" "$folder"; fi
    done < <(arrows)
}

mpi_flags() {
    pkg-config --cflags ompi-c 2>/dev/null || mpicc --showme:compile 2>/dev/null ||
        true
}

# compile_header ROOT FOLDER NAME COMPILER FLAG...: errors go to stdout.
compile_header() {
    local root=$1 folder=$2 name=$3 other dirs=()
    shift 3
    for other in $(seen_by "$root" "$folder"); do
        dirs+=(-I "$root/$other/include")
    done
    # The system's headers are not held to -pedantic.
    read -r -a system <<<"$(mpi_flags | sed 's/-I */-isystem /g')"
    # A header of macros alone is no translation unit; the typedef makes it one.
    printf '#include "%s"\ntypedef int tac_compiled;\n' "$name" | "$@" -Wall -Wextra -Werror -pedantic \
        -fsyntax-only "${dirs[@]}" "${system[@]}" - 2>&1
}

needs_mpi() { grep -qE '^ *# *include *<mpi\.h>' "$1"; }

check_headers() {
    local root=$1 folder file name out
    for folder in $(public_folders "$root"); do
        while read -r file; do
            name=${file#"$root/$folder/include/"}
            if needs_mpi "$file" && [ -z "$(mpi_flags)" ]; then
                echo "note: $name not compiled, as MPI is not here" >&2
                continue
            fi
            out=$(compile_header "$root" "$folder" "$name" gcc -std=c11 -x c) ||
                echo "$name does not compile alone as C11: $out"
            out=$(compile_header "$root" "$folder" "$name" g++ -std=c++17 \
                -x c++) || echo "$name does not compile alone as C++17: $out"
        done < <(sources_of "$root/$folder/include/tacit")
    done
}

# --- self-check ---------------------------------------------------------------

put() { mkdir -p "$(dirname "$made/$1")" && printf '%s\n' "${@:2}" >"$made/$1"; }

made_up_tree() {
    made=$1
    put base/include/tacit/status.h '#include <stddef.h>' 'size_t tac_b(void);'
    put base/private.h 'int b;'
    put base/good.c '#include "tacit/status.h"' '#include "private.h"' \
        '#include <stdio.h>'
    put comm/include/tacit/comm.h '#include "tacit/status.h"'
    put comm/algs/good.c '#include "tacit/comm.h"' '#include <tacit/status.h>'
    put engine/include/tacit/ops.h '#include "tacit/status.h"'
    put ddp/good.c '#include "tacit/comm.h"' '#include "tacit/ops.h"'
    put tests/unit/base_x.c '#include "tacit/ops.h"' '#include "private.h"'
}

break_rules() {
    made=$1
    put base/up.c '#include "tacit/comm.h"'
    put base/outside.c '#include <zlib.h>'
    put comm/across.c '  #  include   <tacit/ops.h>'
    put engine/across.c '#include "tacit/comm.h"'
    put engine/peek.c '#include "../base/private.h"'
    put engine/reach.c '#include "base/private.h"'
    put data/unknown.c '#include "tacit/nowhere.h"'
    put fresh/include/tacit/fresh.h 'int f;'
    put comm/include/tacit/alone.h 'size_t tac_alone(void);'
    put comm/include/tacit/cxx.h 'static inline int tac_x(int class)' \
        '{ return class; }'
    put comm/include/tacit/gnu.h 'struct tac_gnu { int n; int rest[0]; };'
}

must_be_found() {
    if ! grep -qF -- "$1" "$scratch/found"; then
        echo "FAIL: self-check: a tree with this fault passes: $1"
        cat "$scratch/found"
        exit 1
    fi
}

self_check() {
    made_up_tree "$scratch/tree"
    { check_includes "$scratch/tree"; check_headers "$scratch/tree"; } \
        >"$scratch/found"
    if [ -s "$scratch/found" ]; then
        echo "FAIL: self-check: a clean tree is faulted:"
        cat "$scratch/found"
        exit 1
    fi
    break_rules "$scratch/tree"
    { check_includes "$scratch/tree"; check_headers "$scratch/tree"; } \
        >"$scratch/found"
    must_be_found 'base/up.c:1: base must not use comm'
    must_be_found 'base/outside.c:1: base must not use <zlib.h>'
    must_be_found 'comm/across.c:1: comm must not use engine'
    must_be_found 'engine/across.c:1: engine must not use comm'
    must_be_found 'engine/peek.c:1: ../base/private.h leaves its folder'
    must_be_found 'engine/reach.c:1: base/private.h is neither'
    must_be_found 'data/unknown.c:1: no folder has the public header'
    must_be_found 'fresh/: not in the table'
    must_be_found 'tacit/alone.h does not compile alone as C11'
    must_be_found 'tacit/cxx.h does not compile alone as C++17'
    must_be_found 'tacit/gnu.h does not compile alone as C11'
}

self_check
{ check_includes "$tree"; check_headers "$tree"; } >"$scratch/found"
headers=$(for f in $(public_folders "$tree"); do
    sources_of "$tree/$f/include/tacit"
done | wc -l)
if [ "$headers" -eq 0 ]; then
    echo "FAIL: $tree has no public headers; is it the right folder?"
    exit 1
fi
if [ -s "$scratch/found" ]; then
    cat "$scratch/found"
    echo "FAIL: $(wc -l <"$scratch/found") lines above"
    exit 1
fi
echo "ok: arrows hold; $headers public headers compile alone, C11 and C++17"
