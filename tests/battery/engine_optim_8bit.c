/* engine_optim_8bit.c: AdamW with 8-bit moments: the maps; one step of every
 * kernel set against f64, element by element, from the same codes; what the
 * codes must be at ties, zeros and ends; equal bits of all sets; and long runs
 * against 32-bit moments. */
#include <float.h>

#include "engine_test.h"
#include "kernel_check.h"
#include "tacit/optim.h"

enum { BLOCK = TAC_QUANT_BLOCK };

/* ------------------------------------------------------------------ maps */

/* The definition, written again: cells of [0.1, 1], their centres. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void build_map(int is_signed, double *map)
{
    size_t n = 0;
    for (int i = 0; i < 7; ++i) {
        const int cells = is_signed ? 1 << i : 2 << i;
        for (int j = 0; j < cells; ++j) {
            const double low = 0.1 + 0.9 * j / cells;
            const double high = 0.1 + 0.9 * (j + 1) / cells;
            map[n++] = (low + high) / 2 * pow(10, i - 6);
            if (is_signed) map[n] = -map[n - 1], n++;
        }
    }
    map[n++] = 0;
    map[n++] = 1;
    CHECK_EQ(n, 256);
    qsort(map, n, sizeof *map, by_value);
}

static uint64_t checksum(const float *map)
{
    const unsigned char *x = (const unsigned char *)map;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < 256 * sizeof *map; ++i)
        h = (h ^ x[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void check_value(const float *map, size_t i, double want)
{
    CHECK_EQ_F64((double)map[i], (double)(float)want);
}

static void test_maps(void)
{
    const float *s = tac_quant_map(1), *u = tac_quant_map(0);
    double map[256];
    for (int is_signed = 0; is_signed < 2; ++is_signed) {
        build_map(is_signed, map);
        for (size_t i = 0; i < 256; ++i)
            CHECK_NEAR((double)tac_quant_map(is_signed)[i], map[i],
                       6e-8 * fabs(map[i]));
    }
    CHECK_EQ_U64(checksum(s), UINT64_C(0x1e28a45b2a45b220));
    CHECK_EQ_U64(checksum(u), UINT64_C(0x5578dd4560cc7b77));
    check_value(s, 0, -0.99296875);
    check_value(s, 126, -5.5e-7);
    check_value(s, 127, 0);
    check_value(s, 128, 5.5e-7);
    check_value(s, 254, 0.99296875);
    check_value(s, 255, 1);
    check_value(u, 0, 0);
    check_value(u, 1, 3.25e-7);
    check_value(u, 2, 7.75e-7);
    check_value(u, 3, 2.125e-6);
    check_value(u, 254, 0.996484375);
    check_value(u, 255, 1);
}

/* ------------------------------------------------------------- one step */

typedef struct tensor {
    size_t n, blocks;
    float *p, *g, *absmax1, *absmax2;
    uint8_t *code1, *code2;
} tensor;

static tensor tensor_make(size_t n, uint64_t id)
{
    const size_t blocks = (n + BLOCK - 1) / BLOCK;
    tensor t = {n,
                blocks,
                guarded(n * sizeof(float)),
                guarded(n * sizeof(float)),
                guarded(blocks * sizeof(float)),
                guarded(blocks * sizeof(float)),
                guarded(n),
                guarded(n)};
    for (size_t i = 0; i < n; ++i) t.p[i] = random_unit(id, i);
    memset(t.absmax1, 0, blocks * sizeof(float));
    memset(t.absmax2, 0, blocks * sizeof(float));
    memset(t.code1, 127, n);
    memset(t.code2, 0, n);
    return t;
}

static tensor tensor_copy(const tensor *a)
{
    tensor t = tensor_make(a->n, 0);
    memcpy(t.p, a->p, a->n * sizeof(float));
    memcpy(t.g, a->g, a->n * sizeof(float));
    memcpy(t.absmax1, a->absmax1, a->blocks * sizeof(float));
    memcpy(t.absmax2, a->absmax2, a->blocks * sizeof(float));
    memcpy(t.code1, a->code1, a->n);
    memcpy(t.code2, a->code2, a->n);
    return t;
}

