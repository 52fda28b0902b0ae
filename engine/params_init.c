/* First values. Element e of parameter i comes from the counter-based
 * generator at (seed, TAC_STREAM_INIT, i, e) in f64 and is rounded to f32, so
 * that it depends on neither layout, ranks nor threads; 16-bit values are
 * rounded from there, to what the working weights of an f32 model begin with.
 * Written on the host and copied, one tensor at a time. */
#include <math.h>
#include <stdlib.h>

#include "params_impl.h"
#include "tacit/half.h"
#include "tacit/pool.h"
#include "tacit/rng.h"

enum { GRAIN = 4096 }; /* elements that are worth a thread */

typedef struct init_job {
    const tac_param *q;
    tac_dtype dtype;
    tac_rng_key key;
    double bound; /* FAN_IN */
    void *out;
} init_job;

static double fan_in(const tac_param *q)
{
    double n = 1.0;

    if (q->init.value > 0.0) return q->init.value;
    for (int i = 1; i < q->ndim; ++i) n *= (double)q->shape[i];
    return n;
}

static double first_value(const init_job *j, size_t e)
{
    switch (j->q->init.kind) {
    case TAC_INIT_ZEROS: return 0.0;
    case TAC_INIT_ONES: return 1.0;
    case TAC_INIT_FAN_IN:
        return j->bound * (2.0 * tac_rng_uniform(&j->key, e) - 1.0);
    case TAC_INIT_NORMAL: return j->q->init.value * tac_rng_normal(&j->key, e);
    }
    return 0.0;
}

static void put(const init_job *j, size_t e, double v)
{
    switch (j->dtype) {
    case TAC_F64: ((double *)j->out)[e] = v; break;
    case TAC_F16: ((uint16_t *)j->out)[e] = tac_f32_to_f16((float)v); break;
    case TAC_BF16: ((uint16_t *)j->out)[e] = tac_f32_to_bf16((float)v); break;
    default: ((float *)j->out)[e] = (float)v;
    }
}

static void init_part(void *arg, size_t begin, size_t end, int part)
{
    const init_job *j = arg;

    (void)part;
    for (size_t e = begin; e < end; ++e) put(j, e, first_value(j, e));
}

static tac_status init_one(tac_params *p, size_t index, uint64_t seed,
                           void *host)
{
    const tac_device_ops *ops = tac_device_ops_of(p->dev);
    void *impl = tac_device_impl(p->dev);
    const tac_param *q = &p->list[index];
    init_job job = {.q = q, .dtype = p->dtype, .out = host};

    job.key = (tac_rng_key){seed, TAC_STREAM_INIT, index};
    job.bound = 1.0 / sqrt(fan_in(q));
    tac_pool_for(tac_context_pool(p->ctx), q->count, GRAIN, init_part, &job);
    TAC_TRY(ops->copy(impl, tac_params_value(p, index), host,
                      q->count * tac_dtype_size(p->dtype),
                      TAC_COPY_HOST_TO_DEVICE, NULL));
    return ops->queue_sync(impl, NULL);
}

tac_status tac_params_init(tac_params *p, uint64_t seed)
{
    size_t most = 1;
    tac_status s = TAC_OK;

    if (!p->laid_out)
        return tac_fail(p->ctx, TAC_ERR_STATE,
                        "parameter values: call tac_params_layout first");
    for (size_t i = 0; i < p->count; ++i)
        if (p->list[i].count > most) most = p->list[i].count;
    void *host = malloc(most * tac_dtype_size(p->dtype));
    if (host == NULL)
        return tac_fail(p->ctx, TAC_ERR_NOMEM,
                        "parameter values: no memory for %zu elements", most);
    for (size_t i = 0; i < p->count && s >= 0; ++i)
        s = init_one(p, i, seed, host);
    free(host);
    return s;
}
