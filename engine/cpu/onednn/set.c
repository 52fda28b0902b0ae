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

static void apply(tac_kernels *table)
{
    if (table->dtype != TAC_F32) return;
    table->linear_forward = tac__onednn_linear_forward;
    table->linear_backward_data = tac__onednn_linear_backward_data;
    table->linear_backward_weights = tac__onednn_linear_backward_weights;
    table->conv2d_forward = tac__onednn_conv_forward;
    table->conv2d_backward_data = tac__onednn_conv_backward_data;
    table->conv2d_backward_weights = tac__onednn_conv_backward_weights;
    table->conv2d_pool_forward = tac__onednn_conv_pool_forward;
    table->conv2d_pool_backward = tac__onednn_conv_pool_backward;
}

const tac_kernel_set tac__onednn_set = {
    .name = "onednn",
    .doc = "matrix products and convolutions by oneDNN",
    .available = available,
    .apply = apply,
    .cache_create = tac__onednn_create,
    .cache_destroy = tac__onednn_destroy,
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
