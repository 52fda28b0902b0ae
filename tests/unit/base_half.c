/* base_half.c: f16 and bf16 against a float64 oracle, every implementation
 * against the scalar one. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tacit/half.h"

/* A format by its numbers; values are worked out in float64 from these. */
typedef struct format {
    int fraction_bits, bias;
    uint16_t (*narrow)(float);
    float (*widen)(uint16_t);
} format;

static const format formats[] = {
    {10, 15, tac_f32_to_f16, tac_f16_to_f32},
    {7, 127, tac_f32_to_bf16, tac_bf16_to_f32},
};
enum { FORMATS = 2 };

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static int exponent_field(const format *f, uint32_t h)
{
    return (int)((h & 0x7fff) >> f->fraction_bits);
}

static uint32_t fraction_field(const format *f, uint32_t h)
{
    return h & ((1u << f->fraction_bits) - 1);
}

static int top_exponent(const format *f)
{
    return (1 << (15 - f->fraction_bits)) - 1;
}

/* The value of 16 bits, from the definition. */
static double decode(const format *f, uint32_t h)
{
    const double sign = h & 0x8000 ? -1.0 : 1.0;
    const int e = exponent_field(f, h);
    const double fraction = ldexp(fraction_field(f, h), -f->fraction_bits);
    if (e == top_exponent(f)) return fraction > 0 ? NAN : sign * INFINITY;
    if (e == 0) return sign * ldexp(fraction, 1 - f->bias);
    return sign * ldexp(1.0 + fraction, e - f->bias);
}

/* x rounded to the format, to nearest, ties to even: on the grid of the
 * spacing at x, which nearbyint does in the default rounding mode. */
static double round_to(const format *f, double x)
{
    const double limit = ldexp(1.0, top_exponent(f) - f->bias);
    if (x == 0 || !isfinite(x)) return x;
    const int e = (int)fmax(logb(x), 1 - f->bias);
    const double spacing = ldexp(1.0, e - f->fraction_bits);
    const double r = nearbyint(x / spacing) * spacing;
    return fabs(r) >= limit ? copysign(INFINITY, x) : r;
}

static void expect_narrow(const format *f, float x)
{
    const uint16_t h = f->narrow(x);
    const double want = round_to(f, x), got = decode(f, h);
    cr_assert(got == want && !signbit(got) == !signbit(want),
              "%a (%08x) became %04x = %a, not %a", (double)x, bits(x), h, got,
              want);
}

Test(half, every_value_widens)
{
    for (int i = 0; i < FORMATS; ++i)
        for (uint32_t h = 0; h < 65536; ++h) {
            const format *f = &formats[i];
            const double want = decode(f, h);
            const float got = f->widen((uint16_t)h);
            if (isnan(want))
                cr_assert(isnan(got), "%04x", h);
            else
                cr_assert((double)got == want &&
                              !signbit(got) == !signbit(want),
                          "%04x became %a, not %a", h, (double)got, want);
        }
}

Test(half, every_value_comes_back)
{
    for (int i = 0; i < FORMATS; ++i)
        for (uint32_t h = 0; h < 65536; ++h) {
            const format *f = &formats[i];
            const uint32_t quiet = 1u << (f->fraction_bits - 1);
            const uint32_t want = isnan(decode(f, h)) ? h | quiet : h;
            const uint16_t got = f->narrow(f->widen((uint16_t)h));
            cr_assert(got == want, "%04x came back as %04x", h, got);
        }
}

/* Between each value and the next: the tie, the floats on both sides of it, and
 * those next to the values themselves. (The last pair is the overflow.) */
Test(half, every_tie_and_its_neighbours)
{
    for (int i = 0; i < FORMATS; ++i) {
        const format *f = &formats[i];
        const uint32_t inf = (uint32_t)top_exponent(f) << f->fraction_bits;
        const double limit = ldexp(1.0, top_exponent(f) - f->bias);
        for (uint32_t h = 0; h < inf; ++h) {
            const float low = f->widen((uint16_t)h);
            const double a = decode(f, h);
            const double b = h + 1 < inf ? decode(f, h + 1) : limit;
            const float tie = (float)((a + b) / 2);
            cr_assert(tie == (a + b) / 2 && low == a); /* both exact */
            const float points[] = {
                low,
                nextafterf(low, INFINITY),
                nextafterf(tie, 0),
                tie,
                nextafterf(tie, INFINITY),
                nextafterf((float)fmin(b, FLT_MAX), 0),
            };
            for (size_t k = 0; k < sizeof points / sizeof *points; ++k) {
                expect_narrow(f, points[k]);
                expect_narrow(f, -points[k]);
            }
        }
    }
}

