/* The CPU as a device: opening it, memory, queues, events, kernel tables. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine_test.h"
#include "tacit/kernels.h"

static tac_context *quiet_context(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    config.log = eng_no_log;
    config.threads = 1;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    return ctx;
}

static tac_device *open_device(tac_context *ctx, const char *isa)
{
    tac_device *dev = NULL;
    cr_assert_eq(tac_device_open(ctx, "cpu", isa, &dev), TAC_OK);
    return dev;
}

static void expect_failure(const char *name, const char *isa, tac_status want,
                           const char *text)
{
    tac_context *ctx = quiet_context();
    tac_device *dev = NULL;
    char message[4096];
    cr_expect_eq(tac_device_open(ctx, name, isa, &dev), want);
    cr_expect_null(dev);
    tac_context_error(ctx, message, sizeof message);
    cr_expect_not_null(strstr(message, text), "\"%s\" is not in \"%s\"", text,
                       message);
    tac_context_destroy(ctx);
}

Test(engine_device, unknown_names_are_refused_with_the_choices)
{
    expect_failure("cpu", "avx3", TAC_ERR_ARG, "ref, avx2, avx512, onednn");
    expect_failure("toaster", NULL, TAC_ERR_UNSUPPORTED, "libtacit_toaster.so");
    expect_failure("../x", NULL, TAC_ERR_ARG, "no device name");
    tac_device_close(NULL);
}

/* Every entry up to the last, and names of what was applied. */
static void expect_full(const tac_kernels *k, tac_dtype dtype)
{
    void *entries[(sizeof *k - offsetof(tac_kernels, linear_forward)) /
                  sizeof(void *)];
    cr_assert_not_null(k);
    cr_expect_eq(k->dtype, dtype);
    cr_expect_eq(k->struct_size, sizeof *k);
    memcpy(entries, &k->linear_forward, sizeof entries);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i)
        cr_expect_not_null(entries[i], "entry %zu of %s is empty", i, k->names);
}

Test(engine_device, every_set_gives_full_tables)
{
    tac_context *ctx = quiet_context();
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    char why[256];
    for (size_t i = 0; sets[i]; ++i) {
        if (!sets[i]->available(why, sizeof why)) {
            expect_failure("cpu", sets[i]->name, TAC_ERR_UNSUPPORTED, why);
            continue;
        }
        tac_device *dev = open_device(ctx, sets[i]->name);
        const tac_kernels *k = tac_device_kernels(dev, TAC_F32);
        expect_full(k, TAC_F32);
        cr_expect_not_null(strstr(k->names, sets[i]->name));
        expect_full(tac_device_kernels(dev, TAC_F64), TAC_F64);
        cr_expect_str_eq(tac_device_kernels(dev, TAC_F64)->names, "ref");
        cr_expect_null(tac_device_kernels(dev, TAC_I32));
        cr_expect_null(tac_device_kernels(dev, (tac_dtype)99));
        tac_device_close(dev);
    }
    tac_context_destroy(ctx);
}

Test(engine_device, the_environment_chooses_kernels_unless_told)
{
    tac_context *ctx = quiet_context();
    setenv("TACIT_ISA", "ref", 1);
    tac_device *dev = open_device(ctx, NULL);
    cr_expect_str_eq(tac_device_kernels(dev, TAC_F32)->names, "ref");
    tac_device_close(dev);
    setenv("TACIT_ISA", "nonsense", 1);
    dev = open_device(ctx, "ref"); /* the argument wins */
    tac_device_close(dev);
    expect_failure("cpu", NULL, TAC_ERR_ARG, "nonsense");
    setenv("TACIT_ISA", "", 1); /* as if unset */
    dev = open_device(ctx, NULL);
    cr_expect_str_eq(tac_device_name(dev), "cpu");
    cr_expect_eq(tac_device_context(dev), ctx);
    tac_device_close(dev);
    unsetenv("TACIT_ISA");
    tac_context_destroy(ctx);
}

Test(engine_device, memory_is_aligned_and_failures_are_told)
{
    static const size_t sizes[] = {0, 1, 63, 4097, (2 << 20) + 1};
    tac_context *ctx = quiet_context();
    tac_device *dev = open_device(ctx, NULL);
    const tac_allocator a = tac_device_allocator(dev);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        void *p = NULL;
        cr_assert_eq(a.alloc(a.arg, sizes[i], &p), TAC_OK);
        cr_assert_not_null(p);
        cr_expect_eq((uintptr_t)p % 64, 0);
        memset(p, 1, sizes[i]);
        a.free(a.arg, p);
    }
    void *p = &ctx;
    cr_expect_eq(a.alloc(a.arg, SIZE_MAX, &p), TAC_ERR_NOMEM);
    cr_expect_eq(p, (void *)&ctx); /* untouched */
    tac_device_close(dev);
    tac_context_destroy(ctx);
}

Test(engine_device, queues_are_immediate_and_events_complete)
{
    tac_context *ctx = quiet_context();
    tac_device *dev = open_device(ctx, NULL);
    const tac_device_ops *ops = tac_device_ops_of(dev);
    void *impl = tac_device_impl(dev);
    tac_queue *q = NULL;
    tac_event *e = NULL;
    char from[5] = "data", to[5] = "";
    int done = 0;
    cr_assert_eq(ops->queue_create(impl, &q), TAC_OK);
    cr_assert_eq(ops->event_create(impl, &e), TAC_OK);
    cr_expect_eq(ops->copy(impl, to, from, 5, TAC_COPY_HOST_TO_DEVICE, q),
                 TAC_OK);
    cr_expect_str_eq(to, "data");
    cr_expect_eq(ops->fill(impl, to, 'x', 2, q), TAC_OK);
    cr_expect_str_eq(to, "xxta");
    cr_expect_eq(ops->event_record(impl, e, q), TAC_OK);
    cr_expect_eq(ops->event_wait(impl, NULL, e), TAC_OK);
    cr_expect_eq(ops->event_query(impl, e, &done), TAC_OK);
    cr_expect_eq(done, 1);
    cr_expect_eq(ops->event_sync(impl, e), TAC_OK);
    cr_expect_eq(ops->queue_sync(impl, q), TAC_OK);
    ops->event_destroy(impl, e);
    ops->queue_destroy(impl, q);
    tac_device_close(dev);
    tac_context_destroy(ctx);
}
