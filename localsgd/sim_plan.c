/* sim_plan.c: what is sent after which step. When something is due is asked
 * from the clock that training asks; how large it is: sim_size.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim_impl.h"

/* Which unit a layer belongs to, and of which fragment that is. */
static void deal_layers(tac__sim_plan *p)
{
    const tac_sim_config *c = p->c;
    for (int64_t l = 0; l < c->layers; l++) {
        const int64_t f =
            p->localsgd ? tac_localsgd_fragment_of(p->localsgd, l, c->layers)
                        : 0;
        const int64_t u = c->sending == TAC_SIM_AFTER_STEP ? f : l;
        const double n = tac__sim_layer_params(c, l);
        p->fragment[u] = f;
        p->params[u] += n;
        p->size[f] += n;
    }
}

static tac_status allocate(tac__sim_plan *p)
{
    const size_t n = (size_t)p->units, f = (size_t)p->n_fragments;
    p->fragment = calloc(n, sizeof *p->fragment);
    p->params = calloc(n, sizeof *p->params);
    p->bits = calloc(n, sizeof *p->bits);
    p->level = calloc(n, sizeof *p->level);
    p->size = calloc(f, sizeof *p->size);
    p->share = calloc(f, sizeof *p->share);
    p->at = calloc(f, sizeof *p->at);
    p->calls = calloc(f * (size_t)p->levels, sizeof *p->calls);
    return p->fragment && p->params && p->bits && p->level && p->size &&
                   p->share && p->at && p->calls
               ? TAC_OK
               : TAC_ERR_NOMEM;
}

tac_status tac__sim_plan_make(tac_context *ctx, const tac_sim_config *c,
                              tac__sim_plan *p)
{
    *p =
        (tac__sim_plan){.c = c, .n_fragments = 1, .levels = tac__sim_levels(c)};
    if (c->method == TAC_SIM_LOCAL) p->localsgd = c->localsgd;
    if (p->localsgd && p->localsgd->fragments > 1)
        p->n_fragments = p->localsgd->fragments;
    p->units = c->sending == TAC_SIM_AFTER_STEP ? p->n_fragments : c->layers;
    if (allocate(p) < 0)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for %lld layers",
                        (long long)c->layers);
    deal_layers(p);
    if (!p->localsgd) return TAC_OK;
    TAC_TRY(tac__sim_codec(ctx, p));
    tac__clock_open(&p->clock, p->localsgd, tac__sim_model_bytes(p));
    return TAC_OK;
}

void tac__sim_plan_free(tac__sim_plan *p)
{
    tac_codec_destroy(p->codec);
    free(p->fragment);
    free(p->params);
    free(p->bits);
    free(p->level);
    free(p->size);
    free(p->share);
    free(p->at);
    free(p->calls);
    *p = (tac__sim_plan){0};
}

/* ---- attempts -------------------------------------------------------------
 */

static int level_of(const tac__sim_plan *p, const tac__due *due, int64_t f)
{
    const tac__clock *k = &p->clock;
    if (!due->any) return -1;
    if (tac__clock_is_due(k, due, k->attempts, f)) return p->levels - 1;
    return due->inner;
}

/* Fragments first, because to a codec each is one parameter. */
static void send_due(tac__sim_plan *p, const tac__due *due)
{
    p->any = due->any;
    p->delay = due->plain || due->end ? 0 : p->localsgd->delay;
    for (int64_t f = 0; f < p->n_fragments; f++) {
        p->at[f] = (signed char)level_of(p, due, f);
        if (p->at[f] >= 0) p->share[f] = tac__sim_fragment_share(p, due, f);
    }
    for (int64_t u = 0; u < p->units; u++) {
        p->level[u] = p->at[p->fragment[u]];
        p->bits[u] = p->params[u] * p->share[p->fragment[u]];
    }
    if (due->any) tac__clock_note_clean(&p->clock, due);
}

static void send_gradients(tac__sim_plan *p)
{
    p->any = 1;
    for (int64_t u = 0; u < p->units; u++)
        p->bits[u] = p->params[u] * tac__sim_plain_bits(p->c);
}

void tac__sim_plan_next(tac__sim_plan *p)
{
    const tac_sim_config *c = p->c;
    tac__clock *k = &p->clock;
    if (!p->localsgd) {
        send_gradients(p);
        return;
    }
    const double lr = c->lr ? c->lr(c->lr_arg, k->attempts + 1) : 1;
    tac__clock_tick(k, lr);
    const tac__due due = tac__clock_due(k, k->attempts);
    send_due(p, &due);
    if (due.any && !due.end && tac__clock_ends(k))
        tac__clock_next(k, lr, NAN, c->step_s * fmax(1, c->straggler_factor));
}

void tac__sim_plan_finish(tac__sim_plan *p)
{
    const tac__due due = {.any = 1, .end = 1, .inner = -1};
    p->any = 0;
    if (p->localsgd && p->clock.clean != p->clock.attempts) send_due(p, &due);
}
