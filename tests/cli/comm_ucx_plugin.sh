#!/bin/bash
# A program that can't find the ucx plug-in says what to do, on every rank; with
# TACIT_PLUGIN_PATH it finds it, and what it says about itself names the devices.
# $BUILD is the build folder, $SOURCE the source tree.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    exit 1
}

if grep -q '^TACIT_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt"; then
    echo "skipped: the build is sanitized"
    exit 77
fi

cat >"$work/sum.c" <<'END'
/* Two threads add 1 + 2 over ucx. */
#include <pthread.h>
#include <stdio.h>
#include "tacit/comm.h"

static tac_thread_group *group;

static void *rank_main(void *arg)
{
    const int rank = *(int *)arg;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_req *req = NULL;
    float x = (float)(rank + 1), sum = -1.0f;
    cc.rank = rank;
    cc.world = 2;
    config.transport = "ucx";
    tac_context_create(&cc, &ctx);
    const tac_status s = tac_comm_create_threads(ctx, group, rank, &config,
                                                 &comm);
    if (s == TAC_OK &&
        !tac_allreduce(comm, &x, &sum, 1, TAC_F32, TAC_SUM, NULL, &req))
        tac_wait(req, 10000);
    printf("rank %d: %s, sum %g, %s\n", rank, tac_status_name(s), sum,
           comm ? tac_comm_transport_why(comm) : "-");
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return NULL;
}

int main(void)
{
    int ranks[2] = {0, 1};
    pthread_t thread[2];
    if (tac_thread_group_create(2, &group)) return 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, rank_main, &ranks[i]);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    tac_thread_group_destroy(group);
    return 0;
}
END
cc -std=c11 -D_GNU_SOURCE -I "$SOURCE/comm/include" -I "$SOURCE/base/include" \
    "$work/sum.c" "$BUILD/comm/libtacit_comm.a" "$BUILD/base/libtacit_base.a" \
    -o "$work/sum" -lm -pthread

timeout 60 "$work/sum" >"$work/out" 2>&1 || fail "rc $?: $(cat "$work/out")"
[ "$(grep -c 'TAC_ERR_UNSUPPORTED' "$work/out")" -eq 2 ] ||
    fail "without the plug-in: $(cat "$work/out")"
[ "$(grep -c 'apt install libucx-dev' "$work/out")" -eq 1 ] ||
    fail "one rank says what to do: $(cat "$work/out")"
echo "without it: $(grep 'apt install' "$work/out")"

if [ ! -f "$BUILD/libtacit_ucx.so" ]; then
    echo "skipped: the ucx transport is not built (apt install libucx-dev)"
    exit 77
fi
TACIT_PLUGIN_PATH=$BUILD timeout 60 "$work/sum" >"$work/out" 2>&1 ||
    fail "rc $?: $(cat "$work/out")"
[ "$(grep -c 'TAC_OK, sum 3, .* through [a-z]*/' "$work/out")" -eq 2 ] ||
    fail "with the plug-in: $(cat "$work/out")"
cat "$work/out"

# It needs UCX and the C library, and nothing of ours.
needed=$(readelf -d "$BUILD/libtacit_ucx.so" |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
grep -q '^libucp' <<<"$needed" || fail "the plug-in does not need libucp?"
if grep -vE '^(libuc[pstm]|libc|libm|libpthread|ld-linux.*)\.so' <<<"$needed"; then
    fail "the plug-in needs the above"
fi
if nm -D --undefined-only "$BUILD/libtacit_ucx.so" | grep ' tac_'; then
    fail "the plug-in lacks the above"
fi
echo "ok"
