/* engine_half_optim.c: optimizers over 16-bit parameters. The oracle is the f32
 * table of the same device on the widened parameters: their new value, rounded
 * to nearest or by cast_stochastic of the whole tensor at once, and the state
 * have to be equal to the bit. */
#include "kernel_check.h"

#include <stdio.h>

#include "cpu/half/half.h"
#include "tacit/pool.h"

typedef struct rig {
    tac_dtype type;
    tac_kctx kc;
    const tac_kernels *k, *wide; /* under test, of f32 */
    char what[160];
} rig;

enum { STATES = 4 }; /* arrays of state at most */

/* Two copies of a tensor's arrays: of the 16-bit kernel, of the f32 one. */
typedef struct tensor {
    size_t n;
    uint16_t *p;
    float *p32, *g;
    void *state[STATES], *state32[STATES];
    size_t bytes[STATES];
} tensor;

static void narrow(const rig *r, size_t n, const float *x, uint16_t *h)
{
    CHECK_OK(r->k->cast(&r->kc, n, TAC_F32, x, r->type, h, 0));
}

static void widen(const rig *r, size_t n, const uint16_t *h, float *x)
{
    CHECK_OK(r->k->cast(&r->kc, n, r->type, h, TAC_F32, x, 0));
}

static tensor tensor_make(const rig *r, size_t n, const size_t bytes[STATES])
{
    tensor t = {.n = n,
                .p = guarded(n * sizeof(uint16_t)),
                .p32 = guarded(n * sizeof(float)),
                .g = guarded(n * sizeof(float))};
    for (size_t i = 0; i < n; ++i) {
        t.p32[i] = random_unit(1, i);
        t.g[i] = random_unit(2, i);
    }
    narrow(r, n, t.p32, t.p);
    widen(r, n, t.p, t.p32);
    for (size_t s = 0; s < STATES; ++s) {
        t.bytes[s] = bytes[s];
        t.state[s] = guarded(bytes[s]);
        t.state32[s] = guarded(bytes[s]);
        memset(t.state[s], 0, bytes[s]);
        memset(t.state32[s], 0, bytes[s]);
    }
    return t;
}

static void tensor_free(tensor *t)
{
    guarded_free(t->p);
    guarded_free(t->p32);
    guarded_free(t->g);
    for (size_t s = 0; s < STATES; ++s) {
        guarded_free(t->state[s]);
        guarded_free(t->state32[s]);
    }
}

/* p against p32 as `round` has it; then p32 is what p is. */
static void compare(const rig *r, tensor *t, const tac_round *round)
{
    uint16_t *want = guarded(t->n * sizeof *want);
    if (round)
        CHECK_OK(r->wide->cast_stochastic(&r->kc, t->n, t->p32, r->type, want,
                                          round));
    else
        narrow(r, t->n, t->p32, want);
    CHECK_MSG(memcmp(want, t->p, t->n * sizeof *want) == 0, "%s: parameters",
              r->what);
    for (size_t s = 0; s < STATES; ++s)
        CHECK_MSG(memcmp(t->state[s], t->state32[s], t->bytes[s]) == 0,
                  "%s: state %zu", r->what, s);
    widen(r, t->n, t->p, t->p32);
    guarded_free(want);
}

static const tac_step_scalars scalars = {.lr = 0.01,
                                         .grad_scale = 8,
                                         .clip_coef = 0.5f,
                                         .bias_correction1 = 0.1,
                                         .bias_correction2 = 0.001};

typedef void step_fn(const rig *r, tensor *t, const tac_step_scalars *s,
                     const tac_round *round);

static void sgd(const rig *r, tensor *t, const tac_step_scalars *s,
                const tac_round *round)
{
    const tac_sgd_args a = {.lr_scale = 1,
                            .momentum = 0.9,
                            .weight_decay = 0.01,
                            .nesterov = 1,
                            .round = round};
    CHECK_OK(r->k->sgd(&r->kc, t->n, &a, s, t->p, t->g, t->state[0]));
    CHECK_OK(r->wide->sgd(&r->kc, t->n, &a, s, t->p32, t->g, t->state32[0]));
}

static void adamw(const rig *r, tensor *t, const tac_step_scalars *s,
                  const tac_round *round)
{
    const tac_adamw_args a = {.lr_scale = 1,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .weight_decay = 0.01,
                              .round = round};
    CHECK_OK(
        r->k->adamw(&r->kc, t->n, &a, s, t->p, t->g, t->state[0], t->state[1]));
    CHECK_OK(r->wide->adamw(&r->kc, t->n, &a, s, t->p32, t->g, t->state32[0],
                            t->state32[1]));
}

static void adamw8bit(const rig *r, tensor *t, const tac_step_scalars *s,
                      const tac_round *round)
{
    const tac_adamw_args a = {.lr_scale = 1,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .weight_decay = 0.01,
                              .round = round};
    CHECK_OK(r->k->adamw8bit(&r->kc, t->n, &a, s, t->p, t->g, t->state[0],
                             t->state[1], t->state[2], t->state[3]));
    CHECK_OK(r->wide->adamw8bit(&r->kc, t->n, &a, s, t->p32, t->g,
                                t->state32[0], t->state32[1], t->state32[2],
                                t->state32[3]));
}

/* Rows of a batch of two where the size is even, else a vector. */
static tac_adafactor_shape shape_of(size_t n)
{
    if (n % 2 == 0 && n > 0) return (tac_adafactor_shape){2, n / 2, 1};
    return (tac_adafactor_shape){1, 0, n};
}

