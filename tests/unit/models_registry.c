/* What a model is made of: names, shapes and counts of parameters, operations,
 * shapes of outputs, and messages for what can't be made. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "models_setup.h"

static models_rig rig;

static void teardown(void)
{
    models_close(&rig);
}

TestSuite(models_registry, .fini = teardown);

typedef struct expected {
    const char *name;
    int ndim;
    size_t shape[4];
    double fan_in;
} expected;

static void expect_params(const expected *want, size_t n, size_t elements)
{
    cr_assert_eq(tac_params_count(rig.params), n);
    for (size_t i = 0; i < n; ++i) {
        const tac_param *p = tac_params_get(rig.params, i);
        cr_expect_str_eq(p->name, want[i].name);
        cr_assert_eq(p->ndim, want[i].ndim);
        for (int d = 0; d < p->ndim; ++d)
            cr_expect_eq(p->shape[d], want[i].shape[d]);
        cr_expect_eq(p->init.kind, TAC_INIT_FAN_IN);
        cr_expect_eq(p->init.value, want[i].fan_in);
    }
    cr_expect_eq(tac_params_elements(rig.params), elements);
}

Test(models_registry, cnn)
{
    const expected want[] = {
        {"conv1.weight", 4, {32, 1, 3, 3}, 9},    {"conv1.bias", 1, {32}, 9},
        {"conv2.weight", 4, {64, 32, 3, 3}, 288}, {"conv2.bias", 1, {64}, 288},
        {"fc1.weight", 2, {128, 3136}, 3136},     {"fc1.bias", 1, {128}, 3136},
        {"fc2.weight", 2, {10, 128}, 128},        {"fc2.bias", 1, {10}, 128},
    };
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, "cnn", NULL), TAC_OK);
    expect_params(want, 8, 421642);
    cr_expect_eq(tac_model_flop_forward(rig.model), 8482304);
    cr_expect_eq(tac_model_flop_per_sample(rig.model), 24995328);
    cr_expect_str_eq(tac_model_spec(rig.model), "cnn");
}

Test(models_registry, mlp_default)
{
    const expected want[] = {
        {"fc1.weight", 2, {500, 784}, 784},
        {"fc1.bias", 1, {500}, 784},
        {"fc2.weight", 2, {10, 500}, 500},
        {"fc2.bias", 1, {10}, 500},
    };
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, "mlp", NULL), TAC_OK);
    expect_params(want, 4, 397510);
    cr_expect_eq(tac_model_flop_forward(rig.model), 2 * (392000 + 5000));
    cr_expect_eq(tac_model_flop_per_sample(rig.model), 4 * 392000 + 6 * 5000);
}

Test(models_registry, mlp_of_three)
{
    const tac_model_config c = {sizeof(c), 3, 5, 2, 4, 0};
    const expected want[] = {
        {"fc1.weight", 2, {7, 30}, 30}, {"fc1.bias", 1, {7}, 30},
        {"fc2.weight", 2, {1, 7}, 7},   {"fc2.bias", 1, {1}, 7},
        {"fc3.weight", 2, {9, 1}, 1},   {"fc3.bias", 1, {9}, 1},
        {"fc4.weight", 2, {4, 9}, 9},   {"fc4.bias", 1, {4}, 9},
    };
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, "mlp:7,1,9", &c), TAC_OK);
    expect_params(want, 8, 217 + 8 + 18 + 40);
    cr_expect_eq(tac_model_config_of(rig.model)->w, 5);
}

Test(models_registry, linear)
{
    const tac_model_config c = {sizeof(c), 3, 5, 2, 4, 0};
    const expected want[] = {{"fc1.weight", 2, {4, 30}, 30},
                             {"fc1.bias", 1, {4}, 30}};
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, "linear", &c), TAC_OK);
    expect_params(want, 2, 124);
    cr_expect_eq(tac_model_flop_forward(rig.model), 2 * 120);
    cr_expect_eq(tac_model_flop_per_sample(rig.model), 4 * 120);
}

/* PyTorch's default: U(-1/sqrt(fan_in), 1/sqrt(fan_in)), biases as well. */
Test(models_registry, initial_values)
{
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, "cnn", NULL), TAC_OK);
    cr_assert_eq(models_ready(&rig, 5, 0), TAC_OK);
    for (size_t i = 0; i < tac_params_count(rig.params); ++i) {
        const tac_param *p = tac_params_get(rig.params, i);
        const float *v = tac_params_value(rig.params, i);
        const double bound = 1 / sqrt(p->init.value);
        double sum = 0, squares = 0;
        for (size_t k = 0; k < p->count; ++k) {
            cr_assert_leq(fabs(v[k]), bound * (1 + 1e-6));
            sum += v[k] / bound;
            squares += v[k] / bound * (v[k] / bound);
        }
        const double n = (double)p->count;
        cr_expect_leq(fabs(sum / n), 4 / sqrt(3 * n), "%s", p->name);
        cr_expect_leq(fabs(squares / n - 1.0 / 3), 1.3 / sqrt(n), "%s",
                      p->name);
    }
}

