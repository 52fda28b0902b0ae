/* comm_replay_bound.c: how little can stay exposed, given when gradients are
 * ready and how long each bucket takes. */
#include <stdlib.h>

#include "bench_stats.h"
#include "comm_replay_run.h"
#include "tacit/clock.h"

double tac__replay_bound(const double *ready_us, const double *bucket_us,
                         size_t buckets, double backward_us)
{
    double t = 0;
    for (size_t b = 0; b < buckets; b++)
        t = (t > ready_us[b] ? t : ready_us[b]) + bucket_us[b];
    return t > backward_us ? t - backward_us : 0;
}

/* When bucket b is complete: its last tensor's time. */
static double bucket_ready_us(const tac__replay_run *r,
                              const tac_bucket_view *v)
{
    double last = 0;
    for (size_t i = 0; i < v->n_params; i++)
        if (r->step.tensor[v->params[i]].ready_us > last)
            last = r->step.tensor[v->params[i]].ready_us;
    return last;
}

/* Medians over the slowest rank, after one call that plans. */
static tac_status time_case(tac__replay_run *r, tac__comm_bench *b,
                            const tac__case *k, const tac__set *set, double *us)
{
    double t[4];
    for (int i = 0; i <= r->repeats; i++) {
        b->group.barrier(b->group.state);
        const double begin = tac_clock_s();
        TAC_TRY(tac__ours_run(b, k, set));
        t[i] = tac_clock_s() - begin;
    }
    b->group.max(b->group.state, t, (size_t)r->repeats + 1);
    *us = tac__median(t + 1, (size_t)r->repeats) * 1e6;
    return TAC_OK;
}

/* With a codec of its own: the reducer's keeps its residuals. */
static tac_status time_bucket(tac__replay_run *r, const tac_bucket_view *v,
                              double *us)
{
    tac__comm_bench b = *r->b;
    const size_t bytes = v->count * sizeof(float);
    const tac__case k = {.coll = TAC_COLL_ALLREDUCE,
                         .dtype = TAC_F32,
                         .op = TAC_AVG,
                         .in_place = 1,
                         .count = v->count,
                         .bytes = bytes};
    const tac__set set = {v->buffer, v->buffer, bytes, bytes};
    *us = 0;
    if (v->count == 0) return TAC_OK;
    b.codec = NULL;
    TAC_TRY(tac__bench_agree(&b, tac__bench_codec(&b)));
    const tac_status s = time_case(r, &b, &k, &set, us);
    tac_codec_destroy(b.codec);
    return s;
}

static tac_status time_buckets(tac__replay_run *r, double *ready, double *us,
                               double *sum)
{
    const size_t n = tac_reducer_buckets(r->reducer);
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        tac_bucket_view v;
        TAC_TRY(tac_reducer_bucket(r->reducer, i, &v));
        ready[i] = bucket_ready_us(r, &v);
        TAC_TRY(time_bucket(r, &v, &us[i]));
        *sum += us[i];
    }
    return TAC_OK;
}

tac_status tac__replay_find_bound(tac__replay_run *r, tac__replay_result *out)
{
    const size_t n = out->buckets;
    double *ready = calloc(2 * n + 1, sizeof *ready), *us = ready + n, sum = 0;
    tac_status s = ready ? TAC_OK
                         : tac_fail(r->b->ctx, TAC_ERR_NOMEM,
                                    "no memory for %zu buckets", n);
    TAC_TRY(tac__bench_agree(r->b, s));
    s = time_buckets(r, ready, us, &sum);
    for (size_t i = 0; i < n && sum > 0; i++) us[i] *= out->comm_us / sum;
    out->bound_us = tac__replay_bound(ready, us, n, r->step.backward_us);
    free(ready);
    return s;
}
