/* Histograms of gradients by binary exponent.
 *
 * The arena passes through the host a piece at a time; threads count parts of
 * a piece into rows of their own, which are then added. Counts don't depend on
 * how the work is cut. Values are divided by the scale in f64, where f32
 * gradients keep all their bits. */
#include "underflow_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/pool.h"

enum {
    PIECE = 1 << 16, /* elements that are on the host at a time */
    GRAIN = 1 << 13  /* elements that are worth a thread */
};

typedef struct count_job {
    const tac_underflow *u;
    tac_dtype dtype;
    double inverse; /* of the scale, if that is a power of two; else 0 */
    double scale;
} count_job;

static int bin_of(double magnitude)
{
    const int e = ilogb(magnitude) - TAC_UNDERFLOW_MIN;

    if (e < 0) return 0;
    return e < TAC_UNDERFLOW_BINS ? e : TAC_UNDERFLOW_BINS - 1;
}

static void count_one(tac_underflow_row *row, const count_job *j, double g)
{
    row->count += 1;
    if (!isfinite(g)) {
        row->nonfinite += 1;
    } else if (g == 0.0) {
        row->zeros += 1;
    } else {
        const double m = fabs(g);
        row->bins[bin_of(j->inverse > 0.0 ? m * j->inverse : m / j->scale)] +=
            1;
    }
}

static void count_part(void *arg, size_t begin, size_t end, int part)
{
    const count_job *j = arg;
    tac_underflow_row *row = &j->u->partial[part];

    if (j->dtype == TAC_F64) {
        const double *g = j->u->host;
        for (size_t i = begin; i < end; ++i) count_one(row, j, g[i]);
    } else {
        const float *g = j->u->host;
        for (size_t i = begin; i < end; ++i) count_one(row, j, (double)g[i]);
    }
}

static void add_row(tac_underflow_row *to, const tac_underflow_row *from)
{
    to->count += from->count;
    to->zeros += from->zeros;
    to->nonfinite += from->nonfinite;
    for (int b = 0; b < TAC_UNDERFLOW_BINS; ++b) to->bins[b] += from->bins[b];
}

static void count_piece(tac_underflow *u, count_job *j, size_t n,
                        tac_underflow_row *to)
{
    memset(u->partial, 0, (size_t)u->threads * sizeof *u->partial);
    const int parts =
        tac_pool_for(tac_context_pool(u->ctx), n, GRAIN, count_part, j);
    for (int i = 0; i < parts; ++i) add_row(to, &u->partial[i]);
}

static tac_status observe_one(tac_underflow *u, count_job *j, size_t index,
                              tac_queue *queue)
{
    tac_device *dev = tac_params_device(u->params);
    const tac_device_ops *ops = tac_device_ops_of(dev);
    void *impl = tac_device_impl(dev);
    const size_t size = tac_dtype_size(j->dtype);
    const size_t total = tac_params_get(u->params, index)->count;
    const char *grad = tac_params_grad(u->params, index);

    for (size_t at = 0; at < total; at += PIECE) {
        const size_t n = total - at < PIECE ? total - at : PIECE;
        TAC_TRY(ops->copy(impl, u->host, grad + at * size, n * size,
                          TAC_COPY_DEVICE_TO_HOST, queue));
        TAC_TRY(ops->queue_sync(impl, queue));
        count_piece(u, j, n, &u->rows[index]);
    }
    return TAC_OK;
}

static int is_trained(const tac_params *p, size_t index)
{
    return (tac_params_get(p, index)->flags & TAC_PARAM_FROZEN) == 0;
}

tac_status tac_underflow_observe(tac_underflow *u, double grad_scale,
                                 tac_queue *queue)
{
    int exponent;
    count_job j = {u, tac_params_grad_dtype(u->params), 0.0, grad_scale};

    if (!(grad_scale > 0.0) || !isfinite(grad_scale))
        return tac_fail(u->ctx, TAC_ERR_ARG,
                        "underflow report: gradients scaled by %g; give the "
                        "loss scale, above 0 and finite",
                        grad_scale);
    if (tac_params_order(u->params) == NULL)
        return tac_fail(u->ctx, TAC_ERR_STATE,
                        "underflow report: call tac_params_layout first");
    if (frexp(grad_scale, &exponent) == 0.5) j.inverse = 1.0 / grad_scale;
    for (size_t i = 0; i < u->count; ++i)
        if (is_trained(u->params, i)) TAC_TRY(observe_one(u, &j, i, queue));
    return TAC_OK;
}

static int make_memory(tac_underflow *u)
{
    u->rows = calloc(u->count + 1, sizeof *u->rows);
    u->host = malloc(PIECE * sizeof(double));
    u->partial = calloc((size_t)u->threads, sizeof *u->partial);
    return u->rows != NULL && u->host != NULL && u->partial != NULL;
}

tac_status tac_underflow_create(tac_params *params, tac_underflow **out)
{
    tac_context *ctx = tac_device_context(tac_params_device(params));
    tac_underflow *u = calloc(1, sizeof *u);

    if (u == NULL)
        return tac_fail(ctx, TAC_ERR_NOMEM, "underflow report: no memory");
    u->params = params;
    u->ctx = ctx;
    u->count = tac_params_count(params);
    u->threads = tac_context_threads(ctx);
    if (!make_memory(u)) {
        tac_underflow_destroy(u);
        return tac_fail(ctx, TAC_ERR_NOMEM,
                        "underflow report: no memory for %zu histograms",
                        tac_params_count(params));
    }
    tac_underflow_reset(u);
    *out = u;
    return TAC_OK;
}

void tac_underflow_destroy(tac_underflow *u)
{
    if (u == NULL) return;
    free(u->rows);
    free(u->host);
    free(u->partial);
    free(u);
}

void tac_underflow_reset(tac_underflow *u)
{
    memset(u->rows, 0, u->count * sizeof *u->rows);
    for (size_t i = 0; i < u->count; ++i)
        u->rows[i].name = tac_params_get(u->params, i)->name;
}

size_t tac_underflow_rows(const tac_underflow *u)
{
    return u->count;
}

const tac_underflow_row *tac_underflow_get(const tac_underflow *u, size_t i)
{
    return i < u->count ? &u->rows[i] : NULL;
}