static void expect_logits(const char *spec, const tac_model_config *c, size_t n,
                          tac_status want)
{
    models_close(&rig);
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, spec, c), TAC_OK);
    cr_assert_eq(tac_tape_create(rig.params, NULL, &rig.tape), TAC_OK);
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    tac_tensor *x = NULL, *logits = NULL;
    tac_xent xent;
    cr_expect_eq(
        models_forward(&rig, &dry, n, NULL, NULL, 0, &x, &logits, &xent), want);
    if (want != TAC_OK) return;
    cr_expect_eq(logits->ndim, 2);
    cr_expect_eq(logits->shape[0], n);
    cr_expect_eq(logits->shape[1], c->classes);
    cr_expect_eq(tac_tape_backward(rig.tape, xent.loss, 1), TAC_OK);
    size_t order[64];
    cr_expect_eq(tac_tape_unused(rig.tape, NULL), 0);
    cr_expect_eq(tac_tape_final_order(rig.tape, order), TAC_OK);
    /* The last layer's gradients come first: overlap depends on it. */
    const char *first = tac_params_get(rig.params, order[0])->name;
    const char *last =
        tac_params_get(rig.params, tac_params_count(rig.params) - 1)->name;
    cr_expect_eq(strncmp(first, last, 3), 0, "%s before %s", first, last);
}

Test(models_registry, logits)
{
    const size_t sizes[][4] = {
        {28, 28, 1, 10}, {4, 4, 1, 1}, {5, 9, 3, 2}, {32, 32, 3, 100}};
    for (size_t s = 0; s < 4; ++s) {
        const tac_model_config c = {sizeof(c),   sizes[s][0], sizes[s][1],
                                    sizes[s][2], sizes[s][3], 0.25f};
        tac_model_config no_dropout = c;
        no_dropout.dropout = 0;
        for (size_t n = 0; n < 3; ++n) {
            expect_logits("cnn", &c, n, TAC_OK);
            expect_logits("mlp:20,30", &c, n, TAC_OK);
            expect_logits("linear", &no_dropout, n, TAC_OK);
        }
    }
}

