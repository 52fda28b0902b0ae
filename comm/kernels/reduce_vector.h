/* reduce_vector.h: reductions that accumulate in f32, in vector registers,
 * compiled once for each instruction set.
 *
 * A group is 64 elements: they are loaded from all sources and stored to all
 * destinations without touching an accumulator in memory. What is left over,
 * and what comes before the first aligned line when stores stream, goes through
 * the same instructions by way of a small buffer. The bits are those of
 * reduce_blocks.c.
 *
 * Cold memory. The processor's own prefetcher follows a stream to the end of
 * its page, and ordinary memory comes in pages of 4 KiB at unrelated addresses.
 * So several pages are walked through side by side, until there are about eight
 * streams, and each line that is loaded asks for the one that will be loaded a
 * round later. (Two sources and two destinations of 8 MiB: 1.67 ms one page
 * after the other, 1.29 ms so; a copy of 16 MiB: 2.5 and 1.4.)
 *
 * Before including: vec, LANES, load_f32 load_f16 load_bf16, store_f32
 * store_f16 store_bf16, splat, sum prod min max, times, divided, copy_line. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/reduce.h"

enum { GROUP = 64, VECS = GROUP / LANES, LINE = 64, PAGE = 4096 };

#define INLINE static inline __attribute__((always_inline))

typedef vec load_fn(const char *x);
typedef void store_fn(char *x, vec v, int stream);
typedef vec op_fn(vec acc, vec x);

/* What a kernel is made of: constants where it is instantiated. */
typedef struct make {
    size_t es;
    load_fn *load;
    store_fn *store;
    op_fn *op;
} make;

typedef struct scales {
    int before, after, mean;
    vec pre, post, p;
} scales;

static scales scales_of(const tac__reduce_args *a)
{
    return (scales){.before = a->prescale != 1.0,
                    .after = a->postscale != 1.0,
                    .mean = a->op == TAC_AVG,
                    .pre = splat((float)a->prescale),
                    .post = splat((float)a->postscale),
                    .p = splat((float)a->p)};
}

INLINE void load_group(const make m, const scales *s, const char *x, vec *v)
{
    for (int k = 0; k < VECS; k++) v[k] = m.load(x + (size_t)k * LANES * m.es);
    if (s->before)
        for (int k = 0; k < VECS; k++) v[k] = times(v[k], s->pre);
}

INLINE void finish_group(const scales *s, vec *acc)
{
    if (s->mean)
        for (int k = 0; k < VECS; k++) acc[k] = divided(acc[k], s->p);
    if (s->after)
        for (int k = 0; k < VECS; k++) acc[k] = times(acc[k], s->post);
}

INLINE void store_group(const make m, char *x, const vec *acc, int stream)
{
    for (int k = 0; k < VECS; k++)
        m.store(x + (size_t)k * LANES * m.es, acc[k], stream);
}

INLINE void ask_for(const char *x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE) _mm_prefetch(x + i, _MM_HINT_T0);
}

/* Elements at byte `at`; asks for those `ahead` bytes behind, 0: not. */
INLINE void whole_group(const tac__reduce_args *a, const make m,
                        const scales *s, size_t at, unsigned stream,
                        size_t ahead)
{
    vec acc[VECS], x[VECS];
    load_group(m, s, (const char *)a->srcs[0] + at, acc);
    if (ahead) ask_for((const char *)a->srcs[0] + at + ahead, GROUP * m.es);
    for (int r = 1; r < a->p; r++) {
        const char *from = (const char *)a->srcs[r] + at;
        load_group(m, s, from, x);
        if (ahead) ask_for(from + ahead, GROUP * m.es);
        for (int k = 0; k < VECS; k++) acc[k] = m.op(acc[k], x[k]);
    }
    finish_group(s, acc);
    store_group(m, (char *)a->dst + at, acc, stream & TAC__STREAM_DST);
    for (int d = 0; d < a->n_also; d++)
        store_group(m, (char *)a->also[d] + at, acc, stream & TAC__STREAM_ALSO);
}

/* n < GROUP elements at byte `at`. */
INLINE void part_group(const tac__reduce_args *a, const make m, const scales *s,
                       size_t at, size_t n)
{
    _Alignas(64) char tmp[GROUP * sizeof(float)] = {0};
    vec acc[VECS], x[VECS];
    if (n == 0) return;
    memcpy(tmp, (const char *)a->srcs[0] + at, n * m.es);
    load_group(m, s, tmp, acc);
    for (int r = 1; r < a->p; r++) {
        memcpy(tmp, (const char *)a->srcs[r] + at, n * m.es);
        load_group(m, s, tmp, x);
        for (int k = 0; k < VECS; k++) acc[k] = m.op(acc[k], x[k]);
    }
    finish_group(s, acc);
    store_group(m, tmp, acc, 0);
    memcpy((char *)a->dst + at, tmp, n * m.es);
    for (int d = 0; d < a->n_also; d++)
        memcpy((char *)a->also[d] + at, tmp, n * m.es);
}

