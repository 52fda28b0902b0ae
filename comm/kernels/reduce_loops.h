/* reduce_loops.h: block operations as plain loops that compilers vectorise,
 * compiled once for each instruction set (reduce_ref.c, reduce_avx2.c,
 * reduce_avx512.c). Each element's arithmetic is the same in all of them: no
 * fused multiply-add, the project compiles with -ffp-contract=off. */
#include "kernels/reduce.h"

static void sum_f32(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) acc[i] += x[i];
}

static void prod_f32(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) acc[i] *= x[i];
}

static void min_f32(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] = x[i] < acc[i] || x[i] != x[i] ? x[i] : acc[i];
}

static void max_f32(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] = x[i] > acc[i] || x[i] != x[i] ? x[i] : acc[i];
}

static void scale_f32(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] *= by;
}

static void divide_f32(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] /= by;
}

/* Sums and products of integers are formed unsigned, where wrapping is
 * defined; min and max pass a NaN on. */
#define LOOP(name, type, expression)                                         \
    static void name(void *restrict to, const void *restrict from, size_t n) \
    {                                                                        \
        type *restrict acc = to;                                             \
        const type *restrict x = from;                                       \
        for (size_t i = 0; i < n; i++) acc[i] = (type)(expression);          \
    }

#define LOOPS(id, type, wrapping)                                       \
    LOOP(sum_##id, wrapping, acc[i] + x[i])                             \
    LOOP(prod_##id, wrapping, acc[i] * x[i])                            \
    LOOP(min_##id, type, x[i] < acc[i] || x[i] != x[i] ? x[i] : acc[i]) \
    LOOP(max_##id, type, x[i] > acc[i] || x[i] != x[i] ? x[i] : acc[i])

LOOPS(f64, double, double)
LOOPS(i32, int32_t, uint32_t)
LOOPS(i64, int64_t, uint64_t)
LOOPS(u8, uint8_t, uint8_t)

#define NATIVE(id)                                    \
    {                                                 \
        sum_##id, NULL, min_##id, max_##id, prod_##id \
    }

#define TABLE(id, reduce_fn, copy_fn)                              \
    const tac__reduce_table tac__reduce_##id = {                   \
        .name = #id,                                               \
        .available = available,                                    \
        .combine = {sum_f32, sum_f32, min_f32, max_f32, prod_f32}, \
        .scale = scale_f32,                                        \
        .divide = divide_f32,                                      \
        .reduce = reduce_fn,                                       \
        .native = {[TAC_F64] = NATIVE(f64),                        \
                   [TAC_I32] = NATIVE(i32),                        \
                   [TAC_I64] = NATIVE(i64),                        \
                   [TAC_U8] = NATIVE(u8)},                         \
        .copy = copy_fn,                                           \
    }
