#!/bin/bash
# comm/ alone: with base/, without MPI and everything else, it builds into
# libtacit_comm.so, which needs only libc, libm and pthread, exports only tac_
# names, and serves a program that knows nothing else of tacit.
set -euo pipefail

source_dir=${SOURCE-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    exit 1
}

quietly() {
    if ! timeout 250 "$@" >"$work/log" 2>&1; then
        tail -n 40 "$work/log"
        fail "$*"
    fi
}

build_library() {
    local generator=()
    command -v ninja >/dev/null && generator=(-G Ninja)
    quietly cmake -S "$source_dir" -B "$work/build" "${generator[@]}" \
        -DTACIT_COMPONENTS=comm -DTACIT_WITH_MPI=OFF -DTACIT_TESTS=OFF \
        -DCMAKE_BUILD_TYPE=Debug
    quietly cmake --build "$work/build" -j 2 --target tacit_comm_shared
    library=$(find "$work/build" -name 'libtacit_comm.so' | head -n 1)
    [ -n "$library" ] || fail "no libtacit_comm.so in the build folder"
}

check_needed() {
    local needed name count=0
    needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    while read -r name; do
        count=$((count + 1))
        case $name in
        libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | \
            ld-linux*.so.*) ;;
        *) fail "libtacit_comm.so needs $name" ;;
        esac
    done <<<"$needed"
    # No line at all means that the tool was misread, not that all is well.
    [ "$count" -ge 1 ] || fail "readelf lists nothing that the library needs"
    echo "needs: ${needed//$'\n'/ }"
}

check_symbols() {
    local names alien
    names=$(nm -D --defined-only "$library" | awk '{ print $NF }' |
        sed 's/@.*//')
    grep -qx tac_allreduce <<<"$names" || fail "tac_allreduce is not exported"
    alien=$(grep -vE '^tac_' <<<"$names" || true)
    [ -z "$alien" ] || fail "exports that do not begin with tac_: $alien"
    echo "exports: $(wc -l <<<"$names") names, all tac_"
}

# The library resolves all that it uses by itself.
check_undefined() {
    local lost
    lost=$(nm -D --undefined-only "$library" | awk '{ print $NF }' |
        grep '^tac_' || true)
    [ -z "$lost" ] || fail "the library lacks its own: $lost"
}

write_program() {
    cat >"$work/sum.c" <<'END'
/* Four threads add 1 + 2 + 3 + 4. */
#include <pthread.h>
#include <stdio.h>
#include "tacit/comm.h"

static tac_thread_group *group;

static void *rank_main(void *arg)
{
    const int rank = *(int *)arg;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_req *req = NULL;
    float x = (float)(rank + 1), sum = -1.0f;
    int ok = !tac_context_create(NULL, &ctx) &&
             !tac_comm_create_threads(ctx, group, rank, NULL, &comm) &&
             !tac_allreduce(comm, &x, &sum, 1, TAC_F32, TAC_SUM, NULL, &req) &&
             !tac_wait(req, 10000) && sum == 10.0f;

    printf("rank %d of %d: %g\n", rank, comm ? tac_comm_size(comm) : 0, sum);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return ok ? NULL : arg;
}

int main(void)
{
    int ranks[4] = {0, 1, 2, 3}, bad = 0;
    pthread_t threads[4];

    if (tac_thread_group_create(4, &group)) return 1;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, rank_main, &ranks[i]);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        bad += result != NULL;
    }
    tac_thread_group_destroy(group);
    return bad ? 1 : 0;
}
END
}

use_library() {
    write_program
    quietly gcc -std=c11 -Wall -Wextra -Werror -o "$work/sum" "$work/sum.c" \
        -I "$source_dir/comm/include" -I "$source_dir/base/include" \
        -L "${library%/*}" -Wl,-rpath,"${library%/*}" -ltacit_comm -pthread
    timeout 60 "$work/sum" >"$work/out" || {
        cat "$work/out"
        fail "a program that links libtacit_comm.so alone: rc $?"
    }
    [ "$(grep -c ': 10$' "$work/out")" -eq 4 ] || fail "$(cat "$work/out")"
    echo "a program of four ranks works with it"
}

build_library
check_needed
check_symbols
check_undefined
use_library
echo "ok"
