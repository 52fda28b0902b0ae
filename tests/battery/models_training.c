/* A few steps of SGD on a task that can be learnt by heart: the loss goes to
 * nearly zero and the training accuracy to nearly one, for every model, with
 * and without dropout and recompute; the same run twice gives the same bits. */
#include "tac_check.h"

#include "models_setup.h"
#include "tacit/optim.h"

enum { SIDE = 6, CLASSES = 5, SAMPLES = 160, BATCH = 16, EPOCHS = 8 };

static float images[SAMPLES][SIDE * SIDE];
static int32_t labels[SAMPLES];

/* A prototype a class of 2x2 patches, and noise of the same size. */
static void make_task(void)
{
    for (size_t i = 0; i < SAMPLES; ++i) {
        labels[i] = (int32_t)(i * 3 % CLASSES);
        for (size_t j = 0; j < SIDE * SIDE; ++j) {
            const size_t patch = j / SIDE / 2 * (SIDE / 2) + j % SIDE / 2;
            const double prototype =
                models_random(10 + (uint32_t)labels[i], patch);
            const double noise =
                models_random(11 + CLASSES, i * SIDE * SIDE + j);
            images[i][j] = (float)(prototype + noise);
        }
    }
}

typedef struct result {
    double first_loss, last_loss, accuracy;
    float *values;
    size_t bytes;
} result;

static tac_status train(models_rig *r, tac_optimizer *o, double *first)
{
    uint64_t attempt = 0;
    for (int epoch = 0; epoch < EPOCHS; ++epoch) {
        for (size_t at = 0; at < SAMPLES; at += BATCH) {
            const tac_tape_step step = {.step = attempt++};
            tac_tensor *x, *logits;
            tac_xent xent;
            TAC_TRY(models_forward(r, &step, BATCH, images[at], labels + at, 0,
                                   &x, &logits, &xent));
            if (attempt == 1) *first = *(double *)xent.loss->data / BATCH;
            TAC_TRY(tac_tape_backward(r->tape, xent.loss, 1.0 / BATCH));
            TAC_TRY(tac_optimizer_step(o, NULL));
        }
    }
    return TAC_OK;
}

/* All samples at once, so another batch size than in training. */
static tac_status evaluate(models_rig *r, result *out)
{
    const tac_tape_step step = {.flags = TAC_TAPE_EVAL};
    tac_tensor *x, *logits;
    tac_xent xent;
    TAC_TRY(models_forward(r, &step, SAMPLES, images, labels, 0, &x, &logits,
                           &xent));
    const uint8_t *correct = xent.correct->data;
    size_t hits = 0;
    for (size_t i = 0; i < SAMPLES; ++i) hits += correct[i];
    out->accuracy = (double)hits / SAMPLES;
    out->last_loss = *(double *)xent.loss->data / SAMPLES;
    return TAC_OK;
}

static result run(const char *spec, float dropout, int recompute)
{
    const tac_model_config c = {sizeof(c), SIDE, SIDE, 1, CLASSES, dropout};
    tac_optimizer_config oc = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    tac_optimizer *o = NULL;
    models_rig r;
    result out = {0};
    oc.lr = 0.1;
    oc.momentum = 0.9;
    if (CHECK_OK(models_open(&r, NULL, TAC_F32, spec, &c)) &&
        CHECK_OK(models_ready(&r, 1, recompute)) &&
        CHECK_OK(tac_optimizer_create(r.params, &oc, &o)) &&
        CHECK_OK(train(&r, o, &out.first_loss))) {
        CHECK_OK(evaluate(&r, &out));
        out.bytes = tac_params_padded(r.params) * sizeof(float);
        out.values = malloc(out.bytes);
        memcpy(out.values, tac_params_values(r.params), out.bytes);
    }
    tac_optimizer_destroy(o);
    models_close(&r);
    return out;
}

static void check(const char *spec, float dropout)
{
    const result a = run(spec, dropout, 0), b = run(spec, dropout, 0);
    const result c = run(spec, dropout, 1);
    printf("%s, dropout %g: loss %.3f to %.4f, accuracy %.3f\n", spec, dropout,
           a.first_loss, a.last_loss, a.accuracy);
    CHECK(a.first_loss > 1.2); /* ln 5 = 1.61: it knew nothing before */
    CHECK(a.last_loss < 0.05);
    CHECK(a.accuracy > 0.95);
    if (CHECK(a.values && b.values && c.values)) {
        CHECK_EQ_MEM(a.values, b.values, a.bytes);
        CHECK_EQ_MEM(a.values, c.values, a.bytes);
    }
    free(a.values);
    free(b.values);
    free(c.values);
}

int main(void)
{
    make_task();
    check("mlp:64", 0);
    check("mlp:64,32", 0.1f);
    check("linear", 0);
    check("cnn", 0.1f);
    return tac_check_summary();
}
