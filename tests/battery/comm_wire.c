/* comm_wire.c: wire formats: every kernel table against an oracle in f64 that
 * knows nothing of them, and against each other bit by bit: random numbers,
 * subnormals, infinities, NaN, huge ones, every length and alignment. */
#include <float.h>
#include <stdint.h>
#include <stdlib.h>

#include "comm_impl.h"
#include "tac_check.h"
#include "tacit/rng.h"
#include "comm_wire_oracle.h"

enum { MOST = 2600, KINDS = 10 };
#define BIGGEST WIRE_BIGGEST

static const tac__wire *const wires[] = {&tac__wire_fp16, &tac__wire_bf16,
                                         &tac__wire_int8, &tac__wire_fp4};
enum { WIRES = 4 };

/* ---- inputs ---------------------------------------------------------------
 */

static float normal(uint64_t kind, size_t i)
{
    const tac_rng_key key = {77, TAC_STREAM_USER, kind};
    return (float)tac_rng_normal(&key, i);
}

static uint32_t word(uint64_t kind, size_t i)
{
    const tac_rng_key key = {78, TAC_STREAM_USER, kind};
    return tac_rng_u32(&key, i);
}

static float any_finite(size_t i)
{
    uint32_t u = word(9, i);
    float x;
    if ((u & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000))
        u ^= UINT32_C(0x40000000);
    memcpy(&x, &u, sizeof x);
    return x;
}

static float input(int kind, size_t i)
{
    switch (kind) {
    case 0: return normal(0, i);
    case 1: return normal(1, i) * 1e-8f;
    case 2: return 30000.0f;
    case 3: return ldexpf((float)(word(3, i) % 4096), -149); /* subnormal */
    case 4: return i % 5 ? normal(4, i) : normal(4, i) * 1e30f;
    case 5: return i % 97 == 3 ? INFINITY : normal(5, i);
    case 6: return i % 89 == 7 ? NAN : normal(6, i);
    case 7: return i % 3 ? BIGGEST : -BIGGEST;
    case 8: return 0;
    default: return any_finite(i);
    }
}

/* ---- kernels --------------------------------------------------------------
 */

/* Encodes in pieces of `piece` elements, as pipelined algorithms may. */
static void encode(const tac__wire *w, const tac__codec_kernels *k, char *msg,
                   const float *x, size_t n, size_t piece, uint64_t key)
{
    for (size_t at = 0; at < n; at += piece)
        w->encode(k, msg, n, at, x + at, n - at < piece ? n - at : piece, key,
                  1000);
}

static void check_oracle(const tac__wire *w, const tac__codec_kernels *k,
                         const float *x, const float *y, size_t n, int kind)
{
    float want[MOST];
    wire_oracle(w, x, want, n);
    for (size_t i = 0; i < n; i++)
        if (!same(want[i], y[i])) {
            CHECK_FAIL("%s %s, kind %d: element %zu of %zu: %a becomes %a, not "
                       "%a",
                       w->name, k->name, kind, i, n, (double)x[i], (double)y[i],
                       (double)want[i]);
            return;
        }
    CHECK(1);
}

static void check_bytes(const tac__wire *w, const tac__codec_kernels *k,
                        const float *x, size_t n, uint64_t key, int kind)
{
    char store[2][4 * MOST + 64];
    const size_t bytes = w->bytes(n), odd = n % 7;
    memset(store, 0xA5, sizeof store);
    encode(w, &tac__codec_ref, store[0], x, n, n ? n : 1, key);
    encode(w, k, store[1] + odd, x, n, 1024, key);
    CHECK_MSG(memcmp(store[0], store[1] + odd, bytes) == 0,
              "%s %s, kind %d, %zu elements, key %d: other bytes than ref",
              w->name, k->name, kind, n, (int)key);
    for (size_t i = 0; i < 32; i++)
        if (!CHECK_EQ(store[1][odd + bytes + i], (char)0xA5)) return;
}

