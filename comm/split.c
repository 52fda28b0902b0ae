/* split.c: a communicator's ranks divided by color.
 *
 * The groups make their communicators at the same time, each by the usual
 * creation, whose all-gathers travel in all-gathers of the parent: a rank takes
 * its group's part out of it. As groups may need different numbers of rounds,
 * each rank goes on with empty rounds until all say that they are done; the
 * last round also carries everybody's verdict, so a split that failed for one
 * group has failed for all. Cost: about eight all-gathers of 568 bytes a rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_impl.h"

#define CARGO 560u

typedef struct packet {
    int32_t done, status;
    unsigned char cargo[CARGO];
} packet;

typedef struct split {
    tac_comm *parent;
    const tac_comm_config *config; /* the children's */
    tac_oob carrier;               /* over the parent */
    int size, rank, *members;      /* of my group: ranks in the parent */
    packet mine, *all;
    void *op, *recv;
    size_t bytes;
    uint64_t seq; /* of the parent's operations when it was called */
} split;

static tac_status start(void *arg, const void *send, void *recv, size_t bytes,
                        void **op)
{
    split *s = arg;
    if (bytes > CARGO) return TAC_ERR_INTERNAL;
    memset(&s->mine, 0, sizeof s->mine);
    memcpy(s->mine.cargo, send, bytes);
    s->recv = recv;
    s->bytes = bytes;
    *op = s;
    return s->carrier.start(s->carrier.arg, &s->mine, s->all, sizeof s->mine,
                            &s->op);
}

static tac_status test(void *arg, void *op)
{
    split *s = arg;
    (void)op;
    const tac_status st = s->carrier.test(s->carrier.arg, s->op);
    if (st != TAC_OK) return st;
    for (int i = 0; i < s->size; i++)
        memcpy((char *)s->recv + (size_t)i * s->bytes,
               s->all[s->members[i]].cargo, s->bytes);
    return TAC_OK;
}

static void cancel(void *arg, void *op)
{
    split *s = arg;
    (void)op;
    s->carrier.cancel(s->carrier.arg, s->op);
}

/* Empty rounds until all are done; then the worst verdict. */
static tac_status finish(tac__boot *b, split *s, tac_status mine)
{
    for (;;) {
        int all_done = 1;
        tac_status worst = TAC_OK;
        s->mine = (packet){.done = 1, .status = mine};
        TAC_TRY(tac__boot_exchange(b, &s->mine, s->all, sizeof s->mine));
        for (int r = 0; r < b->size; r++) {
            all_done &= s->all[r].done;
            if (s->all[r].status < 0 && worst == TAC_OK)
                worst = (tac_status)s->all[r].status;
        }
        if (all_done) return worst;
    }
}

typedef struct place {
    int32_t color, key, rank;
} place;

static int by_key(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void find_group(split *s, place *all, int color)
{
    const int me = s->parent->rank;
    int n = 0;
    for (int r = 0; r < s->parent->size; r++)
        if (all[r].color == color) all[n++] = all[r];
    qsort(all, (size_t)n, sizeof *all, by_key);
    s->size = n;
    for (int i = 0; i < n; i++) {
        s->members[i] = all[i].rank;
        if (all[i].rank == me) s->rank = i;
    }
}

/* A child writes its flight recorder beside its parent's. */
static void name_dump(const split *s, int color, char *buf, size_t bytes,
                      tac_comm_config *config)
{
    if (!config->dump) return;
    snprintf(buf, bytes, "%s.split%llu-%d", config->dump,
             (unsigned long long)s->seq, color);
    config->dump = buf;
}

static tac_status make_child(split *s, int color, tac_comm **out)
{
    char dump[512];
    tac_comm *p = s->parent;
    const tac_oob oob = {sizeof oob, start, test, cancel, s};
    tac_comm_config config = *s->config;
    if (color < 0) return TAC_OK;
    name_dump(s, color, dump, sizeof dump, &config);
    /* The parent may have fallen back; the child chooses anew. */
    return tac__comm_create(p->ctx, s->rank, s->size, &oob, p->offers,
                            p->n_offers, &config, p, out);
}

/* For messages: without memory they name the child's own ranks. */
static void name_roots(const split *s, tac_comm *child)
{
    const int *of = s->parent->roots;
    int same = !of;
    if (!child) return;
    for (int i = 0; i < s->size; i++) same &= s->members[i] == i;
    if (same) return;
    child->roots = calloc((size_t)s->size, sizeof *child->roots);
    for (int i = 0; child->roots && i < s->size; i++)
        child->roots[i] = of ? of[s->members[i]] : s->members[i];
}

static tac_status run(tac__boot *b, split *s, place mine, tac_comm **child)
{
    const size_t n = (size_t)s->parent->size;
    place *all = calloc(n, sizeof *all);
    s->members = calloc(n, sizeof *s->members);
    s->all = calloc(n, sizeof *s->all);
    tac_status st = TAC_OK;
    if (!all || !s->members || !s->all)
        st = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a split");
    st = tac__boot_agree(b, st);
    if (st == TAC_OK) st = tac__boot_exchange(b, &mine, all, sizeof mine);
    if (st == TAC_OK) {
        find_group(s, all, mine.color);
        st = finish(b, s, make_child(s, mine.color, child));
        name_roots(s, *child);
    }
    free(all);
    free(s->members);
    free(s->all);
    return st;
}

tac_status tac__comm_split(tac_comm *c, int color, int key,
                           const tac_comm_config *config, tac_comm **out)
{
    tac__boot b;
    tac_comm *child = NULL;
    split s = {.parent = c,
               .config = config,
               .carrier = tac__oob_over_comm(c),
               .seq = c->next_seq};
    TAC_TRY(tac__comm_status(c));
    TAC_TRY(tac__boot_init(&b, c->ctx, c->rank, c->size, &s.carrier,
                           c->config.timeout_ms));
    b.reports = 1;
    const place mine = {color < 0 ? -1 : color, key, c->rank};
    const tac_status st = run(&b, &s, mine, &child);
    tac__boot_free(&b);
    if (st < 0) {
        tac_comm_destroy(child);
        return st;
    }
    *out = child;
    return TAC_OK;
}

tac_status tac_comm_split(tac_comm *c, int color, int key, tac_comm **out)
{
    return tac_comm_split_staging(c, color, key, 0, out);
}

tac_status tac_comm_split_staging(tac_comm *c, int color, int key,
                                  size_t staging_bytes, tac_comm **out)
{
    tac_comm_config config = c->config;
    if (staging_bytes) config.staging_bytes = staging_bytes;
    TAC_TRY(tac__comm_split(c, color, key, &config, out));
    if (*out) tac__engine_adopt(c->engine, c, *out);
    return TAC_OK;
}
