/* boot.c: exchanges and agreements during creation.
 *
 * Cost: an agreement is one all-gather of 256 bytes a rank; creation needs
 * about five. */
#include "boot.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"
#include "tacit/clock.h"

#define HELLO_MAGIC UINT64_C(0x7461636974636f6d)

/* A verdict as it travels: TAC__TEXT bytes. */
typedef struct verdict {
    int32_t status;
    char text[TAC__TEXT - 4];
} verdict;

static const tac__boot_ops boot_ops = {
    .exchange = tac__boot_exchange,
    .agree = tac__boot_agree,
    .note = tac__boot_note,
    .slot = tac_context_slot,
    .log = tac_log,
};

tac_status tac__boot_init(tac__boot *b, tac_context *ctx, int rank, int size,
                          const tac_oob *oob, int timeout_ms)
{
    memset(b, 0, sizeof *b);
    b->ops = &boot_ops;
    b->ctx = ctx;
    b->rank = rank;
    b->size = size;
    b->oob = oob;
    b->timeout_ms = timeout_ms;
    b->deadline_ns = tac_clock_ns() + (uint64_t)timeout_ms * 1000000u;
    b->hosts = b->processes = 1;
    b->peers = calloc((size_t)size, sizeof *b->peers);
    b->verdicts = calloc((size_t)size, TAC__TEXT);
    if (b->peers && b->verdicts) return TAC_OK;
    tac__boot_free(b);
    return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to start %d ranks", size);
}

void tac__boot_free(tac__boot *b)
{
    free(b->peers);
    free(b->verdicts);
    b->peers = NULL;
    b->verdicts = NULL;
}

tac_status tac__boot_note(tac__boot *b, tac_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->text, sizeof b->text, fmt, ap);
    va_end(ap);
    return s;
}

/* Yields at first, then sleeps 20 us to 1 ms. */
static void rest(unsigned *n)
{
    const unsigned i = (*n)++;
    if (i < 20)
        sched_yield();
    else
        tac_clock_sleep_ns(i < 70 ? 20000u : i < 270 ? 200000u : 1000000u);
}

/* "rank 3 has not called", where the bootstrap can tell. */
static void name_absent(const tac__boot *b, char *buf, size_t bytes)
{
    unsigned char absent[TAC__RANKS_SHOWN] = {0};
    char names[96];
    const int size = b->size < TAC__RANKS_SHOWN ? b->size : TAC__RANKS_SHOWN;
    int n = 0;
    for (int r = 0; r < size; r++) {
        absent[r] = tac__threads_called(b->oob, r) == 0;
        n += absent[r];
    }
    tac__name_ranks(absent, size, names, sizeof names);
    if (n > 0)
        snprintf(buf, bytes, "%s%s of %d ha%s not called",
                 n > 1 ? "ranks" : "rank", names, b->size, n > 1 ? "ve" : "s");
    else
        snprintf(buf, bytes, "not all ranks have called");
}

static tac_status report_absent(const tac__boot *b)
{
    char absent[160];
    name_absent(b, absent, sizeof absent);
    return tac_fail(b->ctx, TAC_ERR_TIMEOUT,
                    "creating a communicator of %d ranks timed out on rank %d "
                    "after %d ms: %s; look for one that is stopped, dead or "
                    "elsewhere in the program",
                    b->size, b->rank, b->timeout_ms, absent);
}

static tac_status wait_for(tac__boot *b, void *op)
{
    unsigned n = 0;
    for (;;) {
        const tac_status s = b->oob->test(b->oob->arg, op);
        if (s == TAC_OK || (s < 0 && b->reports)) return s;
        if (s == TAC_ERR_TIMEOUT) return report_absent(b);
        if (s != TAC_INPROGRESS)
            return tac_fail(b->ctx, s,
                            "the bootstrap's all-gather failed on rank %d of "
                            "%d (%s)",
                            b->rank, b->size, tac_status_text(s));
        if (tac_clock_ns() > b->deadline_ns) break;
        rest(&n);
    }
    b->oob->cancel(b->oob->arg, op);
    if (b->reports) return TAC_ERR_TIMEOUT;
    return report_absent(b);
}

