/* exchange.c: one collective of a fragment, and the way between its stretches
 * and a flat buffer. */
#include <math.h>

#include "impl.h"

tac_status tac__exchange_begin(tac_localsgd *l, int level, tac__fragment *f,
                               const float *src, float *buf, int uniform,
                               int coded, tac_req **req)
{
    tac__level *v = &l->levels[level];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.tag = (uint64_t)(f - l->fragments);
    if (coded && v->codec) {
        opt.codec = v->codec;
        opt.layout = &f->codec_layout;
    }
    *req = NULL;
    if (f->n == 0) return TAC_OK;
    return tac__lsgd_poison(l, tac_allreduce(v->data, src, buf, f->n, TAC_F32,
                                             uniform ? TAC_AVG : TAC_SUM, &opt,
                                             req));
}

tac_status tac__await(tac_localsgd *l, tac_req **req)
{
    tac_req *r = *req;
    *req = NULL;
    return tac__lsgd_poison(l, tac_wait(r, 0));
}

tac_status tac__exchange(tac_localsgd *l, int level, tac__fragment *f,
                         const float *src, float *buf, int uniform, int coded)
{
    tac_req *req = NULL;
    TAC_TRY(tac__exchange_begin(l, level, f, src, buf, uniform, coded, &req));
    return tac__await(l, &req);
}

/* ---- stretches ------------------------------------------------------------
 */

void tac__gather_params(const tac_localsgd *l, const tac__fragment *f,
                        float *buf, float by)
{
    for (size_t i = 0; i < f->stretches; i++) {
        const tac__stretch *s = &l->stretches[f->first + i];
        tac__copy_scaled(buf + (s->at - f->at), s->data, by, s->n);
    }
}

void tac__gather_delta(const tac_localsgd *l, const tac__fragment *f,
                       float *buf, float by)
{
    for (size_t i = 0; i < f->stretches; i++) {
        const tac__stretch *s = &l->stretches[f->first + i];
        tac__difference(buf + (s->at - f->at), l->anchor + s->at, s->data, by,
                        s->n);
    }
}

void tac__scatter(const tac_localsgd *l, const tac__fragment *f,
                  const float *values, double alpha)
{
    if (alpha == 1) return;
    for (size_t i = 0; i < f->stretches; i++) {
        const tac__stretch *s = &l->stretches[f->first + i];
        tac__mix(s->data, values + (s->at - f->at), (float)alpha, s->n);
    }
}
