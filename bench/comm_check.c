/* comm_check.c: is every element right?
 *
 * Inputs are small whole numbers, so that the result is exact in every type and
 * order: x(rank, i) = c(rank) p(i). The factors c are 3, 1, 3, 1, ... (2 for
 * the last of an odd number), so that sums are 2 n p(i) and averages 2 p(i). p
 * is in -3..3, but in -127..127 with 127 first in each block of 256 for int8,
 * in 0, +-1, 2, ... 64 for fp4, and in 0..3 for unsigned types; of a product
 * one factor is p(i) in 0..2; top-k gets as few values other than zero as it
 * keeps. Outputs are poisoned first, inputs are compared afterwards: an
 * operation out of place may not change them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm_bench.h"
#include "tacit/half.h"

typedef struct sample {
    const tac__comm_bench *b;
    const tac__case *k;
    size_t n;         /* elements of the logical buffer */
    size_t sparse;    /* only multiples of it are not 0; 0: all */
    size_t kept;      /* ... and only so many */
    double tolerance; /* relative to the largest result */
} sample;

static double factor_of(int rank, int size)
{
    if (rank == size - 1 && size % 2) return 2;
    return rank % 2 ? 1 : 3;
}

static int is_codec(const sample *s, const char *name)
{
    const char *c = s->b->plan->codec;
    return c && strncmp(c, name, strlen(name)) == 0;
}

static sample make_sample(const tac__comm_bench *b, const tac__case *k)
{
    sample s = {b, k, k->count, 0, 0, 0};
    if (is_codec(&s, "topk:")) {
        const double f = atof(b->plan->codec + 5);
        s.sparse = f > 0 && f < 1 ? (size_t)ceil(1 / f) + 1 : 0;
        s.kept = s.sparse && s.n / s.sparse ? s.n / s.sparse : 1;
    }
    if (is_codec(&s, "powersgd")) s.tolerance = 1e-4;
    return s;
}

/* A sign and three bits of exponent have these whole. */
static double p_fp4(size_t i)
{
    const size_t m = i % 15;

    if (i % 256 == 0) return 64;
    return m == 0 ? 0 : m < 8 ? ldexp(1, (int)m - 1) : -ldexp(1, (int)m - 8);
}

/* The common part of element i. */
static double p_of(const sample *s, size_t i)
{
    const tac_dtype t = s->k->dtype;
    if (s->sparse && (i % s->sparse || i / s->sparse >= s->kept)) return 0;
    if (is_codec(s, "int8"))
        return i % 256 == 0 ? 127 : (double)(i % 255) - 127;
    if (is_codec(s, "fp4")) return p_fp4(i);
    if (is_codec(s, "powersgd")) return 1 + (double)(i % 2);
    if (s->k->op == TAC_PROD) return (double)(i % 3);
    if (t == TAC_U8) return (double)(i % 4);
    if (s->sparse) return 1 + (double)(i / s->sparse % 3);
    return (double)(i % 7) - 3;
}

/* Of a product one rank has p, the others 1, or 2 where p is 0. */
static double x_of(const sample *s, int rank, size_t i)
{
    if (s->k->op != TAC_PROD)
        return factor_of(rank, s->b->group.size) * p_of(s, i);
    if (rank == (int)(i % (size_t)s->b->group.size)) return p_of(s, i);
    return p_of(s, i) == 0 ? 2 : 1;
}

static int unsigned_byte_wraps(const sample *s, double x)
{
    return s->k->dtype == TAC_U8 && x > 255;
}

static double result_of(const sample *s, size_t i)
{
    const int n = s->b->group.size;
    double y = x_of(s, 0, i), sum = 0;
    switch (s->k->op) {
    case TAC_PROD: return p_of(s, i);
    case TAC_SUM:
    case TAC_AVG:
        sum = 2.0 * n * p_of(s, i);
        if (s->k->op == TAC_AVG) return 2 * p_of(s, i);
        return unsigned_byte_wraps(s, sum) ? fmod(sum, 256) : sum;
    default:
        for (int r = 1; r < n; r++) {
            const double x = x_of(s, r, i);
            if (s->k->op == TAC_MIN ? x < y : x > y) y = x;
        }
        return y;
    }
}

