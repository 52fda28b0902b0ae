/* codec_visit.c: a codec's state for checkpoints, and its statistics.
 *
 * Items, parameter by parameter in the order of names: "NAME.calls",
 * "NAME.residual" and "NAME.result" with feedback, "NAME.q" for the matrices of
 * powersgd; then the counters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"

static float *present(const tac__codec_param *p, int result)
{
    const tac__codec_set *home = p->home;
    if (!home) return result ? p->result : p->residual;
    float *old = result ? home->result.old : home->lost.old;
    return old ? old + p->at : NULL;
}

/* ---- state ----------------------------------------------------------------
 */

static tac_status visit_f32(const tac_state_visitor *v, const char *param,
                            const char *what, int ndim, const size_t *shape,
                            float *data)
{
    const size_t bytes = strlen(param) + strlen(what) + 1;
    char *name = malloc(bytes);
    if (!name) return TAC_ERR_NOMEM;
    snprintf(name, bytes, "%s%s", param, what);
    const tac_status s = tac_state_visit(v, name, TAC_F32, ndim, shape, data);
    free(name);
    return s;
}

static tac_status visit_calls(const tac_state_visitor *v, tac__codec_param *p)
{
    const size_t bytes = strlen(p->name) + sizeof ".calls";
    char *name = malloc(bytes);
    if (!name) return TAC_ERR_NOMEM;
    snprintf(name, bytes, "%s.calls", p->name);
    const tac_status s = tac_state_visit_u64(v, name, &p->calls);
    free(name);
    return s;
}

/* Warm starts are made at first use; a checkpoint has them from the first. */
static tac_status visit_q(tac_codec *c, const tac_state_visitor *v,
                          tac__codec_param *p)
{
    const size_t rank = tac__powersgd_rank(&c->spec, p->rows, p->columns);
    const size_t shape[2] = {rank, p->columns};
    if (rank == 0) return TAC_OK;
    TAC_TRY(tac__powersgd_warm(c, p));
    return visit_f32(v, p->name, ".q", 2, shape, p->q);
}

static tac_status visit_param(tac_codec *c, const tac_state_visitor *v,
                              tac__codec_param *p)
{
    TAC_TRY(visit_calls(v, p));
    for (int result = 0; result < 2; result++) {
        float *state = present(p, result);
        if (state && p->count)
            TAC_TRY(visit_f32(v, p->name, result ? ".result" : ".residual", 1,
                              &p->count, state));
    }
    return c->spec.method == &tac__codec_powersgd ? visit_q(c, v, p) : TAC_OK;
}

tac_status tac_codec_visit(tac_codec *c, const tac_state_visitor *v)
{
    if (!c) return TAC_OK;
    for (size_t i = 0; i < c->n_params; i++)
        TAC_TRY(visit_param(c, v, c->params[i]));
    tac_codec_stats *s = &c->stats;
    TAC_TRY(tac_state_visit_u64(v, "calls", &s->calls));
    TAC_TRY(tac_state_visit_u64(v, "calls_plain", &s->calls_plain));
    TAC_TRY(tac_state_visit_u64(v, "bytes_before", &s->bytes_before));
    TAC_TRY(tac_state_visit_u64(v, "bytes_after", &s->bytes_after));
    return tac_state_visit_u64(v, "calls_not_finite", &s->calls_not_finite);
}

/* ---- statistics -----------------------------------------------------------
 */

static double squares(const tac__codec_param *p)
{
    const float *x = present(p, 0);
    double sum = 0;
    for (size_t i = 0; x && i < p->count; i++) sum += (double)x[i] * x[i];
    return sum;
}

void tac_codec_stats_get(const tac_codec *c, tac_codec_stats *out)
{
    double sum = 0;
    *out = (tac_codec_stats){0};
    if (!c) return;
    *out = c->stats;
    for (size_t i = 0; i < c->n_params; i++) sum += squares(c->params[i]);
    out->residual_norm = sqrt(sum);
}
