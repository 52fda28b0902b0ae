/* engine_kernels.c: every kernel set in f32, over the reference, with 1 to 3
 * threads, against the f64 reference; and ranks as threads at once. */
#include "tac_sanitized.h"
#include "kernel_suite.h"

#include <pthread.h>

#include "tacit/pool.h"

/* ---------------------------------------------- ranks as threads at once */

enum { RANKS = 4, RANK_FLOATS = 3 * 64 * 32 * 9 };

/* What each rank computes, with a context and a device of its own. */
typedef struct rank {
    float *dw; /* (64,32,3,3) and twice as much of linear gradients */
    tac_status status;
} rank;

static tac_status rank_work(tac_device *dev, float *out)
{
    const tac_kernels *k = tac_device_kernels(dev, TAC_F32);
    const tac_kctx kc = tac_device_kctx(dev, NULL);
    const tac_conv2d d = {3, 8, 8, 32, 64, 3, 3, 1, 1, 8, 8};
    const tac_pool2d p = {3, 8, 8, 64, 2, 2, 4, 4};
    const size_t nx = 3 * 64 * 32, ny = 3 * 16 * 64;
    triple x = triple_random(nx, 1), w = triple_random(64 * 32 * 9, 2);
    triple y = triple_poison(ny), dy = triple_random(ny, 3);
    uint8_t *index = guarded(ny);
    tac_status s = TAC_OK;
    for (int i = 0; s >= 0 && i < 5; ++i) {
        s = k->conv2d_pool_forward(&kc, &d, &p, x.f, w.f, NULL, y.f, index);
        if (s >= 0)
            s = k->conv2d_pool_backward(&kc, &d, &p, x.f, w.f, dy.f, index, y.f,
                                        out, NULL, 0, NULL, 0);
        if (s >= 0) /* y as (24,128), x as (24,256): dw (128,256) */
            s = k->linear_backward_weights(&kc, 24, 256, 128, x.f, dy.f,
                                           out + 64 * 32 * 9, NULL, 0);
    }
    guarded_free(index);
    triple_free_all((triple[]){x, w, y, dy}, 4);
    return s;
}

static void *rank_main(void *arg)
{
    rank *r = arg;
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_device *dev = NULL;
    config.threads = 2;
    r->status = tac_context_create(&config, &ctx);
    if (r->status >= 0) r->status = tac_device_open(ctx, "cpu", NULL, &dev);
    if (r->status >= 0) r->status = rank_work(dev, r->dw);
    tac_device_close(dev);
    tac_context_destroy(ctx);
    return NULL;
}

static void test_ranks_at_once(void)
{
    rank ranks[RANKS + 1];
    pthread_t threads[RANKS];
    for (size_t i = 0; i <= RANKS; ++i)
        ranks[i].dw = guarded(RANK_FLOATS * sizeof(float));
    for (size_t i = 0; i <= RANKS; ++i)
        memset(ranks[i].dw, 0, RANK_FLOATS * sizeof(float));
    rank_main(&ranks[RANKS]); /* alone */
    for (size_t i = 0; i < RANKS; ++i)
        CHECK_EQ(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    for (size_t i = 0; i < RANKS; ++i) pthread_join(threads[i], NULL);
    for (size_t i = 0; i <= RANKS; ++i) {
        CHECK_OK(ranks[i].status);
        same_bits(ranks[i].dw, ranks[RANKS].dw, RANK_FLOATS, "ranks at once");
    }
    for (size_t i = 0; i <= RANKS; ++i) guarded_free(ranks[i].dw);
}

static void run_set(const tac_kernel_set *set, tac_context *ctx)
{
    const tac_kernel_set *ref = tac_cpu_kernel_sets()[0];
    tac_pool *pool = tac_context_pool(ctx);
    rig r = {.set = set->name,
             .type = TAC_F32,
             .threads = tac_pool_size(pool),
             .kc = {.ctx = ctx, .pool = pool},
             .oracle_kc = {.ctx = ctx},
             .k = {.struct_size = sizeof r.k, .dtype = TAC_F32},
             .o = {.struct_size = sizeof r.o, .dtype = TAC_F64}};
    tac_cpu_cache cache = {{NULL}};
    void **state = &cache.slots[set->slot];
    r.kc.cache = &cache;
    ref->apply(&r.o);
    ref->apply(&r.k);
    set->apply(&r.k);
    if (set->cache_create && !CHECK_OK(set->cache_create(ctx, state))) return;
    run_tests(&r);
    if (set->cache_destroy) set->cache_destroy(*state);
}

static void run_threads(const tac_kernel_set *set, int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    config.threads = threads;
    if (!CHECK_OK(tac_context_create(&config, &ctx))) return;
    run_set(set, ctx);
    tac_context_destroy(ctx);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    for (size_t i = 0; sets[i]; ++i) {
        if (!sets[i]->available(why, sizeof why)) {
            printf("%s: not tried: %s\n", sets[i]->name, why);
            continue;
        }
        printf("%s: %s\n", sets[i]->name, sets[i]->doc);
        for (int threads = 1; threads <= 3; threads += TESTS_SLOW ? 2 : 1)
            run_threads(sets[i], threads);
    }
    test_ranks_at_once();
    return tac_check_summary();
}
