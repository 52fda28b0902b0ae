/* gemm.c: a row-major matrix product cut among the pool.
 *
 * Each worker calls dnnl_sgemm with one thread on a slice of columns (which is
 * also a slice of B, so the slices share least) or, where columns are few, of
 * rows. Bias and ReLU follow while the slice is still in the cache. */
#include <stdatomic.h>

#include "cpu/onednn/onednn.h"
#include "tacit/pool.h"

enum {
    COLUMNS = 16,    /* slices of columns are multiples: whole cache lines */
    ROWS = 8,        /* slices of rows are multiples */
    WORTH = 1 << 18, /* multiplications below which one thread does it all */
};

typedef struct gemm_call {
    const tac__gemm *g;
    const tac__onednn *o;
    _Atomic int failed; /* a dnnl_status_t */
} gemm_call;

static void finish(const tac__gemm *g)
{
    for (size_t i = 0; i < g->m; ++i) {
        float *row = g->c + i * g->ldc;
        if (g->bias)
            for (size_t j = 0; j < g->n; ++j) row[j] += g->bias[j];
        if (g->act == TAC_ACT_RELU)
            for (size_t j = 0; j < g->n; ++j) row[j] = row[j] > 0 ? row[j] : 0;
    }
}

static void run_slice(gemm_call *call, const tac__gemm *g)
{
    const int before = tac__omp_enter(&call->o->omp);
    const dnnl_status_t s =
        dnnl_sgemm(g->ta, g->tb, (dnnl_dim_t)g->m, (dnnl_dim_t)g->n,
                   (dnnl_dim_t)g->k, 1, g->a, (dnnl_dim_t)g->lda, g->b,
                   (dnnl_dim_t)g->ldb, g->beta, g->c, (dnnl_dim_t)g->ldc);
    tac__omp_leave(&call->o->omp, before);
    if (s != dnnl_success) atomic_store(&call->failed, (int)s);
    if (g->bias || g->act != TAC_ACT_NONE) finish(g);
}

static void run_columns(void *arg, size_t begin, size_t end, int part)
{
    gemm_call *call = arg;
    tac__gemm g = *call->g;
    (void)part;
    g.n = end - begin;
    g.b += g.tb == 'T' ? begin * g.ldb : begin;
    g.c += begin;
    if (g.bias) g.bias += begin;
    run_slice(call, &g);
}

static void run_rows(void *arg, size_t begin, size_t end, int part)
{
    gemm_call *call = arg;
    tac__gemm g = *call->g;
    (void)part;
    g.m = end - begin;
    g.a += g.ta == 'T' ? begin : begin * g.lda;
    g.c += begin * g.ldc;
    run_slice(call, &g);
}

static int is_small(const tac__gemm *g)
{
    return (double)g->m * (double)g->n * (double)g->k < WORTH;
}

tac_status tac__onednn_gemm(const tac_kctx *kc, const tac__gemm *g)
{
    gemm_call call = {.g = g, .o = kc->cache};
    const size_t threads = (size_t)tac_pool_size(kc->pool);
    if (is_small(g))
        run_slice(&call, g);
    else if (g->n >= 2 * COLUMNS * threads || g->n >= g->m)
        tac_pool_for(kc->pool, g->n, COLUMNS, run_columns, &call);
    else
        tac_pool_for(kc->pool, g->m, ROWS, run_rows, &call);
    const int failed = atomic_load(&call.failed);
    if (failed == dnnl_success) return TAC_OK;
    return tac__onednn_fail(kc->cache, (dnnl_status_t)failed,
                            "a matrix product");
}