static void check_decode(const tac__wire *w, const tac__codec_kernels *k,
                         const float *x, size_t n, int kind)
{
    char store[4 * MOST + 64], *msg = store + 1 + n % 3;
    float y[MOST + 8], z[MOST + 8];
    memset(y, 0xA5, sizeof y);
    encode(w, k, msg, x, n, 1024, 0);
    w->decode(k, msg, n, 0, y, n);
    check_oracle(w, k, x, y, n, kind);
    for (size_t i = 0; i < n; i++) z[i] = normal(20, i);
    w->add(k, msg, n, 0, z, n);
    for (size_t i = 0; i < n; i++)
        if (!same(z[i], normal(20, i) + y[i])) {
            CHECK_FAIL("%s %s, kind %d: add, element %zu of %zu", w->name,
                       k->name, kind, i, n);
            return;
        }
    const float guard = y[n];
    uint32_t u;
    memcpy(&u, &guard, sizeof u);
    CHECK_EQ_U64(u, 0xA5A5A5A5u);
}

static void check_length(const tac__codec_kernels *k, size_t n, int kind)
{
    float x[MOST];
    for (size_t i = 0; i < n; i++) x[i] = input(kind, i);
    for (size_t w = 0; w < WIRES; w++) {
        check_bytes(wires[w], k, x, n, 0, kind);
        check_decode(wires[w], k, x, n, kind);
        if (w >= 2 && kind != 5 && kind != 6)
            check_bytes(wires[w], k, x, n, 12345, kind);
    }
}

static void check_table(const tac__codec_kernels *k)
{
    static const size_t long_ones[] = {255,  256,  257,  1023,
                                       1024, 1025, 2048, 2599};
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t n = 0; n < 70; n++) check_length(k, n, kind);
        for (size_t i = 0; i < 8; i++) check_length(k, long_ones[i], kind);
    }
}

/* The plain loops, against the portable ones. */
static void check_plain(const tac__codec_kernels *k)
{
    const tac__codec_kernels *ref = &tac__codec_ref;
    float x[200], old[200], a[200], b[200];
    for (size_t i = 0; i < 200; i++) {
        x[i] = input(0, i);
        old[i] = input(4, i);
    }
    for (size_t n = 0; n < 200; n += 7) {
        CHECK_EQ_U64(k->max_bits(x, n), ref->max_bits(x, n));
        k->prepare(a, x, 0.3f, old, 3.0f, n);
        for (size_t i = 0; i < n; i++) b[i] = x[i] * 0.3f + old[i] * 3.0f;
        CHECK_EQ_MEM(a, b, n * sizeof *a);
        k->prepare(a, x, 0.3f, NULL, 3.0f, n);
        for (size_t i = 0; i < n; i++) b[i] = x[i] * 0.3f;
        CHECK_EQ_MEM(a, b, n * sizeof *a);
        k->loss(a, x, old, 3.0f, n);
        for (size_t i = 0; i < n; i++) b[i] = (x[i] - old[i]) / 3.0f;
        CHECK_EQ_MEM(a, b, n * sizeof *a);
        k->axpy(a, 0.7f, x, n);
        for (size_t i = 0; i < n; i++) b[i] += 0.7f * x[i];
        CHECK_EQ_MEM(a, b, n * sizeof *a);
        const float d = k->dot(x, a, n), e = ref->dot(x, a, n);
        CHECK_EQ_MEM(&d, &e, sizeof d);
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)a[i];
        CHECK_NEAR(d, sum, 1e-3 + 1e-5 * fabs(sum));
    }
}

/* ---- what the formats promise ---------------------------------------------
 */

static float through(const tac__wire *w, float x, float neighbour)
{
    char msg[64];
    float in[2] = {x, neighbour}, out[2];
    const tac__codec_kernels *k = tac__codec_kernels_best();
    w->encode(k, msg, 2, 0, in, 2, 0, 0);
    w->decode(k, msg, 2, 0, out, 2);
    return out[0];
}