static void adafactor(const rig *r, tensor *t, const tac_step_scalars *s,
                      const tac_round *round)
{
    const tac_adafactor_args a = {.lr_scale = 1,
                                  .eps1 = 1e-30,
                                  .eps2 = 1e-3,
                                  .clip_threshold = 1,
                                  .decay_rate = -0.8,
                                  .weight_decay = 0.01,
                                  .beta1 = 0.9,
                                  .scale_parameter = 1,
                                  .round = round};
    const tac_adafactor_shape d = shape_of(t->n);
    void *work = guarded(tac_adafactor_work(&d, tac_pool_size(r->kc.pool)));
    CHECK_OK(r->k->adafactor(&r->kc, &d, &a, s, t->p, t->g, t->state[0],
                             t->state[1], t->state[2], work));
    CHECK_OK(r->wide->adafactor(&r->kc, &d, &a, s, t->p32, t->g, t->state32[0],
                                t->state32[1], t->state32[2], work));
    guarded_free(work);
}

static const struct {
    const char *name;
    step_fn *step;
} optimizers[] = {{"sgd", sgd},
                  {"adamw", adamw},
                  {"adamw8bit", adamw8bit},
                  {"adafactor", adafactor}};

/* Three steps to nearest and three stochastic ones, then one that found inf. */
static void train(rig *r, size_t which, size_t n)
{
    const size_t bytes[STATES] = {4 * n, 4 * n + 4, 4 * n, 4 * n + 4};
    tensor t = tensor_make(r, n, bytes);
    uint16_t *before = guarded(n * sizeof *before);
    tac_step_scalars s = scalars;
    for (uint64_t step = 0; step < 7; ++step) {
        const tac_round round = {42, &step, 7, 1000003};
        const tac_round *how = step % 2 ? &round : NULL;
        s.applied = step;
        s.found_inf = step == 6;
        snprintf(r->what, sizeof r->what, "%s %s %zu step %d, %d threads",
                 tac_dtype_name(r->type), optimizers[which].name, n, (int)step,
                 tac_pool_size(r->kc.pool));
        memcpy(before, t.p, n * sizeof *before);
        optimizers[which].step(r, &t, &s, how);
        if (s.found_inf != 0)
            CHECK_EQ_MEM(before, t.p, n * sizeof *before);
        else if (n > 100) /* few may stay where they are */
            CHECK(memcmp(before, t.p, n * sizeof *before) != 0);
        compare(r, &t, s.found_inf != 0 ? NULL : how);
    }
    guarded_free(before);
    tensor_free(&t);
}

/* Gradients are f32: these are the f32 table's. */
static void gradients(const rig *r)
{
    float g[5] = {2, -4, INFINITY, 8, NAN};
    tac_step_scalars s = {.grad_scale = 2, .clip_coef = 1};
    uint64_t first = UINT64_MAX;
    CHECK_OK(r->k->unscale(&r->kc, 2, g, &s));
    CHECK_EQ_F64((double)g[0], 1);
    CHECK_EQ_F64((double)s.found_inf, 0);
    CHECK_OK(r->k->unscale(&r->kc, 5, g, &s));
    CHECK_EQ_F64((double)s.found_inf, 1);
    CHECK_OK(r->k->first_bad(&r->kc, 5, g, 100, &s, &first));
    CHECK_EQ(first, 102);
}

/* Scratch stays where it is after the first call with a shape. */
static void scratch_is_kept(const rig *r)
{
    enum { N = 40, IN = 300, OUT = 200 };
    const tac__half *h = tac__half_of(&r->kc);
    uint16_t *x = guarded(N * IN * 2), *w = guarded(IN * OUT * 2);
    uint16_t *y = guarded(N * OUT * 2);
    const float *whole = NULL, *part = NULL;
    memset(x, 0, N * IN * 2);
    memset(w, 0, IN * OUT * 2);
    for (size_t i = 0; i < 4; ++i) {
        const size_t n = i % 2 ? N / 2 : N;
        CHECK_OK(r->k->linear_forward(&r->kc, n, IN, OUT, x, w, NULL,
                                      TAC_ACT_NONE, y));
        CHECK_OK(r->k->linear_backward_data(&r->kc, n, IN, OUT, y, w, x, 0));
        if (i > 0) CHECK(h->whole.p == whole && h->parts[0].space.p == part);
        whole = h->whole.p;
        part = h->parts[0].space.p;
    }
    guarded_free(x);
    guarded_free(w);
    guarded_free(y);
}

static void run(tac_device *dev, tac_dtype type)
{
    static const size_t sizes[] = {0, 1, 255, 256, 2048, 2049, 40001};
    rig r = {.type = type,
             .kc = tac_device_kctx(dev, NULL),
             .k = tac_device_kernels(dev, type),
             .wide = tac_device_kernels(dev, TAC_F32)};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; ++i)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; ++j)
            train(&r, i, sizes[j]);
    gradients(&r);
}

static void run_device(const char *isa, int threads)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx;
    tac_device *dev;
    config.threads = threads;
    if (!CHECK_OK(tac_context_create(&config, &ctx))) return;
    if (CHECK_OK(tac_device_open(ctx, "cpu", isa, &dev))) {
        const rig r = {.type = TAC_F16,
                       .kc = tac_device_kctx(dev, NULL),
                       .k = tac_device_kernels(dev, TAC_F16)};
        run(dev, TAC_F16);
        run(dev, TAC_BF16);
        scratch_is_kept(&r);
        tac_device_close(dev);
    }
    tac_context_destroy(ctx);
}

int main(void)
{
    run_device("ref", 2);
    run_device(NULL, 1);
    run_device(NULL, 3);
    return tac_check_summary();
}
