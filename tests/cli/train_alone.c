/* A training loop of one's own, with nothing but public headers: points around
 * four centres, told apart by an MLP in fp16 with a loss scaler, clipping, a
 * parameter group and a schedule. docs/getting-started.md says how to link it;
 * train_alone.sh does so. */
#include <stdio.h>

#include "tacit/autocast.h"
#include "tacit/model.h"
#include "tacit/ops.h"
#include "tacit/rng.h"
#include "tacit/safetensors.h"
#include "tacit/scaler.h"

enum { DIMS = 20, CLASSES = 4, BATCH = 64, STEPS = 200 };

typedef struct trainer {
    tac_context *ctx;
    tac_device *dev;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
    tac_optimizer *opt;
    tac_scaler *scaler;
    tac_master *master;
} trainer;

static tac_status build_model(trainer *t)
{
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;

    mc.h = mc.w = 1;
    mc.c = DIMS;
    mc.classes = CLASSES;
    TAC_TRY(tac_context_create(NULL, &t->ctx));
    TAC_TRY(tac_device_open(t->ctx, "cpu", NULL, &t->dev));
    TAC_TRY(tac_params_create(t->dev, TAC_F32, &t->params));
    TAC_TRY(tac_model_create(t->params, "mlp:64,64", &mc, &t->model));
    TAC_TRY(tac_params_layout(t->params, NULL, NULL, NULL));
    TAC_TRY(tac_params_init(t->params, 1));
    return tac_tape_create(t->params, NULL, &t->tape);
}

static tac_status build_optimizer(trainer *t)
{
    const tac_schedule cosine = {TAC_SCHEDULE_COSINE, 3e-3, 0, 10, STEPS};
    const tac_param_group biases = {
        .match = "*.bias", .lr_scale = 2, .weight_decay = 0};
    tac_optimizer_config oc = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_scaler_config sc = TAC_SCALER_CONFIG_INIT;
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;

    oc.groups = &biases;
    oc.n_groups = 1;
    TAC_TRY(tac_optimizer_create(t->params, &oc, &t->opt));
    TAC_TRY(tac_optimizer_set_schedule(t->opt, &cosine));
    sc.init_scale = 16777216; /* too large: the first steps are skipped */
    sc.growth_interval = 50;
    TAC_TRY(tac_scaler_create(t->dev, &sc, &t->scaler));
    mc.low = TAC_F16;
    TAC_TRY(tac_master_create(t->params, &mc, &t->master));
    return tac_master_refresh(t->master, NULL);
}

/* Sample i of all: around centre y, whose coordinates are 1 or -1. */
static void make_batch(uint64_t step, float *x, int32_t *y)
{
    const tac_rng_key key = {
        .seed = 1, .stream = TAC_STREAM_USER, .step = step};

    for (int i = 0; i < BATCH; i++) {
        y[i] = i % CLASSES;
        for (int k = 0; k < DIMS; k++) {
            const double noise =
                3 * (tac_rng_uniform(&key, (uint64_t)(i * DIMS + k)) - 0.5);

            x[i * DIMS + k] = (float)((k % CLASSES == y[i] ? 1 : -1) + noise);
        }
    }
}

static tac_status forward(trainer *t, float *x, int32_t *y, tac_xent *out)
{
    const size_t x_shape[] = {BATCH, DIMS}, y_shape[] = {BATCH};
    tac_tensor *images, *labels, *logits;
    tac_autocast_config ac = TAC_AUTOCAST_CONFIG_INIT;
    tac_autocast region;
    tac_status s;

    TAC_TRY(tac_tape_input(t->tape, "x", TAC_F32, 2, x_shape, x, 0, &images));
    TAC_TRY(tac_tape_input(t->tape, "y", TAC_I32, 1, y_shape, y, 0, &labels));
    ac.master = t->master;
    TAC_TRY(tac_autocast_begin(t->tape, TAC_F16, &ac, &region));
    s = tac_model_forward(t->model, t->tape, images, &logits);
    if (s >= 0) s = tac_op_softmax_cross_entropy(t->tape, logits, labels, out);
    TAC_TRY(tac_autocast_end(&region));
    return s;
}

static tac_status step(trainer *t, uint64_t n, double *loss)
{
    const tac_tape_step begin = {.step = n};
    static float x[BATCH * DIMS];
    static int32_t y[BATCH];
    tac_scaler_report report;
    tac_xent out;

    make_batch(n, x, y);
    TAC_TRY(tac_tape_begin(t->tape, &begin));
    TAC_TRY(forward(t, x, y, &out));
    TAC_TRY(tac_tape_backward_scaled(t->tape, out.loss, 1.0 / BATCH,
                                     tac_scaler_scale(t->scaler)));
    TAC_TRY(tac_scaler_check(t->scaler, t->opt, NULL));
    TAC_TRY(tac_optimizer_clip(t->opt, 1.0, NULL));
    TAC_TRY(tac_scaler_step(t->scaler, t->opt, NULL));
    TAC_TRY(tac_scaler_update(t->scaler, NULL));
    TAC_TRY(tac_master_refresh(t->master, NULL));
    *loss = *(const double *)out.loss->data / BATCH; /* the CPU's memory */
    TAC_TRY(tac_scaler_poll(t->scaler, &report));
    if (n % 50 == 49)
        printf("step %d  loss %.4f  scale %.0f  skipped %d\n", (int)n + 1,
               *loss, report.scale, (int)report.skipped);
    return TAC_OK;
}

static tac_status save(trainer *t, const char *path)
{
    tac_safetensors_writer *w = NULL;
    tac_state_visitor v;
    tac_status s;

    TAC_TRY(tac_safetensors_writer_create(t->ctx, &w));
    v = tac_safetensors_collect(w);
    s = tac_params_walk(t->params, &v);
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    return s;
}

static tac_status train(trainer *t, const char *path)
{
    double first = 0, last = 0;

    TAC_TRY(build_model(t));
    TAC_TRY(build_optimizer(t));
    TAC_TRY(step(t, 0, &first));
    for (uint64_t n = 1; n < STEPS; n++) TAC_TRY(step(t, n, &last));
    printf("loss %.4f, then %.4f\n", first, last);
    TAC_TRY(save(t, path));
    return last < 0.2 * first ? TAC_OK : TAC_ERR_DIVERGED;
}

int main(int argc, char **argv)
{
    trainer t = {0};
    const tac_status s = train(&t, argc > 1 ? argv[1] : "own.safetensors");

    tac_master_destroy(t.master);
    tac_scaler_destroy(t.scaler);
    tac_optimizer_destroy(t.opt);
    tac_tape_destroy(t.tape);
    tac_model_destroy(t.model);
    tac_params_destroy(t.params);
    tac_device_close(t.dev);
    tac_context_destroy(t.ctx);
    return s < 0;
}
