/* reduce_f32.h: the f32 block kernels, compiled once for each instruction set:
 * define NAME and AVAILABLE, then include. Plain loops that compilers
 * vectorise; each element's arithmetic is the same in all of them (no fused
 * multiply-add: the project compiles with -ffp-contract=off). */
#include "kernels/reduce.h"

static void sum(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) acc[i] += x[i];
}

static void prod(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) acc[i] *= x[i];
}

static void min(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] = x[i] < acc[i] || x[i] != x[i] ? x[i] : acc[i];
}

static void max(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] = x[i] > acc[i] || x[i] != x[i] ? x[i] : acc[i];
}

static void scale(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] *= by;
}

static void divide(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] /= by;
}

#define TABLE(id)                                \
    const tac__reduce_table tac__reduce_##id = { \
        .name = #id,                             \
        .available = available,                  \
        .combine = {sum, sum, min, max, prod},   \
        .scale = scale,                          \
        .divide = divide,                        \
    }