tac_status tac__boot_exchange(tac__boot *b, const void *send, void *recv,
                              size_t bytes)
{
    if (b->size == 1) {
        memcpy(recv, send, bytes);
        return TAC_OK;
    }
    void *op = NULL;
    const tac_status s = b->oob->start(b->oob->arg, send, recv, bytes, &op);
    if (s < 0 && b->reports) return s;
    if (s < 0)
        return tac_fail(b->ctx, s,
                        "the bootstrap's all-gather did not start on rank %d",
                        b->rank);
    return wait_for(b, op);
}

tac_status tac__boot_agree(tac__boot *b, tac_status mine)
{
    verdict v = {.status = mine};
    verdict *all = (verdict *)(void *)b->verdicts;
    _Static_assert(sizeof(verdict) == TAC__TEXT, "a verdict fills its space");
    snprintf(v.text, sizeof v.text, "%.251s", mine < 0 ? b->text : "");
    TAC_TRY(tac__boot_exchange(b, &v, all, sizeof v));
    for (int r = 0; r < b->size; r++) {
        if (all[r].status >= 0) continue;
        all[r].text[sizeof all[r].text - 1] = '\0';
        snprintf(b->text, sizeof b->text, "rank %d: %.230s", r, all[r].text);
        return (tac_status)all[r].status;
    }
    return TAC_OK;
}

static tac__hello my_hello(const tac__boot *b, uint64_t config_hash)
{
    return (tac__hello){
        .magic = HELLO_MAGIC,
        .abi = TAC_ABI,
        .version = TAC_VERSION_MAJOR * 1000000u + TAC_VERSION_MINOR * 1000u +
                   TAC_VERSION_PATCH,
        .config = config_hash,
        .host = tac__host_id(),
        .pid = (int64_t)getpid(),
        .rank = b->rank,
        .size = b->size,
    };
}

/* All ranks see the same table, so all come to the same verdict. */
static tac_status compare(tac__boot *b)
{
    const tac__hello *p = b->peers;
    for (int r = 0; r < b->size; r++) {
        if (p[r].magic != HELLO_MAGIC || p[r].abi != p[0].abi ||
            p[r].version != p[0].version)
            return tac__boot_note(
                b, TAC_ERR_MISMATCH,
                "rank %d has another tacit than rank 0 (abi %u, version %u; "
                "abi %u, version %u): install one version everywhere",
                r, p[r].abi, p[r].version, p[0].abi, p[0].version);
        if (p[r].rank != r || p[r].size != b->size)
            return tac__boot_note(b, TAC_ERR_MISMATCH,
                                  "the all-gather put rank %d of %d at place "
                                  "%d of %d: check the out-of-band callback",
                                  p[r].rank, p[r].size, r, b->size);
        if (p[r].config != p[0].config)
            return tac__boot_note(
                b, TAC_ERR_MISMATCH,
                "rank %d has another communicator configuration than rank 0: "
                "transport, deterministic, staging_bytes, message_bytes, "
                "emulate, algorithms and check must be equal on all ranks",
                r);
    }
    return TAC_OK;
}

static void count_places(tac__boot *b)
{
    b->hosts = b->processes = 0;
    for (int r = 0; r < b->size; r++) {
        int new_host = 1, new_process = 1;
        for (int q = 0; q < r; q++) {
            if (b->peers[q].host != b->peers[r].host) continue;
            new_host = 0;
            if (b->peers[q].pid == b->peers[r].pid) new_process = 0;
        }
        b->hosts += new_host;
        b->processes += new_process;
    }
}

tac_status tac__boot_hello(tac__boot *b, uint64_t config_hash)
{
    const tac__hello mine = my_hello(b, config_hash);
    TAC_TRY(tac__boot_exchange(b, &mine, b->peers, sizeof mine));
    TAC_TRY(compare(b));
    count_places(b);
    return TAC_OK;
}
