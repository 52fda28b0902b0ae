/* engine_peak.c: the limits that engine_bench compares with.
 *
 * The peak is what a user could get from oneDNN for square f32 products by the
 * better of two ways of threading: slices of the product, each a one-threaded
 * call in a worker of our pool (which is what the kernels do), and one call
 * with oneDNN's own OpenMP team. After the latter the team's threads spin for
 * some milliseconds, so a pause follows. */
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "engine_bench.h"
#include "tacit/clock.h"
#include "tacit/pool.h"

#ifdef TAC_HAVE_ONEDNN
#include <dlfcn.h>
#include <dnnl.h>
#endif

enum {
    SIZES = 3,
    METHODS = 2,
    BF16 = METHODS,
    SERIES = METHODS + 1,
    LARGEST = 2048,
    PAUSE_NS = 60 * 1000 * 1000
};

static const size_t sizes[SIZES] = {512, 1024, 2048};
static const char *const methods[METHODS] = {"our pool", "oneDNN's team"};

struct tac__peak_meter {
    tac__bench *b;
    float *a, *w, *c;
    void *a16, *w16, *c16; /* bf16; NULL: not measured */
    size_t rounds, done;
    size_t n;                       /* of the product being timed */
    double *seconds[SIZES][SERIES]; /* a median a round */
};

tac_status tac__bench_floats(tac__bench *b, size_t n, float scale, float **out)
{
    const tac_device_ops *ops = tac_device_ops_of(b->dev);
    void *p = NULL;
    TAC_TRY(ops->alloc(tac_device_impl(b->dev), n * sizeof(float), &p));
    float *x = p;
    for (size_t i = 0; i < n; ++i) { /* cheap: arrays are large */
        const uint32_t bits = (uint32_t)i * UINT32_C(2654435769) >> 8;
        x[i] = scale * ((float)bits * 0x1p-24f - 0.5f);
    }
    *out = x;
    return TAC_OK;
}

tac_status tac__bench_values(tac__bench *b, tac_dtype type, size_t n,
                             float scale, void **out)
{
    const tac_device_ops *ops = tac_device_ops_of(b->dev);
    float *wide = NULL;
    TAC_TRY(tac__bench_floats(b, n, scale, &wide));
    if (type == TAC_F32) {
        *out = wide;
        return TAC_OK;
    }
    tac_status s =
        ops->alloc(tac_device_impl(b->dev), n * tac_dtype_size(type), out);
    if (s >= 0) s = b->k->cast(&b->kc, n, TAC_F32, wide, type, *out, 0);
    tac__bench_free(b, wide);
    return s;
}

void tac__bench_free(tac__bench *b, void *p)
{
    if (p) tac_device_ops_of(b->dev)->free(tac_device_impl(b->dev), p);
}

static tac_status make_matrices(tac__peak_meter *m, int bf16)
{
    const size_t count = (size_t)LARGEST * LARGEST;
    void **const halves[] = {&m->a16, &m->w16, &m->c16};
    for (size_t i = 0; bf16 && i < 3; ++i)
        TAC_TRY(tac__bench_values(m->b, TAC_BF16, count, 1, halves[i]));
    TAC_TRY(tac__bench_floats(m->b, count, 1, &m->a));
    TAC_TRY(tac__bench_floats(m->b, count, 1, &m->w));
    return tac__bench_floats(m->b, count, 1, &m->c);
}

tac_status tac__peak_create(tac__bench *b, size_t rounds, int bf16,
                            tac__peak_meter **out)
{
    tac__peak_meter *m = calloc(1, sizeof *m);
    double *seconds = calloc(rounds * SIZES * SERIES, sizeof *seconds);
    if (!m || !seconds) {
        free(m);
        free(seconds);
        return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for timings");
    }
    m->b = b;
    m->rounds = rounds;
    for (size_t i = 0; i < SIZES; ++i)
        for (size_t j = 0; j < SERIES; ++j)
            m->seconds[i][j] = seconds + (i * SERIES + j) * rounds;
    const tac_status s = make_matrices(m, bf16);
    if (s < 0)
        tac__peak_destroy(m);
    else
        *out = m;
    return s;
}

void tac__peak_destroy(tac__peak_meter *m)
{
    if (!m) return;
    tac__bench_free(m->b, m->a);
    tac__bench_free(m->b, m->w);
    tac__bench_free(m->b, m->c);
    tac__bench_free(m->b, m->a16);
    tac__bench_free(m->b, m->w16);
    tac__bench_free(m->b, m->c16);
    free(m->seconds[0][0]);
    free(m);
}

/* The kernel table's plain product, dx = dy w. */
static tac_status pool_product(void *arg)
{
    tac__peak_meter *m = arg;
    return m->b->k->linear_backward_data(&m->b->kc, m->n, m->n, m->n, m->a,
                                         m->w, m->c, 0);
}

