/* comm_kernels.c: every kernel table that runs here against a scalar loop in
 * rank order, bit by bit, on random shapes: 1 to 9 sources at any alignment,
 * one destination or several, in place and not, stores that stream and stores
 * that do not, special values. */
#include <stdlib.h>

#include "kernels/reduce.h"
#include "tac_check.h"
#include "tacit/half.h"
#include "tacit/rng.h"

enum { P = 9, ALSO = 4, N = 9000, SLACK = 256, POISON = 0xA5 };

typedef struct array {
    char *whole, *x; /* x: somewhere in it */
} array;

static array srcs[P], dsts[1 + ALSO];
static char *kept[P]; /* the sources before */
static uint64_t at;

static uint64_t draw(uint64_t below)
{
    const tac_rng_key key = {23, TAC_STREAM_USER, 0};
    const uint64_t hi = tac_rng_u32(&key, at++);
    return (hi << 32 | tac_rng_u32(&key, at++)) % below;
}

static void array_open(array *a)
{
    a->whole = malloc(N * 8 + 2 * SLACK);
}

static void array_place(array *a, size_t es, size_t bytes)
{
    memset(a->whole, POISON, bytes + 2 * SLACK);
    a->x = a->whole + 64 + draw(128 / es) * es;
}

/* ---- elements --------------------------------------------------------------
 */

static float any_float(void)
{
    static const float special[] = {INFINITY, -INFINITY, NAN,     0.0f,
                                    -0.0f,    1e-41f,    -1e-45f, 3e38f};
    if (draw(40) == 0) return special[draw(8)];
    return ldexpf((float)draw(1u << 24) - 8388608.0f, (int)draw(40) - 40);
}

static void put_any(char *x, tac_dtype t, size_t i)
{
    const size_t es = tac_dtype_size(t);
    const uint64_t bits = tac_dtype_is_float(t) ? 0 : draw(UINT64_MAX);
    const float f = tac_dtype_is_float(t) ? any_float() : 0;
    const double d = (double)f * 1.0000001;
    const uint16_t h = t == TAC_F16 ? tac_f32_to_f16(f) : tac_f32_to_bf16(f);
    const void *from = t == TAC_F32                    ? (const void *)&f
                       : t == TAC_F64                  ? (const void *)&d
                       : t == TAC_F16 || t == TAC_BF16 ? (const void *)&h
                                                       : (const void *)&bits;
    memcpy(x + i * es, from, es);
}

/* ---- the oracle -------------------------------------------------------------
 */

typedef struct shape {
    tac_dtype dtype;
    tac_op op;
    int p;
    size_t n;
    double pre, post;
} shape;

static double as_f64(const char *x, tac_dtype t, size_t i)
{
    float f;
    double d;
    uint16_t h;
    if (t == TAC_F64) return memcpy(&d, x + i * 8, 8), d;
    if (t == TAC_F32) return memcpy(&f, x + i * 4, 4), (double)f;
    memcpy(&h, x + i * 2, 2);
    return (double)(t == TAC_F16 ? tac_f16_to_f32(h) : tac_bf16_to_f32(h));
}

static double better(double acc, double x, tac_op op)
{
    if (acc != acc || x != x) return NAN;
    return (op == TAC_MIN ? x < acc : x > acc) ? x : acc;
}

static void want_f64(const shape *s, size_t i, char *out)
{
    volatile double acc = as_f64(kept[0], TAC_F64, i) * s->pre;
    for (int r = 1; r < s->p; r++) {
        volatile double x = as_f64(kept[r], TAC_F64, i) * s->pre;
        if (s->op == TAC_PROD)
            acc = acc * x;
        else if (s->op == TAC_MIN || s->op == TAC_MAX)
            acc = better(acc, x, s->op);
        else
            acc = acc + x;
    }
    if (s->op == TAC_AVG) acc = acc / s->p;
    acc = acc * s->post;
    memcpy(out, (const double *)&acc, 8);
}