Test(half, known_values)
{
    cr_assert_eq(tac_f32_to_f16(1.0f), 0x3c00);
    cr_assert_eq(tac_f32_to_f16(-2.0f), 0xc000);
    cr_assert_eq(tac_f32_to_f16(65504.0f), 0x7bff);
    cr_assert_eq(tac_f32_to_f16(65519.996f), 0x7bff);
    cr_assert_eq(tac_f32_to_f16(65520.0f), 0x7c00);
    cr_assert_eq(tac_f32_to_f16(0x1p-24f), 0x0001);
    cr_assert_eq(tac_f32_to_f16(0x1p-25f), 0x0000);
    cr_assert_eq(tac_f32_to_f16(0x1.000002p-25f), 0x0001);
    cr_assert_eq(tac_f32_to_f16(-0x1p-25f), 0x8000);
    cr_assert_eq(tac_f32_to_bf16(1.0f), 0x3f80);
    cr_assert_eq(tac_f32_to_bf16(0x1.01p0f), 0x3f80); /* tie to even */
    cr_assert_eq(tac_f32_to_bf16(0x1.03p0f), 0x3f82);
    cr_assert_eq(tac_f32_to_bf16(0x1p-133f), 0x0001); /* subnormal */
    cr_assert_eq(tac_f32_to_bf16(0x1.fffffep127f), 0x7f80);
}

Test(half, nan_is_quiet_and_keeps_sign_and_payload)
{
    cr_assert_eq(tac_f32_to_f16(from_bits(0x7f800001)), 0x7e00);
    cr_assert_eq(tac_f32_to_f16(from_bits(0xffa02000)), 0xff01);
    cr_assert_eq(tac_f32_to_bf16(from_bits(0x7f800001)), 0x7fc0);
    cr_assert_eq(tac_f32_to_bf16(from_bits(0xff810000)), 0xffc1);
    cr_assert_eq(bits(tac_f16_to_f32(0x7c01)), 0x7fc02000);
    cr_assert_eq(bits(tac_bf16_to_f32(0xff81)), 0xffc10000);
}

/* Inputs that reach every branch: all 16-bit patterns in the upper half, with
 * lower halves that round down, tie and round up; and a sweep of the rest. */
static size_t make_inputs(float **out)
{
    static const uint32_t low[] = {0,      1,      0x0fff, 0x1000,
                                   0x1001, 0x1fff, 0x2000, 0x7fff,
                                   0x8000, 0x8001, 0xb000, 0xffff};
    const size_t lows = sizeof low / sizeof *low, sweep = 100003;
    const size_t n = 65536 * lows + sweep;
    float *x = malloc(n * sizeof *x);
    size_t k = 0;
    cr_assert_not_null(x);
    for (uint32_t top = 0; top < 65536; ++top)
        for (size_t i = 0; i < lows; ++i) {
            const uint32_t u = top << 16 | low[i];
            memcpy(&x[k++], &u, 4);
        }
    for (uint32_t i = 0; i < sweep; ++i) {
        const uint32_t u = i * 42949u;
        memcpy(&x[k++], &u, 4);
    }
    *out = x;
    return n;
}

static void compare_narrow(const tac_half_impl *impl)
{
    float *x;
    const size_t n = make_inputs(&x);
    uint16_t *h = malloc(2 * n);
    cr_assert_not_null(h);
    memset(h, 0xa5, 2 * n);
    impl->f32_to_f16(h, x, n);
    for (size_t i = 0; i < n; ++i)
        cr_assert(h[i] == tac_f32_to_f16(x[i]), "%s f16 of %08x: %04x",
                  impl->name, bits(x[i]), h[i]);
    memset(h, 0xa5, 2 * n);
    impl->f32_to_bf16(h, x, n);
    for (size_t i = 0; i < n; ++i)
        cr_assert(h[i] == tac_f32_to_bf16(x[i]), "%s bf16 of %08x: %04x",
                  impl->name, bits(x[i]), h[i]);
    free(h);
    free(x);
}

