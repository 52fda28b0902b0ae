/* sweep_groups.c: cases that differ in H alone are one group: one line of a
 * picture. What it looks like follows from its method and codec, so that a
 * method has the same colour in each picture. */
#include <stdlib.h>
#include <string.h>

#include "sweep_page.h"

sweep_kind tac__sweep_kind(const sweep_case *k)
{
    if (strcmp(k->sync, "none") == 0) return SWEEP_ALONE;
    if (strcmp(k->sync, "oneshot") == 0) return SWEEP_ONESHOT;
    if (strcmp(k->sync, "grad") != 0) return SWEEP_LOCAL;
    return k->accumulate > 1 ? SWEEP_ACCUMULATE : SWEEP_PER_STEP;
}

int64_t tac__sweep_interval(const sweep_case *k)
{
    switch (tac__sweep_kind(k)) {
    case SWEEP_LOCAL: return k->every;
    case SWEEP_ACCUMULATE: return k->accumulate;
    case SWEEP_PER_STEP: return 1;
    default: return 0;
    }
}

static int is_plain(const sweep_case *k)
{
    return k->compress[0] == 0 || strcmp(k->compress, "none") == 0;
}

/* ---- looks -----------------------------------------------------------------
 */

typedef struct method_look {
    const char *sync, *name;
    sweep_kind kind;
    int colour;
    tac_svg_marker marker;
} method_look;

/* Colours are indices of --tac-c; 6 is the page's ink. */
static const method_look looks[] = {
    {"grad", "per-step", SWEEP_PER_STEP, 6, TAC_SVG_DIAMOND},
    {"grad", "accumulation", SWEEP_ACCUMULATE, 1, TAC_SVG_OPEN_SQUARE},
    {"local", "local", SWEEP_LOCAL, 0, TAC_SVG_DISC},
    {"slowmo", "slowmo", SWEEP_LOCAL, 2, TAC_SVG_UP},
    {"diloco", "diloco", SWEEP_LOCAL, 3, TAC_SVG_SQUARE},
    {"streaming", "streaming", SWEEP_LOCAL, 4, TAC_SVG_DOWN},
    {"post-local", "post-local", SWEEP_LOCAL, 7, TAC_SVG_RING},
    {"oneshot", "one-shot averaging", SWEEP_ONESHOT, 5, TAC_SVG_OPEN_DIAMOND},
    {"none", "no averaging", SWEEP_ALONE, -1, TAC_SVG_OPEN_UP},
};

static const method_look *look_of(const sweep_case *k)
{
    static const method_look other = {"", "", SWEEP_LOCAL, -1,
                                      TAC_SVG_OPEN_DOWN};
    const sweep_kind kind = tac__sweep_kind(k);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (looks[i].kind == kind && strcmp(looks[i].sync, k->sync) == 0)
            return &looks[i];
    return &other;
}

/* How many codecs the method has been met with before: dashes tell them apart,
 * and the plain one is solid. */
static int codecs_before(const sweep_page *p, const sweep_group *g)
{
    int n = 0;
    if (is_plain(g->first)) return 0;
    for (const sweep_group *k = p->groups; k < g; k++)
        n += k->kind == g->kind && !is_plain(k->first) &&
             strcmp(k->first->sync, g->first->sync) == 0;
    return 1 + n;
}

/* Of the n-th codec: open for filled and the other way round, then the next
 * ones. */
static tac_svg_marker marker_of_codec(tac_svg_marker m, int n)
{
    const int kinds = TAC_SVG_RING - TAC_SVG_DISC;
    const int shape = ((int)m - TAC_SVG_DISC + n - 1) % kinds;
    return (tac_svg_marker)(TAC_SVG_DISC + shape +
                            (m < TAC_SVG_RING ? kinds : 0));
}

static void dress(const sweep_page *p, sweep_group *g)
{
    const method_look *l = look_of(g->first);
    const char *name = l->name[0] ? l->name : g->first->sync;
    g->colour = l->colour;
    g->dashed = codecs_before(p, g);
    g->marker = g->dashed ? marker_of_codec(l->marker, g->dashed) : l->marker;
    if (is_plain(g->first))
        snprintf(g->name, sizeof g->name, "%s", name);
    else
        snprintf(g->name, sizeof g->name, "%s, %s", name, g->first->compress);
}

