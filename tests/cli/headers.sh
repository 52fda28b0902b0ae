#!/bin/bash
# Each public header compiles by itself, twice included, as strict C11 and as
# C++17, with clang. (With gcc: include_arrows.sh.) $SOURCE is the source tree.
set -euo pipefail

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
command -v clang++ >/dev/null || {
    echo "skipped: no clang (apt install clang)"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only)
for folder in base comm localsgd engine amp models data ddp; do
    flags+=("-I$source_dir/$folder/include")
done
has_mpi=0
if pkg-config --exists mpi-c 2>/dev/null; then
    has_mpi=1
    # As CMake does: MPI's own headers aren't ours to be strict about.
    for path in $(pkg-config --cflags-only-I mpi-c); do
        flags+=(-isystem "${path#-I}")
    done
fi

# check COMPILER STANDARD SUFFIX: all headers, one program each.
check() {
    local file bad=0
    for file in "$work"/*."$3"; do
        "$1" "-std=$2" "${flags[@]}" "$file" >"$work/log" 2>&1 && continue
        bad=1
        echo "FAIL: $1 -std=$2: tacit/$(basename "$file" ".$3").h"
        head -n 5 "$work/log"
    done
    return $bad
}

headers=0
failed=0
for header in "$source_dir"/*/include/tacit/*.h; do
    name=$(basename "$header" .h)
    [ "$name" != comm_mpi ] || [ "$has_mpi" = 1 ] || continue
    cat >"$work/$name.c" <<END
#include "tacit/$name.h"
#include "tacit/$name.h"
typedef int nothing_else; /* C wants a declaration */
END
    cp "$work/$name.c" "$work/$name.cpp"
    headers=$((headers + 1))
done
check clang c11 c || failed=1
check clang++ c++17 cpp || failed=1
[ "$headers" -gt 20 ] || { echo "FAIL: only $headers headers found"; exit 1; }
echo "$headers headers, C11 and C++17"
exit $failed