/* Elements before dst's first whole line. */
static size_t before_line(const tac__reduce_args *a, size_t es)
{
    const size_t n = (LINE - (uintptr_t)a->dst % LINE) % LINE / es;
    return n < a->n ? n : a->n;
}

/* Only destinations that lie in lines as dst does can stream with it. */
static unsigned can_stream(const tac__reduce_args *a, size_t es)
{
    unsigned s = a->stream;
    if ((uintptr_t)a->dst % es != 0) return 0;
    for (int d = 0; d < a->n_also; d++)
        if (((uintptr_t)a->also[d] - (uintptr_t)a->dst) % LINE != 0)
            s &= TAC__STREAM_DST;
    return s;
}

/* A round: `pages` pages of every array, side by side. */
INLINE void round_of_pages(const tac__reduce_args *a, const make m,
                           const scales *s, size_t at, unsigned stream,
                           size_t pages, size_t ahead)
{
    for (size_t i = 0; i < PAGE; i += GROUP * m.es)
        for (size_t k = 0; k < pages; k++)
            whole_group(a, m, s, at + k * PAGE + i, stream, ahead);
}

INLINE void run(const tac__reduce_args *a, const make m)
{
    const scales s = scales_of(a);
    const unsigned stream = can_stream(a, m.es);
    const size_t head = stream ? before_line(a, m.es) : 0;
    const size_t step = GROUP * m.es, end = a->n * m.es;
    const size_t pages = a->p > 2 ? a->p > 4 ? 1 : 2 : 4, round = pages * PAGE;
    size_t at = head * m.es;
    part_group(a, m, &s, 0, head);
    for (; at + 2 * round <= end; at += round)
        round_of_pages(a, m, &s, at, stream, pages, round);
    for (; at + round <= end; at += round)
        round_of_pages(a, m, &s, at, stream, pages, 0);
    for (; at + step <= end; at += step) whole_group(a, m, &s, at, stream, 0);
    part_group(a, m, &s, at, (end - at) / m.es);
    if (stream) _mm_sfence();
}

#define KERNEL(op, type, bytes)                               \
    static void op##_##type##_all(const tac__reduce_args *a)  \
    {                                                         \
        run(a, (make){bytes, load_##type, store_##type, op}); \
    }
#define KERNELS(type, bytes) \
    KERNEL(sum, type, bytes) \
    KERNEL(min, type, bytes) \
    KERNEL(max, type, bytes) \
    KERNEL(prod, type, bytes)

KERNELS(f32, 4)
KERNELS(f16, 2)
KERNELS(bf16, 2)

typedef void kernel_fn(const tac__reduce_args *a);

#define ROW(type)                                             \
    {                                                         \
        sum_##type##_all, sum_##type##_all, min_##type##_all, \
            max_##type##_all, prod_##type##_all               \
    }

static void reduce(const tac__reduce_args *a)
{
    static kernel_fn *const kernels[][TAC_OP_COUNT] = {
        [TAC_F32] = ROW(f32), [TAC_F16] = ROW(f16), [TAC_BF16] = ROW(bf16)};
    kernels[a->dtype][a->op](a);
}

/* Short ones are better left to the C library. */
enum { SHORT = 1024 };

enum { ROUND = 4 * PAGE };

INLINE void copy_round(char *dst, const char *src, int stream, size_t ahead)
{
    for (size_t i = 0; i < PAGE; i += LINE)
        for (size_t k = i; k < ROUND; k += PAGE) {
            if (ahead) _mm_prefetch(src + k + ahead, _MM_HINT_T0);
            copy_line(dst + k, src + k, stream);
        }
}

INLINE size_t copy_lines(char *dst, const char *src, size_t bytes, int stream)
{
    size_t at = 0;
    for (; at + 2 * ROUND <= bytes; at += ROUND)
        copy_round(dst + at, src + at, stream, ROUND);
    for (; at + ROUND <= bytes; at += ROUND)
        copy_round(dst + at, src + at, stream, 0);
    for (; at + LINE <= bytes; at += LINE)
        copy_line(dst + at, src + at, stream);
    return at;
}

static void copy(void *to, const void *from, size_t bytes, int stream)
{
    char *dst = to;
    const char *src = from;
    size_t head = (LINE - (uintptr_t)dst % LINE) % LINE;
    if (bytes < SHORT) head = bytes;
    memcpy(dst, src, head);
    dst += head;
    src += head;
    bytes -= head;
    const size_t done = stream ? copy_lines(dst, src, bytes, 1)
                               : copy_lines(dst, src, bytes, 0);
    memcpy(dst + done, src + done, bytes - done);
    if (stream) _mm_sfence();
}