static void want_f32(const shape *s, size_t i, char *out)
{
    const float pre = (float)s->pre, post = (float)s->post;
    volatile float acc = (float)as_f64(kept[0], s->dtype, i) * pre;
    for (int r = 1; r < s->p; r++) {
        volatile float x = (float)as_f64(kept[r], s->dtype, i) * pre;
        if (s->op == TAC_PROD)
            acc = acc * x;
        else if (s->op == TAC_MIN || s->op == TAC_MAX)
            acc = (float)better((double)acc, (double)x, s->op);
        else
            acc = acc + x;
    }
    if (s->op == TAC_AVG) acc = acc / (float)s->p;
    acc = acc * post;
    const float f = acc;
    const uint16_t h =
        s->dtype == TAC_F16 ? tac_f32_to_f16(f) : tac_f32_to_bf16(f);
    if (s->dtype == TAC_F32)
        memcpy(out, &f, 4);
    else
        memcpy(out, &h, 2);
}

static int64_t as_i64(const char *x, tac_dtype t, size_t i)
{
    int32_t v;
    int64_t w;
    if (t == TAC_U8) return (unsigned char)x[i];
    if (t == TAC_I32) return memcpy(&v, x + i * 4, 4), v;
    return memcpy(&w, x + i * 8, 8), w;
}