static tac_status bf16_product(void *arg)
{
    tac__peak_meter *m = arg;
    return tac_device_kernels(m->b->dev, TAC_BF16)
        ->linear_backward_data(&m->b->kc, m->n, m->n, m->n, m->a16, m->w16,
                               m->c16, 0);
}

#ifdef TAC_HAVE_ONEDNN
static tac_status team_product(void *arg)
{
    tac__peak_meter *m = arg;
    const dnnl_dim_t n = (dnnl_dim_t)m->n;
    const dnnl_status_t s =
        dnnl_sgemm('N', 'N', n, n, n, 1, m->a, n, m->w, n, 0, m->c, n);
    if (s == dnnl_success) return TAC_OK;
    return tac_fail(m->b->ctx, TAC_ERR_INTERNAL, "dnnl_sgemm failed: %d",
                    (int)s);
}

static void set_team(int threads)
{
    void (*set)(int);
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!symbol) return;
    memcpy(&set, &symbol, sizeof set);
    set(threads);
}

static tac_status time_team(tac__peak_meter *m, double *seconds)
{
    set_team(tac_pool_size(m->b->kc.pool));
    const tac_status s = tac__time(team_product, m, 0.02, seconds);
    set_team(1);
    tac_clock_sleep_ns(PAUSE_NS);
    return s;
}
#else
static tac_status time_team(tac__peak_meter *m, double *seconds)
{
    (void)m;
    *seconds = 0; /* there is none */
    return TAC_OK;
}
#endif

tac_status tac__peak_round(tac__peak_meter *m)
{
    TAC_ASSERT(m->done < m->rounds);
    for (size_t i = 0; i < SIZES; ++i) {
        double *seconds = &m->seconds[i][0][m->done];
        m->n = sizes[i];
        TAC_TRY(tac__time(pool_product, m, 0.02, seconds));
        TAC_TRY(time_team(m, &m->seconds[i][1][m->done]));
        if (m->a16)
            TAC_TRY(tac__time(bf16_product, m, 0.02,
                              &m->seconds[i][BF16][m->done]));
        if (*seconds > 0.5) break; /* the reference: larger ones take minutes */
    }
    m->done++;
    return TAC_OK;
}

/* GFLOP/s of one size and method; 0: not measured. */
static double rate_of(tac__peak_meter *m, size_t size, size_t method)
{
    const double s = tac__median(m->seconds[size][method], m->done);
    const double n = (double)sizes[size];
    return s > 0 ? 2 * n * n * n / s * 1e-9 : 0;
}

void tac__peak_result(tac__peak_meter *m, tac__peaks *out)
{
    out->gflops = out->bf16_gflops = 0;
    for (size_t i = 0; i < SIZES; ++i) {
        const double bf16 = rate_of(m, i, BF16);
        if (bf16 > out->bf16_gflops) out->bf16_gflops = bf16;
        for (size_t j = 0; j < METHODS; ++j) {
            const double rate = rate_of(m, i, j);
            if (rate <= out->gflops) continue;
            out->gflops = rate;
            out->n = sizes[i];
            out->method = methods[j];
        }
    }
}

typedef struct arrays {
    tac__bench *b;
    size_t n;
    float *x, *y;
} arrays;

static void copy_range(void *arg, size_t begin, size_t end, int part)
{
    const arrays *a = arg;
    (void)part;
    memcpy(a->y + begin, a->x + begin, (end - begin) * sizeof *a->x);
}

static tac_status copy(void *arg)
{
    arrays *a = arg;
    tac_pool_for(a->b->kc.pool, a->n, 4096, copy_range, a);
    return TAC_OK;
}

static tac_status update(void *arg)
{
    arrays *a = arg;
    return a->b->k->axpy(&a->b->kc, a->n, 1, a->x, a->y);
}

static tac_status time_arrays(arrays *a, tac__peaks *out)
{
    const double seconds = a->b->opt->seconds;
    const double bytes = (double)(a->n * sizeof(float)) * 1e-9;
    double s = 0;
    TAC_TRY(tac__time(copy, a, seconds, &s));
    out->copy_gbs = 2 * bytes / s;
    TAC_TRY(tac__time(update, a, seconds, &s));
    out->update_gbs = 3 * bytes / s;
    return TAC_OK;
}

tac_status tac__peak_bandwidth(tac__bench *b, size_t bytes, tac__peaks *out)
{
    arrays a = {.b = b, .n = bytes / sizeof(float)};
    tac_status s = tac__bench_floats(b, a.n, 1, &a.x);
    if (s >= 0) s = tac__bench_floats(b, a.n, 1, &a.y);
    if (s >= 0) s = time_arrays(&a, out);
    tac__bench_free(b, a.x);
    tac__bench_free(b, a.y);
    return s;
}
