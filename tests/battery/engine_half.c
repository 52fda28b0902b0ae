/* engine_half.c: tables of f16 and bf16, as the device builds them, against the
 * f64 reference: over the reference alone, and over the best that there is. */
#include "tac_sanitized.h"
#include "kernel_suite.h"

#include "tacit/pool.h"

static const tac_dtype types[] = {TAC_F16, TAC_BF16};

static void run_table(tac_device *dev, tac_dtype type)
{
    const tac_kernels *k = tac_device_kernels(dev, type);
    tac_context *ctx = tac_device_context(dev);
    if (!CHECK(k != NULL)) return;
    rig r = {.set = k->names,
             .type = type,
             .threads = tac_pool_size(tac_context_pool(ctx)),
             .kc = tac_device_kctx(dev, NULL),
             .oracle_kc = {.ctx = ctx},
             .k = *k,
             .o = *tac_device_kernels(dev, TAC_F64)};
    CHECK_EQ_STR(tac_device_kernels(dev, TAC_F64)->names, "ref");
    run_tests(&r);
}

static void run_device(const char *isa, int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    tac_device *dev;
    config.threads = threads;
    if (!CHECK_OK(tac_context_create(&config, &ctx))) return;
    if (CHECK_OK(tac_device_open(ctx, "cpu", isa, &dev))) {
        for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
            printf("%s %s, %d threads\n", tac_dtype_name(types[i]),
                   tac_device_kernels(dev, types[i])->names, threads);
            run_table(dev, types[i]);
        }
        tac_device_close(dev);
    }
    tac_context_destroy(ctx);
}

int main(void)
{
    run_device("ref", 2);
    if (!TESTS_SLOW) run_device(NULL, 1);
    run_device(NULL, 3);
    return tac_check_summary();
}