static void put(void *p, tac_dtype t, size_t i, double x)
{
    switch (t) {
    case TAC_F32: ((float *)p)[i] = (float)x; break;
    case TAC_F64: ((double *)p)[i] = x; break;
    case TAC_F16: ((uint16_t *)p)[i] = tac_f32_to_f16((float)x); break;
    case TAC_BF16: ((uint16_t *)p)[i] = tac_f32_to_bf16((float)x); break;
    case TAC_I32: ((int32_t *)p)[i] = (int32_t)x; break;
    case TAC_I64: ((int64_t *)p)[i] = (int64_t)x; break;
    default: ((uint8_t *)p)[i] = (uint8_t)x; break;
    }
}

static double get(const void *p, tac_dtype t, size_t i)
{
    switch (t) {
    case TAC_F32: return (double)((const float *)p)[i];
    case TAC_F64: return ((const double *)p)[i];
    case TAC_F16: return (double)tac_f16_to_f32(((const uint16_t *)p)[i]);
    case TAC_BF16: return (double)tac_bf16_to_f32(((const uint16_t *)p)[i]);
    case TAC_I32: return ((const int32_t *)p)[i];
    case TAC_I64: return (double)((const int64_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

/* ---- one operation ---------------------------------------------------------
 */

/* Element 0 of the source in the logical buffer. */
static size_t source_first(const sample *s)
{
    return s->k->coll == TAC_COLL_ALLGATHER
               ? (size_t)s->b->group.rank * s->k->part
               : 0;
}

static size_t elements(const sample *s, size_t bytes)
{
    return bytes / tac_dtype_size(s->k->dtype);
}

static int is_root(const sample *s)
{
    return s->b->group.rank == 0;
}

/* Gathers and broadcasts move values as they are. */
static double sent(const sample *s, size_t i)
{
    if (s->k->coll == TAC_COLL_ALLGATHER || s->k->coll == TAC_COLL_BROADCAST)
        return p_of(s, i);
    return x_of(s, s->b->group.rank, i);
}

static double expected(const sample *s, size_t i)
{
    if (s->k->coll == TAC_COLL_ALLGATHER || s->k->coll == TAC_COLL_BROADCAST)
        return p_of(s, i);
    return result_of(s, i);
}

static void prepare(const sample *s, const tac__set *set)
{
    const size_t first = source_first(s), n = elements(s, set->src_bytes);
    memset(set->dst, 0xff, set->dst_bytes);
    if (s->k->coll == TAC_COLL_BROADCAST && !is_root(s)) return;
    for (size_t i = 0; i < n; i++)
        put(set->src, s->k->dtype, i, sent(s, first + i));
}

static size_t count_wrong(const sample *s, const tac__set *set)
{
    const size_t block = s->k->coll == TAC_COLL_REDUCE_SCATTER
                             ? (size_t)s->b->group.rank * s->k->part
                             : 0;
    const double slack = s->tolerance * 8 * s->b->group.size;
    size_t wrong = 0;
    for (size_t i = 0; i < elements(s, set->dst_bytes); i++) {
        const double y = get(set->dst, s->k->dtype, i);
        wrong += !(fabs(y - expected(s, block + i)) <= slack);
    }
    if (s->k->in_place || s->k->coll == TAC_COLL_BROADCAST) return wrong;
    for (size_t i = 0; i < elements(s, set->src_bytes); i++)
        wrong += get(set->src, s->k->dtype, i) != sent(s, source_first(s) + i);
    return wrong;
}

/* The last element of the last rank: the top bit, so that it is another
 * number. */
static void corrupt(const sample *s, const tac__set *set)
{
    if (s->b->group.rank == s->b->group.size - 1 && set->dst_bytes)
        set->dst[set->dst_bytes - 1] ^= 0x40;
}

tac_status tac__check(tac__comm_bench *b, const tac__case *k, double *wrong)
{
    const sample s = make_sample(b, k);
    double sum = 0;
    for (int turn = 0; turn < 2; turn++) {
        const tac__set set =
            tac__arena_next(&b->ours, k, b->group.rank, b->group.size);
        prepare(&s, &set);
        TAC_TRY(tac__ours_run(b, k, &set));
        if (b->opt->corrupt) corrupt(&s, &set);
        sum += (double)count_wrong(&s, &set);
    }
    b->group.sum(b->group.state, &sum, 1);
    *wrong = sum;
    return TAC_OK;
}
