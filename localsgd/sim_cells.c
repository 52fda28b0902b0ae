/* sim_cells.c: workers that behave alike are simulated once.
 *
 * Two workers behave alike if they are equally fast and, at each level, meet
 * groups of workers that behave alike. That is the coarsest equitable
 * partition: workers are coloured by speed, then each takes a new colour from
 * its own and the set of colours in each of its groups, until no more colours
 * appear. Sets, not multisets: a group waits for its slowest, however many are
 * so slow. M log M for each round, at most levels + 1 rounds that matter.
 *
 * Jitter is drawn for each group of the simulation, so with more than one level
 * each innermost group keeps a colour of its own; at one level there is one
 * group anyway. */
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"
#include "tacit/hash.h"

typedef struct key {
    uint64_t colour;
    int64_t worker;
} key;

typedef struct painting {
    int64_t n;
    const tac__sim_cells *cells;
    uint64_t *colour, *next; /* (n) */
    uint64_t *meets;         /* (n) colour of the group at one level */
    key *keys;               /* (n) scratch */
} painting;

static int by_colour(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->colour != y->colour) return x->colour < y->colour ? -1 : 1;
    return (x->worker > y->worker) - (x->worker < y->worker);
}

static void sort_keys(painting *p, const uint64_t *colour, int64_t first,
                      int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p->keys[i] = (key){colour[first + i], first + i};
    qsort(p->keys, (size_t)n, sizeof *p->keys, by_colour);
}

/* meets[w]: a colour for the set of colours in w's group. */
static void colour_groups(painting *p, int64_t members)
{
    for (int64_t first = 0; first < p->n; first += members) {
        uint64_t h = TAC_HASH_INIT;
        sort_keys(p, p->colour, first, members);
        for (int64_t i = 0; i < members; i++)
            if (i == 0 || p->keys[i].colour != p->keys[i - 1].colour)
                h = tac_hash_u64(h, p->keys[i].colour);
        for (int64_t i = 0; i < members; i++) p->meets[first + i] = h;
    }
}

/* Numbers 0.. for equal colours, into id (n); returns how many. */
static int64_t number(painting *p, const uint64_t *colour, int32_t *id)
{
    int64_t count = 0;
    sort_keys(p, colour, 0, p->n);
    for (int64_t i = 0; i < p->n; i++) {
        if (i == 0 || p->keys[i].colour != p->keys[i - 1].colour) count++;
        id[p->keys[i].worker] = (int32_t)(count - 1);
    }
    return count;
}

static void refine(painting *p)
{
    memcpy(p->next, p->colour, (size_t)p->n * sizeof *p->next);
    for (int k = 0; k < p->cells->n_levels; k++) {
        colour_groups(p, p->cells->members[k]);
        for (int64_t w = 0; w < p->n; w++)
            p->next[w] = tac_hash_u64(p->next[w], p->meets[w]);
    }
    memcpy(p->colour, p->next, (size_t)p->n * sizeof *p->next);
}

/* Returns the number of cells; id[w] is w's. */
static int64_t paint(painting *p, int32_t *id)
{
    int64_t before = 0, count = number(p, p->colour, id);
    while (count > before) {
        before = count;
        refine(p);
        count = number(p, p->colour, id);
    }
    return count;
}

static int64_t slow_workers(const tac_sim_config *c)
{
    const int64_t n = (int64_t)(c->straggler_share * (double)c->workers + 0.5);
    if (c->straggler_factor == 1) return 0;
    return n < 1 ? 1 : n;
}

/* Spread evenly; the first worker is slow only if all are. */
static int is_slow(const tac_sim_config *c, int64_t worker)
{
    const int64_t n = slow_workers(c);
    return (worker + 1) * n / c->workers > worker * n / c->workers;
}

static void set_levels(tac__sim_cells *s, const tac_sim_config *c)
{
    s->n_levels = tac__sim_levels(c);
    s->members[0] = c->workers;
    for (int k = 0; c->method == TAC_SIM_LOCAL && k < c->localsgd->n_levels;
         k++)
        s->members[k] = c->localsgd->levels[k].ranks;
}

/* What a cell is, from any worker in it. */
static void describe(tac__sim_cells *s, const tac_sim_config *c,
                     const int32_t *id)
{
    s->ordinary = s->slow = -1;
    for (int64_t w = c->workers - 1; w >= 0; w--) {
        const int slow = is_slow(c, w);
        s->factor[id[w]] = slow ? c->straggler_factor : 1;
        *(slow ? &s->slow : &s->ordinary) = id[w];
    }
    if (s->ordinary < 0) s->ordinary = s->slow;
}

static void number_groups(painting *p, tac__sim_cells *s, const int32_t *id,
                          int32_t *group_of)
{
    for (int k = 0; k < s->n_levels; k++) {
        colour_groups(p, s->members[k]);
        s->n_groups[k] = number(p, p->meets, group_of);
        for (int64_t w = 0; w < p->n; w++) s->group[k][id[w]] = group_of[w];
    }
}

static tac_status allocate(tac__sim_cells *s)
{
    const size_t n = (size_t)s->n;
    s->factor = calloc(n, sizeof *s->factor);
    int ok = s->factor != NULL;
    for (int k = 0; k < s->n_levels; k++) {
        s->group[k] = calloc(n, sizeof *s->group[k]);
        ok = ok && s->group[k];
    }
    return ok ? TAC_OK : TAC_ERR_NOMEM;
}

static tac_status make(painting *p, const tac_sim_config *c, int each_group,
                       int32_t *id, int32_t *group_of, tac__sim_cells *s)
{
    for (int64_t w = 0; w < p->n; w++) {
        const int64_t own = each_group ? w / s->members[0] : 0;
        p->colour[w] = (uint64_t)(2 * own + is_slow(c, w));
    }
    s->n = paint(p, id);
    TAC_TRY(allocate(s));
    describe(s, c, id);
    number_groups(p, s, id, group_of);
    return TAC_OK;
}

tac_status tac__sim_cells_make(tac_context *ctx, const tac_sim_config *c,
                               int each_group, tac__sim_cells *out)
{
    const size_t n = (size_t)c->workers;
    tac__sim_cells s = {0};
    set_levels(&s, c);
    painting p = {.n = c->workers,
                  .cells = &s,
                  .colour = calloc(n, sizeof(uint64_t)),
                  .next = calloc(n, sizeof(uint64_t)),
                  .meets = calloc(n, sizeof(uint64_t)),
                  .keys = calloc(n, sizeof(key))};
    int32_t *ids = calloc(2 * n, sizeof *ids);
    tac_status status = TAC_ERR_NOMEM;
    if (p.colour && p.next && p.meets && p.keys && ids)
        status = make(&p, c, each_group && s.n_levels > 1, ids, ids + n, &s);
    free(ids);
    free(p.keys);
    free(p.meets);
    free(p.next);
    free(p.colour);
    *out = s;
    if (status >= 0) return status;
    tac__sim_cells_free(out);
    return tac_fail(ctx, status, "no memory for %lld workers",
                    (long long)c->workers);
}

void tac__sim_cells_free(tac__sim_cells *s)
{
    free(s->factor);
    for (int k = 0; k < s->n_levels; k++) free(s->group[k]);
    *s = (tac__sim_cells){0};
}