static int64_t scaled(int64_t v, double by)
{
    const double x = (double)v * by;
    if (by == 1.0) return v;
    return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

static void want_int(const shape *s, size_t i, char *out)
{
    int64_t acc = scaled(as_i64(kept[0], s->dtype, i), s->pre);
    for (int r = 1; r < s->p; r++) {
        const int64_t x = scaled(as_i64(kept[r], s->dtype, i), s->pre);
        switch (s->op) {
        case TAC_PROD: acc = (int64_t)((uint64_t)acc * (uint64_t)x); break;
        case TAC_MIN: acc = x < acc ? x : acc; break;
        case TAC_MAX: acc = x > acc ? x : acc; break;
        default: acc = (int64_t)((uint64_t)acc + (uint64_t)x); break;
        }
    }
    if (s->op == TAC_AVG) acc /= s->p;
    acc = scaled(acc, s->post);
    memcpy(out, &acc, tac_dtype_size(s->dtype)); /* little-endian */
}

static int is_nan(const shape *s, const char *x)
{
    if (!tac_dtype_is_float(s->dtype)) return 0;
    const double v = as_f64(x, s->dtype, 0);
    return v != v;
}

/* ---- one shape --------------------------------------------------------------
 */

static int check_result(const shape *s, const char *got, const char *name,
                        const char *what)
{
    const size_t es = tac_dtype_size(s->dtype);
    char want[8];
    for (size_t i = 0; i < s->n; i++) {
        if (!tac_dtype_is_float(s->dtype))
            want_int(s, i, want);
        else if (s->dtype == TAC_F64)
            want_f64(s, i, want);
        else
            want_f32(s, i, want);
        const char *x = got + i * es;
        if (memcmp(x, want, es) == 0 || (is_nan(s, x) && is_nan(s, want)))
            continue;
        CHECK_FAIL("%s %s %s p %d n %zu: element %zu of %s", name,
                   tac_op_name(s->op), tac_dtype_name(s->dtype), s->p, s->n, i,
                   what);
        return 0;
    }
    return CHECK(1);
}

/* Nothing before or behind the n elements of x has been written. */
static int is_guarded(const array *a, size_t bytes)
{
    for (const char *p = a->whole; p < a->x; p++)
        if ((unsigned char)*p != POISON) return 0;
    for (int i = 0; i < SLACK / 2; i++)
        if ((unsigned char)a->x[bytes + (size_t)i] != POISON) return 0;
    return 1;
}

static void try_shape(const tac__reduce_table *t, const shape *s)
{
    const size_t es = tac_dtype_size(s->dtype), bytes = s->n * es;
    const int in_place = draw(3) == 0;
    const int n_also =
        (int)draw(in_place && s->p <= ALSO ? (unsigned)s->p : ALSO + 1);
    const void *from[P];
    void *also[ALSO];
    for (int r = 0; r < s->p; r++) {
        array_place(&srcs[r], es, bytes);
        for (size_t i = 0; i < s->n; i++) put_any(srcs[r].x, s->dtype, i);
        memcpy(kept[r], srcs[r].x, bytes);
        from[r] = srcs[r].x;
    }
    for (int d = 0; d <= n_also; d++) array_place(&dsts[d], es, bytes);
    if (draw(2)) /* in lines as the first */
        for (int d = 1; d <= n_also; d++)
            dsts[d].x =
                dsts[d].whole + 64 +
                (((uintptr_t)dsts[0].x - (uintptr_t)dsts[d].whole) & 63u);
    const int own = (int)draw((unsigned)s->p);
    void *dst = in_place ? srcs[own].x : dsts[0].x;
    for (int d = 0; d < n_also; d++)
        also[d] = in_place && d + 1 < s->p ? srcs[(own + d + 1) % s->p].x
                                           : dsts[d + 1].x;
    tac__reduce(t, &(tac__reduce_args){.dst = dst,
                                       .srcs = from,
                                       .p = s->p,
                                       .n = s->n,
                                       .dtype = s->dtype,
                                       .op = s->op,
                                       .prescale = s->pre,
                                       .postscale = s->post,
                                       .also = also,
                                       .n_also = n_also,
                                       .stream = (unsigned)draw(4)});
    if (!check_result(s, dst, t->name, "the first")) return;
    for (int d = 0; d < n_also; d++)
        if (!check_result(s, also[d], t->name, "another")) return;
    for (int r = 0; r < s->p; r++) CHECK(is_guarded(&srcs[r], bytes));
    for (int d = !in_place; d <= n_also; d++)
        if (!in_place) CHECK(is_guarded(&dsts[d], bytes));
}

static size_t any_count(void)
{
    static const size_t often[] = {0, 1, 3, 15, 16, 17, 63, 64, 65, 1023, 2048};
    if (draw(3) == 0) return often[draw(11)];
    return draw(draw(6) == 0 ? N : 500);
}

static void reduces(const tac__reduce_table *t, int rounds)
{
    static const double scales[] = {1.0, 1.0, 0.3, 1.0 / 3};
    for (int dtype = 0; dtype < TAC_DTYPE_COUNT; dtype++)
        for (int op = 0; op < TAC_OP_COUNT; op++)
            for (int k = 0; k < rounds; k++) {
                const shape s = {(tac_dtype)dtype, (tac_op)op,
                                 1 + (int)draw(P), any_count(),
                                 scales[draw(4)],  scales[draw(4)]};
                try_shape(t, &s);
            }
}

static void copies(const tac__reduce_table *t)
{
    enum { MOST = 20000 };
    static char from[MOST + SLACK], to[MOST + SLACK];
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)draw(256);
    for (int k = 0; k < 300; k++) {
        const size_t n = draw(k < 150 ? MOST : 1500), a = draw(130),
                     b = draw(130);
        memset(to, POISON, sizeof to);
        t->copy(to + b, from + a, n, (int)draw(2));
        size_t bad = memcmp(to + b, from + a, n) != 0;
        for (size_t i = 0; i < b; i++) bad += (unsigned char)to[i] != POISON;
        for (size_t i = b + n; i < b + n + 64; i++)
            bad += i < sizeof to && (unsigned char)to[i] != POISON;
        CHECK_EQ((long long)bad, 0);
    }
}

int main(void)
{
    for (int r = 0; r < P; r++) {
        array_open(&srcs[r]);
        kept[r] = malloc(N * 8);
    }
    for (int d = 0; d <= ALSO; d++) array_open(&dsts[d]);
    for (int k = 0; tac__reduce_tables[k]; k++) {
        const tac__reduce_table *t = tac__reduce_tables[k];
        if (!t->available()) {
            printf("skipped: %s: not on this processor\n", t->name);
            continue;
        }
        reduces(t, 25);
        copies(t);
        printf("%s: %ld failed so far\n", t->name, tac_check_failed());
    }
    for (int r = 0; r < P; r++) {
        free(srcs[r].whole);
        free(kept[r]);
    }
    for (int d = 0; d <= ALSO; d++) free(dsts[d].whole);
    return tac_check_summary();
}
