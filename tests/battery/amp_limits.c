/* amp_limits.c: where a number of 16 bits would overflow, cancel or vanish,
 * something wider must be in its place: statistics of layer norm, norms, sums
 * of losses, small updates. */
#include "amp_net.h"

/* --- layer norm of f16 inputs of magnitude 1e3, against f64 --- */

enum { ROWS = 5, COLS = 64 };

static void layer_norm_f64(const uint16_t *x, double *y)
{
    double mean = 0, var = 0;

    for (int j = 0; j < COLS; ++j) mean += (double)tac_f16_to_f32(x[j]) / COLS;
    for (int j = 0; j < COLS; ++j) {
        const double d = (double)tac_f16_to_f32(x[j]) - mean;
        var += d * d / COLS;
    }
    for (int j = 0; j < COLS; ++j)
        y[j] = ((double)tac_f16_to_f32(x[j]) - mean) / sqrt(var + 1e-5);
}

static void layer_norm_of_thousands(tac_dtype low)
{
    amp_log lines;
    eng_world w = amp_open(&lines, TAC_F32, 2);
    const size_t shape[2] = {ROWS, COLS};
    uint16_t x[ROWS * COLS];
    tac_tensor *in = NULL, *y = NULL;
    tac_autocast region;
    double want[COLS];

    amp_add(&w, "weight", 1, COLS, 0, 0);
    amp_add(&w, "bias", 1, COLS, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    for (size_t j = 0; j < COLS; ++j)
        ((float *)tac_params_value(w.params, 0))[j] = 1.0F;
    for (size_t i = 0; i < ROWS * COLS; ++i)
        x[i] = tac_f32_to_f16((float)(1000.0 + 2000.0 * eng_value(5, 1, i)));
    CHECK_OK(tac_tape_create(w.params, NULL, &w.tape));
    CHECK_OK(tac_tape_begin(w.tape, NULL));
    CHECK_OK(tac_autocast_begin(w.tape, low, NULL, &region));
    CHECK_OK(tac_tape_input(w.tape, "x", TAC_F16, 2, shape, x, 0, &in));
    if (CHECK_OK(tac_op_layer_norm(w.tape, in, tac_tape_param(w.tape, 0),
                                   tac_tape_param(w.tape, 1), 1e-5, &y)))
        for (size_t i = 0; i < ROWS; ++i) {
            layer_norm_f64(x + i * COLS, want);
            for (size_t j = 0; j < COLS; ++j)
                CHECK_NEAR(amp_get(y->dtype, y->data, i * COLS + j), want[j],
                           1e-5);
        }
    CHECK_OK(tac_autocast_end(&region));
    eng_close(&w);
}

/* --- norms: squares of 5000 are beyond f16 --- */

static void norm_of_thousands(tac_dtype dtype)
{
    amp_log lines;
    eng_world w = amp_open(&lines, dtype, 1);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    tac_optimizer *o = NULL;

    amp_add(&w, "x", 1, 4, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    for (size_t i = 0; i < 4; ++i)
        eng_set(tac_params_grad_dtype(w.params), tac_params_grads(w.params), i,
                5000.0);
    if (CHECK_OK(tac_optimizer_create(w.params, &c, &o))) {
        CHECK_OK(tac_optimizer_clip(o, INFINITY, NULL));
        CHECK_EQ_F64(*tac_optimizer_norm(o), 10000.0);
    }
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* --- losses: the sum of 70000 of them is beyond f16 --- */

enum { SAMPLES = 70000, CLASSES = 3 };

static void loss_of_many_rows(tac_dtype low)
{
    amp_log lines;
    eng_world w = amp_open(&lines, TAC_F32, 2);
    const size_t shape[2] = {SAMPLES, CLASSES};
    uint16_t *logits = calloc(SAMPLES * CLASSES, sizeof *logits);
    int32_t *labels = calloc(SAMPLES, sizeof *labels);
    tac_tensor *x = NULL, *y = NULL;
    tac_autocast region;
    tac_xent out;

    if (logits == NULL || labels == NULL) exit(1);
    amp_add(&w, "unused", 1, 1, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    CHECK_OK(tac_tape_create(w.params, NULL, &w.tape));
    CHECK_OK(tac_tape_begin(w.tape, NULL));
    CHECK_OK(tac_autocast_begin(w.tape, low, NULL, &region));
    CHECK_OK(tac_tape_input(w.tape, "x", low, 2, shape, logits, 0, &x));
    CHECK_OK(tac_tape_input(w.tape, "y", TAC_I32, 1, shape, labels, 0, &y));
    if (CHECK_OK(tac_op_softmax_cross_entropy(w.tape, x, y, &out)))
        CHECK_NEAR(*(const double *)out.loss->data, SAMPLES * log(CLASSES),
                   1e-2);
    CHECK_OK(tac_autocast_end(&region));
    free(logits);
    free(labels);
    eng_close(&w);
}

/* --- updates of 1e-5 of weights kept in bf16 --- */

enum { WEIGHTS = 768 };

static double weight(size_t i)
{
    return eng_value(31, 0,
                     i); /* at least 0.02, so 1e-5 is below half an ulp */
}

static double ulp_of(double x)
{
    return ldexp(1.0, ilogb(x) - 7);
}

/* One AdamW step of size lr on all weights. How many have moved, and how many
 * may be expected to if each goes up or down with the right probability. */
static size_t moved(tac_dtype dtype, int stochastic, double lr, int *warnings,
                    double *expected)
{
    amp_log lines;
    eng_world w = amp_open(&lines, dtype, 1);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_optimizer *o = NULL;
    double before[WEIGHTS];
    size_t n = 0;

    c.lr = lr;
    c.weight_decay = 0;
    c.stochastic_rounding = stochastic;
    c.seed = 4;
    amp_add(&w, "w", 1, WEIGHTS, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    *expected = 0;
    for (size_t i = 0; i < WEIGHTS; ++i) {
        const uint16_t h = tac_f32_to_bf16((float)weight(i));
        before[i] = (double)tac_bf16_to_f32(h);
        if (dtype == TAC_BF16)
            ((uint16_t *)tac_params_values(w.params))[i] = h;
        else
            ((float *)tac_params_values(w.params))[i] = (float)before[i];
        ((float *)tac_params_grads(w.params))[i] = i % 2 ? 1.0F : -1.0F;
        *expected += lr / ulp_of(before[i]);
    }
    if (CHECK_OK(tac_optimizer_create(w.params, &c, &o)))
        CHECK_OK(tac_optimizer_step(o, NULL));
    for (size_t i = 0; i < WEIGHTS; ++i)
        n += amp_get(dtype, tac_params_values(w.params), i) != before[i];
    *warnings = lines.warnings;
    tac_optimizer_destroy(o);
    eng_close(&w);
    return n;
}

static void small_updates(void)
{
    double expected;
    int warnings;

    CHECK_EQ_U64(moved(TAC_BF16, 0, 1e-5, &warnings, &expected), 0);
    CHECK_EQ(warnings, 1); /* and it said so */
    CHECK_EQ_U64(moved(TAC_F32, 0, 1e-5, &warnings, &expected), WEIGHTS);
    CHECK_EQ(warnings, 0);
    const double n = (double)moved(TAC_BF16, 1, 1e-5, &warnings, &expected);
    CHECK_EQ(warnings, 0);
    CHECK_MSG(n >= 1 && fabs(n - expected) < 5 * sqrt(expected),
              "%g weights have moved, %g were expected", n, expected);
}

/* --- a gradient of 0, for long, in f16 with AdamW's eps of 1e-8 --- */

static void nothing_from_nothing(tac_dtype dtype)
{
    amp_log lines;
    eng_world w = amp_open(&lines, dtype, 1);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_scaler *s = NULL;
    tac_optimizer *o = NULL;

    c.weight_decay = 0;
    amp_add(&w, "x", 1, 33, 0, 0);
    CHECK_OK(tac_params_layout(w.params, NULL, NULL, NULL));
    CHECK_OK(tac_params_init(w.params, 1));
    const double first = amp_get(dtype, tac_params_values(w.params), 32);
    if (CHECK_OK(tac_optimizer_create(w.params, &c, &o)) &&
        CHECK_OK(tac_scaler_create(w.dev, NULL, &s)))
        for (int k = 0; k < 100; ++k) {
            CHECK_OK(tac_scaler_step(s, o, NULL));
            CHECK_OK(tac_scaler_update(s, NULL));
        }
    CHECK_EQ_F64(amp_get(dtype, tac_params_values(w.params), 32), first);
    CHECK_EQ_F64(amp_scale(s), 65536);
    tac_scaler_destroy(s);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

int main(void)
{
    const tac_dtype types[] = {TAC_F32, TAC_F16, TAC_BF16};

    for (int i = 0; i < 3; ++i) {
        norm_of_thousands(types[i]);
        nothing_from_nothing(types[i]);
    }
    for (int i = 1; i < 3; ++i) {
        layer_norm_of_thousands(types[i]);
        loss_of_many_rows(types[i]);
    }
    small_updates();
    return tac_check_summary();
}