static void tensor_free(tensor *t)
{
    guarded_free(t->p);
    guarded_free(t->g);
    guarded_free(t->absmax1);
    guarded_free(t->absmax2);
    guarded_free(t->code1);
    guarded_free(t->code2);
}

/* Gradients of many sizes, zeros, whole blocks of zeros, what is no number. */
static void fill_gradient(tensor *t, uint64_t step)
{
    for (size_t i = 0; i < t->n; ++i) {
        const float u = random_unit(500 + step, i);
        const float decades = 6 * random_unit(600 + step, i);
        float g = u * powf(10, -fabsf(decades));
        if (i / BLOCK % 5 == 1) g = 0;
        if (i / BLOCK % 5 == 2) g *= 1e-13F;
        if (i / BLOCK % 5 == 3) g *= 1e17F;
        if (i % 97 == 13) g = 0;
        if (step % 2 == 1 && i % 211 == 7) g = NAN;
        if (step % 2 == 1 && i % 211 == 11) g = -INFINITY;
        if (step % 2 == 1 && i % 211 == 15) g = 3e38F; /* squares overflow */
        t->g[i] = g;
    }
}

static tac_status run_step(const tac_kernels *k, const tac_kctx *kc, tensor *t,
                           const tac_adamw_args *a, const tac_step_scalars *s)
{
    return k->adamw8bit(kc, t->n, a, s, t->p, t->g, t->code1, t->absmax1,
                        t->code2, t->absmax2);
}

/* x is as near to its entry as to any other, and of its sign. */
static int is_nearest(int is_signed, uint8_t code, double x)
{
    const float *map = tac_quant_map(is_signed);
    const double off = fabs((double)map[code] - x);
    for (int i = code > 0 ? code - 1 : 0; i < 256 && i <= code + 1; ++i)
        if (fabs((double)map[i] - x) < off - 1e-6 * fabs(x) - 1e-12)
            return is_signed && x < 0 && code == 126; /* not to 0 */
    return !((double)map[code] * x < 0) && !(x < -1e-36 && map[code] == 0);
}

/* Element i of `before` after a step in f64: new moments, and the value. */
static void oracle(const tensor *before, size_t i, const tac_adamw_args *a,
                   const tac_step_scalars *s, double *m, double *v, double *p)
{
    const double lr = s->lr * a->lr_scale;
    const double b1 = (double)(float)a->beta1, b2 = (double)(float)a->beta2;
    const double g =
        (double)before->g[i] / (double)s->grad_scale * s->clip_coef;
    const double root = sqrt(s->bias_correction2);
    *m = (double)tac_quant_map(1)[before->code1[i]] *
         (double)before->absmax1[i / BLOCK];
    *v = (double)tac_quant_map(0)[before->code2[i]] *
         (double)before->absmax2[i / BLOCK];
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    *p = (double)before->p[i];
    if (!isfinite(g) || *v >= 0x1p126) {
        *m = *v = 0;
        return;
    }
    *p -= lr * root / s->bias_correction1 * *m / (sqrt(*v) + root * a->eps);
    *p *= 1 - lr * a->weight_decay;
}

static void check_absmax(double got, double want, size_t b)
{
    CHECK_MSG(fabs(got - want) <= 2e-6 * want + 2e-38,
              "absmax of block %zu is %.9g, not %.9g", b, got, want);
}