static void expect_flat_samples(const char *spec)
{
    const tac_model_config c = {sizeof(c), 2, 3, 1, 4, 0};
    const size_t flat[] = {5, 6}, wrong[] = {5, 7}, image[] = {5, 3, 2, 1};
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    tac_tensor *x = NULL, *logits = NULL;
    models_close(&rig);
    cr_assert_eq(models_open(&rig, NULL, TAC_F32, spec, &c), TAC_OK);
    cr_assert_eq(tac_tape_create(rig.params, NULL, &rig.tape), TAC_OK);
    cr_assert_eq(tac_tape_begin(rig.tape, &dry), TAC_OK);
    cr_assert_eq(tac_tape_input(rig.tape, "x", TAC_F32, 2, flat, NULL, 0, &x),
                 TAC_OK);
    cr_expect_eq(tac_model_forward(rig.model, rig.tape, x, &logits), TAC_OK);
    cr_expect_eq(logits->shape[1], 4);
    tac_tensor *const before = logits;
    cr_assert_eq(tac_tape_input(rig.tape, "x", TAC_F32, 2, wrong, NULL, 0, &x),
                 TAC_OK);
    cr_expect_eq(tac_model_forward(rig.model, rig.tape, x, &logits),
                 TAC_ERR_ARG);
    cr_expect(models_message_has(rig.ctx, "(5,7)"));
    cr_expect(models_message_has(rig.ctx, "(n,2,3,1) or (n,6)"));
    cr_assert_eq(tac_tape_input(rig.tape, "x", TAC_F32, 4, image, NULL, 0, &x),
                 TAC_OK);
    cr_expect_eq(tac_model_forward(rig.model, rig.tape, x, &logits),
                 TAC_ERR_ARG);
    cr_expect_eq(logits, before);
}

Test(models_registry, flat_samples)
{
    expect_flat_samples("mlp:8");
    expect_flat_samples("linear");
}

Test(models_registry, table)
{
    size_t n = 0;
    for (const tac_model_family *f = tac_model_families(); f->name; ++f, ++n) {
        cr_expect(f->form && f->doc);
        models_close(&rig);
        cr_expect_eq(models_open(&rig, NULL, TAC_F32, f->name, NULL), TAC_OK);
    }
    cr_expect_geq(n, 2);
}

static void expect_error(const char *spec, const tac_model_config *c,
                         tac_status want, const char *message)
{
    models_close(&rig);
    cr_expect_eq(models_open(&rig, NULL, TAC_F32, spec, c), want, "%s", spec);
    cr_expect_null(rig.model);
    cr_expect(models_message_has(rig.ctx, message), "%s: %s", spec, message);
}

Test(models_registry, errors)
{
    expect_error("cn", NULL, TAC_ERR_CONFIG, "did you mean cnn");
    expect_error("mpl:500", NULL, TAC_ERR_CONFIG, "did you mean mlp");
    expect_error("", NULL, TAC_ERR_CONFIG, "known are mlp[:H1,H2,...], cnn");
    expect_error("cnn:3", NULL, TAC_ERR_CONFIG, "takes no argument");
    expect_error("linear:3", NULL, TAC_ERR_CONFIG, "takes no argument");
    expect_error("liner", NULL, TAC_ERR_CONFIG, "did you mean linear");
    const char *const bad[] = {
        "mlp:",   "mlp:0",  "mlp:5,",  "mlp:,5",  "mlp:5,,5",          "mlp:-5",
        "mlp:5x", "mlp: 5", "mlp:5;5", "mlp:1e9", "mlp:99999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
        expect_error(bad[i], NULL, TAC_ERR_CONFIG, "as in mlp:500,500");
    tac_model_config c = TAC_MODEL_CONFIG_INIT;
    c.h = 3;
    expect_error("cnn", &c, TAC_ERR_ARG, "3x28 are too small");
    c.h = 0;
    expect_error("mlp", &c, TAC_ERR_ARG, "0x28x1");
    c.h = SIZE_MAX;
    expect_error("mlp", &c, TAC_ERR_ARG, "at least 1");
    c.h = 28;
    c.dropout = 0.1f;
    expect_error("linear", &c, TAC_ERR_CONFIG, "no hidden layer");
    c.dropout = 1;
    expect_error("mlp", &c, TAC_ERR_ARG, "dropout 1");
    c.dropout = NAN;
    expect_error("mlp", &c, TAC_ERR_ARG, "dropout");
    cr_expect_eq(tac_model_create(rig.params, NULL, &c, &rig.model),
                 TAC_ERR_ARG);
    tac_model_destroy(NULL);
}
