/* merge.c: tensors other than parameters, at the synchronisations of fragment
 * 0. At most four collectives: averages, then variances (which need the new
 * means), then maxima of each type. Staged, and written when all has arrived.
 */
#include <string.h>

#include "impl.h"

/* Places in `merged`: averages, variances, maxima. */
static float *place(const tac_localsgd *l, const tac__tensor *t)
{
    const tac__merges *m = &l->merges;
    switch (t->t.merge) {
    case TAC_MERGE_AVERAGE: return l->merged + t->at;
    case TAC_MERGE_MOMENTS: return l->merged + m->average + t->at;
    default: return l->merged + m->average + m->moments + t->at;
    }
}

static int is_merged(const tac__tensor *t, tac_merge merge, int counter)
{
    return t->t.role != TAC_ROLE_PARAM && t->t.merge == merge &&
           (t->t.role == TAC_ROLE_COUNTER) == counter;
}

static void gather_averages(tac_localsgd *l, float by)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac__tensor *t = &l->tensors[i];
        if (is_merged(t, TAC_MERGE_AVERAGE, 0))
            tac__copy_scaled(place(l, t), t->t.data, by, t->t.count);
    }
}

/* var + (mean - common mean)^2, whose average is the variance of all. */
static void gather_variances(tac_localsgd *l, float by)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac__tensor *t = &l->tensors[i];
        if (!is_merged(t, TAC_MERGE_MOMENTS, 0)) continue;
        const tac__tensor *m = &l->tensors[t->mean];
        const float *var = t->t.data, *mean = m->t.data, *all = place(l, m);
        float *out = place(l, t);
        for (size_t k = 0; k < t->t.count; k++) {
            const float off = mean[k] - all[k];
            out[k] = (var[k] + off * off) * by;
        }
    }
}

static void gather_maxima(tac_localsgd *l)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac__tensor *t = &l->tensors[i];
        if (t->t.count == 0) continue;
        if (is_merged(t, TAC_MERGE_MAX, 0))
            memcpy(place(l, t), t->t.data, t->t.count * sizeof(float));
        if (is_merged(t, TAC_MERGE_MAX, 1))
            memcpy(l->counters + t->at, t->t.data, t->t.count * 8);
    }
}

static tac_status reduce(tac_localsgd *l, int level, void *buf, size_t n,
                         tac_dtype dtype, tac_op op)
{
    tac_req *req = NULL;
    if (n == 0) return TAC_OK;
    TAC_TRY(tac__lsgd_poison(l, tac_allreduce(l->levels[level].data, NULL, buf,
                                              n, dtype, op, NULL, &req)));
    return tac__await(l, &req);
}

static void count_roles(tac_localsgd *l)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac__tensor *t = &l->tensors[i];
        if (t->t.role == TAC_ROLE_PARAM) continue;
        if (t->t.merge == TAC_MERGE_AVERAGE ||
            t->t.merge == TAC_MERGE_MOMENTS || t->t.merge == TAC_MERGE_MAX)
            l->stats.bytes_role[t->t.role] +=
                t->t.count * tac_dtype_size(t->t.dtype);
    }
}

tac_status tac__merge_exchange(tac_localsgd *l, int level,
                               const tac__told *told)
{
    const tac__merges *m = &l->merges;
    const int even = told->merge_uniform;
    const tac_op op = even ? TAC_AVG : TAC_SUM;
    const float by = even ? 1.0f : (float)told->merge_share;
    gather_averages(l, by);
    TAC_TRY(reduce(l, level, l->merged, m->average, TAC_F32, op));
    gather_variances(l, by);
    TAC_TRY(reduce(l, level, l->merged + m->average, m->moments, TAC_F32, op));
    gather_maxima(l);
    TAC_TRY(reduce(l, level, l->merged + m->average + m->moments, m->max,
                   TAC_F32, TAC_MAX));
    TAC_TRY(reduce(l, level, l->counters, m->counters, TAC_I64, TAC_MAX));
    count_roles(l);
    return TAC_OK;
}

void tac__merge_write(tac_localsgd *l)
{
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tac__tensor *t = &l->tensors[i];
        const size_t bytes = t->t.count * tac_dtype_size(t->t.dtype);
        if (t->t.role == TAC_ROLE_PARAM || bytes == 0) continue;
        switch (t->t.merge) {
        case TAC_MERGE_RESET: memset(t->t.data, 0, bytes); break;
        case TAC_MERGE_MAX:
            memcpy(t->t.data,
                   t->t.role == TAC_ROLE_COUNTER
                       ? (const void *)(l->counters + t->at)
                       : place(l, t),
                   bytes);
            break;
        case TAC_MERGE_AVERAGE:
        case TAC_MERGE_MOMENTS: memcpy(t->t.data, place(l, t), bytes); break;
        default: break;
        }
    }
}
