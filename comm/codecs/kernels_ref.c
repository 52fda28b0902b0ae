/* kernels_ref.c: codec loops for any processor. */
#include <stdint.h>
#include <string.h>

#include "tacit/half.h"

enum { LANES = 1 };
typedef float vec;

static float load(const float *x)
{
    return *x;
}

static void store(float *y, float x)
{
    *y = x;
}

static float splat(float x)
{
    return x;
}

static float add(float a, float b)
{
    return a + b;
}

static float mul(float a, float b)
{
    return a * b;
}

static float divide(float a, float b)
{
    return a / b;
}

static uint16_t bits_in(const char *h)
{
    uint16_t u;
    memcpy(&u, h, sizeof u);
    return u;
}

static void bits_out(char *h, uint16_t u)
{
    memcpy(h, &u, sizeof u);
}

static float half_in(const char *h)
{
    return tac_f16_to_f32(bits_in(h));
}

static void half_out(char *h, float x)
{
    bits_out(h, tac_f32_to_f16(x));
}

static float bf_in(const char *h)
{
    return tac_bf16_to_f32(bits_in(h));
}

static void bf_out(char *h, float x)
{
    bits_out(h, tac_f32_to_bf16(x));
}

static float byte_in(const char *q)
{
    return (float)*(const signed char *)q;
}

/* Adding 1.5 * 2^23 leaves no bits behind the point: nearest, ties to even. */
static void byte_out(char *q, float x)
{
    const float big = 12582912.0f;
    const float clamped = x > 127.0f ? 127.0f : x < -127.0f ? -127.0f : x;
    const float rounded = clamped + big - big;
    *(signed char *)q = (signed char)rounded;
}

#include "codecs/kernels_loops.h"

static int available(void)
{
    return 1;
}

TABLE(ref);