static void compare_widen(const tac_half_impl *impl)
{
    uint16_t *h = malloc(2 * 65536);
    float *x = malloc(4 * 65536);
    cr_assert(h && x);
    for (uint32_t i = 0; i < 65536; ++i) h[i] = (uint16_t)i;
    memset(x, 0xa5, 4 * 65536);
    impl->f16_to_f32(x, h, 65536);
    for (uint32_t i = 0; i < 65536; ++i)
        cr_assert(bits(x[i]) == bits(tac_f16_to_f32(h[i])), "%s f16 %04x: %08x",
                  impl->name, i, bits(x[i]));
    memset(x, 0xa5, 4 * 65536);
    impl->bf16_to_f32(x, h, 65536);
    for (uint32_t i = 0; i < 65536; ++i)
        cr_assert(bits(x[i]) == bits(tac_bf16_to_f32(h[i])),
                  "%s bf16 %04x: %08x", impl->name, i, bits(x[i]));
    free(x);
    free(h);
}

Test(half, implementations_give_the_scalar_bits)
{
    for (const tac_half_impl *impl = tac_half_impls(); impl->name; ++impl) {
        if (!impl->available()) continue;
        compare_narrow(impl);
        compare_widen(impl);
    }
}

/* Whatever a program does to the control register for speed. */
Test(half, flush_to_zero_changes_nothing)
{
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040 | 0x6000); /* FTZ, DAZ, round towards zero */
    for (const tac_half_impl *impl = tac_half_impls(); impl->name; ++impl) {
        if (!impl->available()) continue;
        compare_narrow(impl);
        compare_widen(impl);
    }
    _mm_setcsr(before);
#endif
}

enum { LONGEST = 70, GUARD = 40 };

static void lengths_narrow(void (*fn)(uint16_t *, const float *, size_t),
                           uint16_t (*scalar)(float), const char *name)
{
    float x[LONGEST + 1];
    for (int i = 0; i <= LONGEST; ++i) x[i] = 0.3f * (float)(i - 20);
    for (size_t n = 0; n <= LONGEST; ++n) {
        uint16_t h[LONGEST + GUARD + 1];
        memset(h, 0x5a, sizeof h);
        fn(h + 1, x + 1, n);
        cr_assert_eq(h[0], 0x5a5a);
        for (size_t i = 0; i < n; ++i)
            cr_assert(h[1 + i] == scalar(x[1 + i]), "%s n=%zu i=%zu", name, n,
                      i);
        for (size_t i = n; i < LONGEST + GUARD; ++i)
            cr_assert(h[1 + i] == 0x5a5a, "%s n=%zu wrote %zu", name, n, i);
    }
}

static void lengths_widen(void (*fn)(float *, const uint16_t *, size_t),
                          float (*scalar)(uint16_t), const char *name)
{
    uint16_t h[LONGEST + 1];
    for (int i = 0; i <= LONGEST; ++i) h[i] = (uint16_t)(i * 937 + 3);
    for (size_t n = 0; n <= LONGEST; ++n) {
        float x[LONGEST + GUARD + 1];
        memset(x, 0x5a, sizeof x);
        fn(x + 1, h + 1, n);
        cr_assert_eq(bits(x[0]), 0x5a5a5a5a);
        for (size_t i = 0; i < n; ++i)
            cr_assert(bits(x[1 + i]) == bits(scalar(h[1 + i])),
                      "%s n=%zu i=%zu", name, n, i);
        for (size_t i = n; i < LONGEST + GUARD; ++i)
            cr_assert(bits(x[1 + i]) == 0x5a5a5a5a, "%s n=%zu wrote %zu", name,
                      n, i);
    }
}

Test(half, odd_lengths_and_places)
{
    for (const tac_half_impl *impl = tac_half_impls(); impl->name; ++impl) {
        if (!impl->available()) continue;
        lengths_narrow(impl->f32_to_f16, tac_f32_to_f16, impl->name);
        lengths_narrow(impl->f32_to_bf16, tac_f32_to_bf16, impl->name);
        lengths_widen(impl->f16_to_f32, tac_f16_to_f32, impl->name);
        lengths_widen(impl->bf16_to_f32, tac_bf16_to_f32, impl->name);
    }
    lengths_narrow(tac_f32_to_f16_n, tac_f32_to_f16, "bulk");
    lengths_narrow(tac_f32_to_bf16_n, tac_f32_to_bf16, "bulk");
    lengths_widen(tac_f16_to_f32_n, tac_f16_to_f32, "bulk");
    lengths_widen(tac_bf16_to_f32_n, tac_bf16_to_f32, "bulk");
}
