/* set.c: the oneDNN kernels as a set; without oneDNN, the reason. */
#include <stdio.h>

#include "cpu/kernel_sets.h"

#ifdef TAC_HAVE_ONEDNN
#include "cpu/onednn/onednn.h"

static int available(char *why, size_t bytes)
{
    (void)why;
    (void)bytes;
    return 1;
}

#define APPLY(name, table)                                                     \
    do {                                                                       \
        (table)->linear_forward = tac__onednn_linear_forward_##name;           \
        (table)->linear_backward_data =                                        \
            tac__onednn_linear_backward_data_##name;                           \
        (table)->linear_backward_weights =                                     \
            tac__onednn_linear_backward_weights_##name;                        \
        (table)->conv2d_forward = tac__onednn_conv_forward_##name;             \
        (table)->conv2d_backward_data = tac__onednn_conv_backward_data_##name; \
        (table)->conv2d_backward_weights =                                     \
            tac__onednn_conv_backward_weights_##name;                          \
        (table)->conv2d_pool_forward = tac__onednn_conv_pool_forward_##name;   \
        (table)->conv2d_pool_backward = tac__onednn_conv_pool_backward_##name; \
    } while (0)

/* 1 if oneDNN may use AVX512-BF16 (which AMX includes). Without, it emulates
 * bf16, slower than f32. */
static int has_bf16(void)
{
    const unsigned have = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned want = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
    return (have & want) == want;
}

static void apply(tac_kernels *table)
{
    if (table->dtype == TAC_F32)
        APPLY(f32, table);
    else if (table->dtype == TAC_BF16 && has_bf16())
        APPLY(bf16, table);
}

const tac_kernel_set tac__onednn_set = {
    .name = "onednn",
    .doc = "matrix products and convolutions by oneDNN",
    .available = available,
    .apply = apply,
    .slot = TAC_CPU_SLOT_ONEDNN,
    .cache_create = tac__onednn_create,
    .cache_destroy = tac__onednn_destroy,
    .cache_bytes = tac__onednn_bytes,
};

#else

static int available(char *why, size_t bytes)
{
    snprintf(why, bytes,
             "this build has no oneDNN (apt install libdnnl-dev and configure "
             "again)");
    return 0;
}

static void apply(tac_kernels *table)
{
    (void)table;
}

const tac_kernel_set tac__onednn_set = {
    .name = "onednn",
    .doc = "matrix products and convolutions by oneDNN",
    .available = available,
    .apply = apply,
};

#endif
