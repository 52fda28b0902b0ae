/* reducer_verify.c: all ranks must have the same list of parameters and the
 * same configuration, which is settled before any gradient moves.
 *
 * Cost: one all-gather of 104 bytes a rank, behind a verdict. Only if the lists
 * differ follow one of 8 bytes a parameter, to find the first difference, and
 * one of its text. Every rank computes the same message from the same data;
 * rank 0 logs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/hash.h"
#include "agree.h"
#include "reducer_impl.h"

enum { TEXT = 192 };

/* In the order of comparison: what decides most comes first. */
enum {
    CARD_PARAMS,
    CARD_MEMORY,
    CARD_FIRST_LIMIT,
    CARD_LAST_LIMIT,
    CARD_LIMITS,
    CARD_LIMITS_HASH,
    CARD_ORDER,
    CARD_FIND_UNUSED,
    CARD_NO_REBUILD,
    CARD_CHECK_NAN,
    CARD_JOIN,
    CARD_SHOWN, /* those above have a text */
    CARD_LIST = CARD_SHOWN,
    CARD_LAYOUT,
    CARD_COUNT
};

static const char *const shown[CARD_SHOWN] = {
    "parameters",
    "gradients in the caller's memory (0: in the reducer's)",
    "bytes as the limit of the first bucket",
    "bytes as the limit of the last buckets",
    "bucket limits",
    "as hash of the bucket limits",
    "as order",
    "as find_unused",
    "as no_rebuild",
    "as check_nan",
    "as join",
};

static void fill_card(const tac_reducer *r, uint64_t card[CARD_COUNT])
{
    const tac_reducer_config *c = &r->config;
    uint64_t list = TAC_HASH_INIT, limits = TAC_HASH_INIT;

    for (size_t i = 0; i < r->n; ++i)
        list = tac_hash_u64(list, r->params[i].hash);
    for (size_t i = 0; i < c->n_limits; ++i)
        limits = tac_hash_u64(limits, r->limits[i]);
    card[CARD_PARAMS] = r->n;
    card[CARD_MEMORY] = !r->own_memory;
    card[CARD_FIRST_LIMIT] = r->limits[0];
    card[CARD_LAST_LIMIT] = r->limits[c->n_limits - 1];
    card[CARD_LIMITS] = c->n_limits;
    card[CARD_LIMITS_HASH] = limits;
    card[CARD_ORDER] = (uint64_t)c->order;
    card[CARD_FIND_UNUSED] = c->find_unused != 0;
    card[CARD_NO_REBUILD] = c->no_rebuild != 0;
    card[CARD_CHECK_NAN] = c->check_nan != 0;
    card[CARD_JOIN] = c->join != 0;
    card[CARD_LIST] = list;
    card[CARD_LAYOUT] = r->layout.hash;
}

static tac_status mismatch(tac_reducer *r, const char *text)
{
    return r->rank ? tac_fail_quiet(r->ctx, TAC_ERR_MISMATCH, "%s", text)
                   : tac_fail(r->ctx, TAC_ERR_MISMATCH, "%s", text);
}

/* The lowest rank whose value at `cards[field]` is not rank 0's, or 0. */
static int odd_rank(const tac_reducer *r, const uint64_t *cards, size_t stride,
                    size_t field)
{
    for (int q = 1; q < r->world; ++q)
        if (cards[(size_t)q * stride + field] != cards[field]) return q;
    return 0;
}

static tac_status value_differs(tac_reducer *r, const uint64_t *cards,
                                int field, int q)
{
    char text[512];
    snprintf(text, sizeof text,
             "reducer: rank %d has %llu %s, rank 0 has %llu; give every rank "
             "the same model and options",
             q,
             (unsigned long long)cards[(size_t)q * CARD_COUNT + (size_t)field],
             shown[field], (unsigned long long)cards[field]);
    return mismatch(r, text);
}

static tac_status describe(tac_reducer *r, size_t i, int q)
{
    char mine[TEXT] = {0}, text[3 * TEXT];
    char *all = calloc((size_t)r->world, TEXT);
    TAC_TRY(tac__comm_agree(r->comm, all ? TAC_OK : TAC_ERR_NOMEM,
                            "reducer: out of memory at the comparison"));
    snprintf(mine, sizeof mine, "'%.*s' %s", 90, r->params[i].name,
             r->params[i].shape);
    tac_status s = tac__comm_exchange(r->comm, mine, all, TEXT);
    if (!s) {
        snprintf(text, sizeof text,
                 "reducer: parameter %zu: rank 0 has %s, rank %d has %s; give "
                 "every rank the same model",
                 i, all, q, all + (size_t)q * TEXT);
        s = mismatch(r, text);
    }
    free(all);
    return s;
}

/* Equal numbers of parameters, but some of them differ. */
static tac_status list_differs(tac_reducer *r)
{
    uint64_t *mine = malloc((r->n + 1) * sizeof *mine);
    uint64_t *all = calloc((r->n + 1) * (size_t)r->world, sizeof *all);
    tac_status s = tac__comm_agree(
        r->comm, mine && all ? TAC_OK : TAC_ERR_NOMEM,
        "reducer: no memory to compare lists of parameters that differ");
    for (size_t i = 0; i < r->n && !s; ++i) mine[i] = r->params[i].hash;
    if (!s) s = tac__comm_exchange(r->comm, mine, all, r->n * sizeof *mine);
    for (size_t i = 0; i < r->n && !s; ++i) {
        const int q = odd_rank(r, all, r->n, i);
        if (q) s = describe(r, i, q);
    }
    free(mine);
    free(all);
    return s ? s
             : mismatch(r, "reducer: the ranks' lists of parameters differ");
}

static tac_status compare(tac_reducer *r, const uint64_t *cards)
{
    char text[256];
    for (int f = 0; f < CARD_SHOWN; ++f) {
        const int q = odd_rank(r, cards, CARD_COUNT, (size_t)f);
        if (q) return value_differs(r, cards, f, q);
    }
    if (odd_rank(r, cards, CARD_COUNT, CARD_LIST)) return list_differs(r);
    const int q = odd_rank(r, cards, CARD_COUNT, CARD_LAYOUT);
    if (!q) return TAC_OK;
    snprintf(text, sizeof text,
             "reducer: rank %d's gradients lie differently in memory than rank "
             "0's, so that their buckets differ; lay out the arenas alike",
             q);
    return mismatch(r, text);
}

tac_status tac__reducer_verify(tac_reducer *r)
{
    uint64_t mine[CARD_COUNT];
    if (r->world == 1) return TAC_OK;
    uint64_t *all = calloc((size_t)r->world, sizeof mine);
    tac_status s = tac__comm_agree(r->comm, all ? TAC_OK : TAC_ERR_NOMEM,
                                   "reducer: out of memory at the comparison");
    fill_card(r, mine);
    if (!s) s = tac__comm_exchange(r->comm, mine, all, sizeof mine);
    if (!s) s = compare(r, all);
    free(all);
    return s;
}