/* Compares block b of `after` with the oracle's from `before`. */
static void check_block(const tensor *before, const tensor *after, size_t b,
                        const tac_adamw_args *a, const tac_step_scalars *s)
{
    const size_t from = b * BLOCK;
    const size_t to = from + BLOCK < before->n ? from + BLOCK : before->n;
    double m[BLOCK], v[BLOCK], p, most1 = 0, most2 = 0;
    for (size_t i = from; i < to; ++i) {
        oracle(before, i, a, s, &m[i - from], &v[i - from], &p);
        most1 = fmax(most1, fabs(m[i - from]));
        most2 = fmax(most2, v[i - from]);
        CHECK_MSG(fabs((double)after->p[i] - p) <= 4e-6 * fmax(1, fabs(p)),
                  "value %zu is %.9g, not %.9g", i, (double)after->p[i], p);
    }
    check_absmax((double)after->absmax1[b], most1, b);
    check_absmax((double)after->absmax2[b], most2, b);
    for (size_t i = from; i < to; ++i) {
        const double x1 = most1 > FLT_MIN ? m[i - from] / most1 : 0;
        const double x2 = most2 > FLT_MIN ? v[i - from] / most2 : 0;
        CHECK_MSG(is_nearest(1, after->code1[i], x1), "code1[%zu] %u of %.9g",
                  i, after->code1[i], x1);
        CHECK_MSG(is_nearest(0, after->code2[i], x2), "code2[%zu] %u of %.9g",
                  i, after->code2[i], x2);
    }
}

static tac_step_scalars scalars(unsigned t, float scale)
{
    return (tac_step_scalars){.lr = 0.01,
                              .clip_coef = 1,
                              .bias_correction1 = 1 - pow(0.9, t),
                              .bias_correction2 = 1 - pow(0.999, t),
                              .grad_scale = scale,
                              .applied = t - 1};
}

/* The sets after the reference must give its very bits. */
static void same_as(const tensor *a, const tensor *b)
{
    CHECK_EQ_MEM(a->p, b->p, a->n * sizeof(float));
    CHECK_EQ_MEM(a->code1, b->code1, a->n);
    CHECK_EQ_MEM(a->code2, b->code2, a->n);
    CHECK_EQ_MEM(a->absmax1, b->absmax1, a->blocks * sizeof(float));
    CHECK_EQ_MEM(a->absmax2, b->absmax2, a->blocks * sizeof(float));
}

static void check_steps(const eng_world *w, const eng_world *ref, size_t n)
{
    const tac_adamw_args a = {1, 0.9, 0.999, 1e-8, 0.1, 1, NULL, NULL, TAC_F16};
    const tac_kctx kc = tac_device_kctx(w->dev, NULL);
    const tac_kctx ref_kc = tac_device_kctx(ref->dev, NULL);
    tensor t = tensor_make(n, n);
    for (unsigned step = 1; step <= 4; ++step) {
        const tac_step_scalars s = scalars(step, step == 3 ? 1024 : 1);
        fill_gradient(&t, step);
        tensor before = tensor_copy(&t), other = tensor_copy(&t);
        CHECK_OK(
            run_step(tac_device_kernels(w->dev, TAC_F32), &kc, &t, &a, &s));
        for (size_t b = 0; b < t.blocks; ++b)
            check_block(&before, &t, b, &a, &s);
        CHECK_OK(run_step(tac_device_kernels(ref->dev, TAC_F32), &ref_kc,
                          &other, &a, &s));
        same_as(&t, &other);
        tensor_free(&before);
        tensor_free(&other);
    }
    tensor_free(&t);
}

/* --------------------------------------------------------- codes at ties */

/* Without a memory (betas 0) exp_avg is the gradient, and a 1 in the block
 * makes absmax 1, so the code is that of the gradient itself. */