void tac__sweep_interval_look(const sweep_page *p, int64_t every,
                              tac_svg_series *look)
{
    static const tac_svg_marker markers[] = {
        TAC_SVG_DISC,         TAC_SVG_OPEN_SQUARE, TAC_SVG_UP,
        TAC_SVG_OPEN_DIAMOND, TAC_SVG_SQUARE,      TAC_SVG_RING,
        TAC_SVG_DIAMOND,      TAC_SVG_OPEN_UP,     TAC_SVG_DOWN,
        TAC_SVG_OPEN_DOWN};
    size_t i = 0;
    while (i + 1 < p->n_intervals && p->intervals[i] != every) i++;
    const size_t last = p->n_intervals > 1 ? p->n_intervals - 1 : 1;
    *look = (tac_svg_series){
        .colour = 10 + (int)((9 * i + last / 2) / last),
        .dashed = (int)(i % 2) * (1 + (int)(i / 2 % 3)),
        .marker = markers[i % (sizeof markers / sizeof *markers)]};
}

/* ---- dealing ---------------------------------------------------------------
 */

static int same_group(const sweep_case *a, const sweep_case *b)
{
    if (tac__sweep_kind(a) != tac__sweep_kind(b)) return 0;
    if (strcmp(a->sync, b->sync) != 0) return 0;
    return is_plain(a) ? is_plain(b) : strcmp(a->compress, b->compress) == 0;
}

static sweep_group *group_for(sweep_page *p, const sweep_case *k)
{
    for (size_t i = 0; i < p->n_groups; i++)
        if (same_group(p->groups[i].first, k)) return &p->groups[i];
    sweep_group *g = &p->groups[p->n_groups++];
    g->first = k;
    g->kind = tac__sweep_kind(k);
    g->cases = calloc(p->s->n_cases, sizeof *g->cases);
    dress(p, g);
    return g;
}

/* Keeps them sorted by H. */
static void put(const sweep_page *p, sweep_group *g, size_t of)
{
    const sweep_case *cases = p->s->cases;
    const int64_t every = tac__sweep_interval(&cases[of]);
    size_t at = g->n++;
    for (; at > 0 && tac__sweep_interval(&cases[g->cases[at - 1]]) > every;
         at--)
        g->cases[at] = g->cases[at - 1];
    g->cases[at] = of;
}

static void note_interval(sweep_page *p, int64_t every)
{
    size_t at = 0;
    if (every < 1) return;
    while (at < p->n_intervals && p->intervals[at] < every) at++;
    if (at < p->n_intervals && p->intervals[at] == every) return;
    memmove(&p->intervals[at + 1], &p->intervals[at],
            (p->n_intervals - at) * sizeof *p->intervals);
    p->intervals[at] = every;
    p->n_intervals++;
}

static size_t find_per_step(const sweep_page *p)
{
    for (size_t i = 0; i < p->s->n_cases; i++)
        if (tac__sweep_kind(&p->s->cases[i]) == SWEEP_PER_STEP &&
            is_plain(&p->s->cases[i]))
            return i;
    return p->s->n_cases;
}

tac_status tac__sweep_groups(sweep_page *p)
{
    const size_t n = p->s->n_cases;
    p->groups = calloc(n + 1, sizeof *p->groups);
    p->intervals = calloc(n + 1, sizeof *p->intervals);
    if (!p->groups || !p->intervals)
        return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory for %zu cases", n);
    for (size_t i = 0; i < n; i++) {
        sweep_group *g = group_for(p, &p->s->cases[i]);
        if (!g->cases)
            return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory for %zu cases",
                            n);
        put(p, g, i);
        note_interval(p, tac__sweep_interval(&p->s->cases[i]));
    }
    p->per_step = find_per_step(p);
    return TAC_OK;
}

void tac__sweep_groups_free(sweep_page *p)
{
    for (size_t i = 0; i < p->n_groups; i++) free(p->groups[i].cases);
    free(p->groups);
    free(p->intervals);
}

/* ---- finding ---------------------------------------------------------------
 */

size_t tac__sweep_at(const sweep_page *p, const sweep_group *g, int64_t every)
{
    for (size_t i = 0; i < g->n; i++)
        if (tac__sweep_interval(&p->s->cases[g->cases[i]]) == every)
            return g->cases[i];
    return p->s->n_cases;
}

const sweep_group *tac__sweep_group_of(const sweep_page *p, size_t of)
{
    for (size_t i = 0; i < p->n_groups; i++)
        for (size_t k = 0; k < p->groups[i].n; k++)
            if (p->groups[i].cases[k] == of) return &p->groups[i];
    return NULL;
}

const sweep_group *tac__sweep_rival(const sweep_page *p, const sweep_group *g)
{
    const sweep_group *plain = NULL;
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *k = &p->groups[i];
        if (k->kind != SWEEP_ACCUMULATE) continue;
        if (strcmp(k->first->compress, g->first->compress) == 0) return k;
        if (is_plain(k->first)) plain = k;
    }
    return plain;
}