static void check_promises(void)
{
    static const float exact[] = {30000.0f,  32768.0f,     65504.0f,
                                  99968.0f,  1.0f,         -240000.0f,
                                  0x1p-149f, 0x1.ffcp127f, 0x1p-126f};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        CHECK_EQ_F64(through(&tac__wire_fp16, exact[i], 0), exact[i]);
    CHECK_NEAR(through(&tac__wire_fp16, 1e-8f, 0), 1e-8, 1e-8 * 0x1p-11);
    CHECK_NEAR(through(&tac__wire_fp16, 1e-8f, 1.0f), 1e-8,
               1e-8 * 0x1p-11); /* far below a half's smallest */
    CHECK(isinf(through(&tac__wire_fp16, INFINITY, 1.0f)));
    CHECK_EQ_F64(through(&tac__wire_fp16, 1.0f, INFINITY), 1.0);
    CHECK(through(&tac__wire_fp16, NAN, 1.0f) !=
          through(&tac__wire_fp16, NAN, 1.0f));
    CHECK_EQ_F64(through(&tac__wire_int8, BIGGEST, 0) <= BIGGEST, 1);
    CHECK_EQ(tac__wire_fp16.bytes(0), 0);
    CHECK_EQ(tac__wire_fp16.bytes(1), 4);
    CHECK_EQ(tac__wire_fp16.bytes(1024), 2050);
    CHECK_EQ(tac__wire_fp16.bytes(1025), 2054);
    CHECK_EQ(tac__wire_bf16.bytes(1025), 2050);
    CHECK_EQ(tac__wire_int8.bytes(256), 260);
    CHECK_EQ(tac__wire_int8.bytes(257), 265);
    CHECK_EQ(tac__wire_fp4.bytes(0), 0);
    CHECK_EQ(tac__wire_fp4.bytes(1), 5);
    CHECK_EQ(tac__wire_fp4.bytes(256), 132);
    CHECK_EQ(tac__wire_fp4.bytes(257), 137);
    CHECK_EQ_F64(through(&tac__wire_fp4, -0.5f, 2.0f), -0.5);
    CHECK_EQ_F64(through(&tac__wire_fp4, 1.5f, 2.0f), 2.0); /* a tie */
    CHECK_EQ_F64(through(&tac__wire_fp4, 0x1p-6f, 1.0f), 0x1p-6);
    CHECK_EQ_F64(through(&tac__wire_fp4, 0x1p-7f, 1.0f), 0x1p-6);
    CHECK_EQ_F64(through(&tac__wire_fp4, 0x1.fp-8f, 1.0f), 0);
    CHECK_EQ_F64(through(&tac__wire_fp4, BIGGEST, 1.0f), BIGGEST);
}

/* Keys as a request makes them: mixed. */
static uint64_t scrambled(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The mean over many keys is x: 4 standard errors of a uniform error. */
static void check_unbiased(const tac__codec_kernels *k, const tac__wire *w)
{
    enum { N = 256, KEYS = 4000 };
    static float x[N], y[N];
    static double sum[N];
    char msg[N + 8];
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < N; i++) x[i] = i ? 0.37f * normal(30, i) : 5.0f;
    for (uint64_t key = 1; key <= KEYS; key++) {
        w->encode(k, msg, N, 0, x, N, scrambled(key), 0);
        w->decode(k, msg, N, 0, y, N);
        for (size_t i = 0; i < N; i++) sum[i] += (double)y[i];
    }
    int far = 0;
    for (size_t i = 0; i < N; i++) {
        /* fp4's steps are at most as long as the element */
        const double least = 5.0 / 64, size = fabs((double)x[i]);
        const double step = w == &tac__wire_int8 ? 5.0 / 127
                            : size > least       ? size
                                                 : least;
        const double error = fabs(sum[i] / KEYS - (double)x[i]);
        far += error > 4 * 0.5 * step / sqrt(KEYS) + 1e-6;
    }
    CHECK_EQ(far, 0);
}

int main(void)
{
    int available = 0;
    for (size_t t = 0; tac__codec_kernel_tables[t]; t++) {
        const tac__codec_kernels *k = tac__codec_kernel_tables[t];
        if (!k->available()) {
            printf("left out: kernels %s, which this CPU can't run\n", k->name);
            continue;
        }
        available++;
        check_table(k);
        check_plain(k);
        check_unbiased(k, &tac__wire_int8);
        check_unbiased(k, &tac__wire_fp4);
    }
    CHECK(available > 0);
    check_promises();
    return tac_check_summary();
}