static void check_codes(const eng_world *w, const float *x, const uint8_t *want,
                        size_t n)
{
    const tac_adamw_args a = {1, 0, 0, 1e-8, 0, 1, NULL, NULL, TAC_F16};
    const tac_kctx kc = tac_device_kctx(w->dev, NULL);
    const tac_step_scalars s = {.lr = 0.01,
                                .clip_coef = 1,
                                .bias_correction1 = 1,
                                .bias_correction2 = 1,
                                .grad_scale = 1};
    tensor t = tensor_make(n, 1);
    memcpy(t.g, x, n * sizeof *x);
    CHECK_OK(run_step(tac_device_kernels(w->dev, TAC_F32), &kc, &t, &a, &s));
    for (size_t i = 0; i < n; ++i)
        CHECK_MSG(t.code1[i] == want[i], "%.9g has code %u, not %u",
                  (double)x[i], t.code1[i], want[i]);
    tensor_free(&t);
}

static void test_ties(const eng_world *w)
{
    const float *map = tac_quant_map(1);
    for (size_t k = 0; k < 255; ++k) {
        const float middle = (map[k] + map[k + 1]) * 0.5F;
        /* To 0 only from above. */
        const uint8_t low = (uint8_t)k;
        const uint8_t high = (uint8_t)(k + 1 == 127 ? 126 : k + 1);
        const float x[7] = {1,
                            middle,
                            nextafterf(middle, 2),
                            nextafterf(middle, -2),
                            map[k],
                            map[k + 1],
                            0};
        const uint8_t want[7] = {255, low, high, low, low, (uint8_t)(k + 1),
                                 127};
        check_codes(w, x, want, 7);
    }
    const float ends[5] = {1, -1, -0.9999F, -1e-30F, 1e-30F};
    const uint8_t codes[5] = {255, 0, 0, 126, 127};
    check_codes(w, ends, codes, 5);
}

/* ------------------------------------------------------------ zero, skips */

static void test_zero_block(const eng_world *w)
{
    const tac_adamw_args a = {1, 0.9, 0.999, 1e-8, 0, 1, NULL, NULL, TAC_F16};
    const tac_kctx kc = tac_device_kctx(w->dev, NULL);
    const tac_step_scalars s = scalars(1, 1);
    tac_step_scalars inf = s;
    tensor t = tensor_make(300, 3);
    memset(t.g, 0, 300 * sizeof(float));
    tensor before = tensor_copy(&t);
    for (int i = 0; i < 100; ++i)
        CHECK_OK(
            run_step(tac_device_kernels(w->dev, TAC_F32), &kc, &t, &a, &s));
    same_as(&t, &before); /* zeros stay, as the codes of 0.0 */
    inf.found_inf = 1;
    fill_gradient(&t, 1);
    CHECK_OK(run_step(tac_device_kernels(w->dev, TAC_F32), &kc, &t, &a, &inf));
    same_as(&t, &before);
    tensor_free(&t);
    tensor_free(&before);
}

static void test_set(const char *isa, const eng_world *ref)
{
    static const size_t sizes[] = {0,   1,   15,  255,  256,
                                   257, 511, 513, 4096, 40001};
    eng_world w = eng_open(isa, TAC_F32, 3);
    const long failed = tac_check_failed();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        check_steps(&w, ref, sizes[i]);
    test_ties(&w);
    test_zero_block(&w);
    if (tac_check_failed() > failed) fprintf(stderr, "in %s\n", isa);
    eng_close(&w);
}

static void test_f64(const eng_world *w)
{
    const tac_kernels *k = tac_device_kernels(w->dev, TAC_F64);
    const tac_kctx kc = tac_device_kctx(w->dev, NULL);
    CHECK_STATUS(
        k->adamw8bit(&kc, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        TAC_ERR_UNSUPPORTED);
}

int main(void)
{
    const tac_kernel_set *const *sets = tac_cpu_kernel_sets();
    eng_world ref = eng_open("ref", TAC_F32, 1);
    char why[256];
    test_maps();
    test_f64(&ref);
    for (size_t i = 0; sets[i]; ++i)
        if (sets[i]->available(why, sizeof why)) test_set(sets[i]->name, &ref);
    eng_close(&ref);
    return tac_check_summary();
}
