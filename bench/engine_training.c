/* engine_training.c: setting up a model on made-up data, and its steps. */
#include "engine_training.h"

#include <stdlib.h>

#include "tacit/autocast.h"
#include "tacit/clock.h"
#include "tacit/ops.h"
#include "tacit/rng.h"

static tac_status inputs(tac__training *t, tac_tensor **x, tac_tensor **labels)
{
    const tac_model_config *c = tac_model_config_of(t->model);
    const size_t xs[4] = {t->batch, c->h, c->w, c->c}, ls[1] = {t->batch};
    TAC_TRY(tac_tape_input(t->tape, "images", TAC_F32, 4, xs, t->images, 0, x));
    return tac_tape_input(t->tape, "labels", TAC_I32, 1, ls, t->labels, 0,
                          labels);
}

static tac_status forward_region(tac__training *t, tac_tensor **loss)
{
    tac_tensor *x = NULL, *labels = NULL, *logits = NULL;
    tac_xent xent;
    TAC_TRY(inputs(t, &x, &labels));
    TAC_TRY(tac_model_forward(t->model, t->tape, x, &logits));
    TAC_TRY(tac_op_softmax_cross_entropy(t->tape, logits, labels, &xent));
    *loss = xent.loss;
    return TAC_OK;
}

static tac_status forward(tac__training *t, tac_tensor **loss)
{
    tac_autocast_config config = TAC_AUTOCAST_CONFIG_INIT;
    tac_autocast region;
    config.master = t->master;
    TAC_TRY(tac_autocast_begin(t->tape, t->low, &config, &region));
    const tac_status s = forward_region(t, loss);
    TAC_TRY(tac_autocast_end(&region));
    return s;
}

static tac_status dry_step(tac__training *t)
{
    const tac_tape_step step = {.flags = TAC_TAPE_DRY};
    tac_tensor *loss = NULL;
    TAC_TRY(tac_tape_begin(t->tape, &step));
    TAC_TRY(forward(t, &loss));
    return tac_tape_backward(t->tape, loss, 1);
}

/* Parameters in the order in which their gradients become final. */
static tac_status lay_out(tac__training *t)
{
    size_t *order = calloc(tac_params_count(t->params), sizeof *order);
    if (!order)
        return tac_fail(t->b->ctx, TAC_ERR_NOMEM, "no memory for an order");
    tac_status s = tac_tape_final_order(t->tape, order);
    if (s >= 0) s = tac_params_layout(t->params, order, NULL, NULL);
    free(order);
    return s;
}

static tac_status make_data(tac__training *t)
{
    const tac_device_ops *ops = tac_device_ops_of(t->b->dev);
    const tac_model_config *c = tac_model_config_of(t->model);
    const tac_rng_key key = {(uint64_t)t->b->opt->seed, TAC_STREAM_SYNTH, 1};
    void *labels = NULL;
    TAC_TRY(
        tac__bench_floats(t->b, t->batch * c->h * c->w * c->c, 1, &t->images));
    TAC_TRY(ops->alloc(tac_device_impl(t->b->dev), t->batch * sizeof(int32_t),
                       &labels));
    t->labels = labels;
    for (size_t i = 0; i < t->batch; ++i)
        t->labels[i] = (int32_t)tac_rng_below(&key, i, c->classes);
    return TAC_OK;
}

static tac_status make_optimizer(tac__training *t)
{
    tac_optimizer_kind kind = TAC_OPTIMIZER_SGD;
    TAC_TRY(tac_optimizer_parse(t->b->ctx, t->b->opt->optimizer, &kind));
    tac_optimizer_config config = tac_optimizer_defaults(kind);
    if (kind == TAC_OPTIMIZER_SGD) config.momentum = 0.9;
    return tac_optimizer_create(t->params, &config, &t->optimizer);
}

/* What the precision needs beside the parameters. */
static tac_status make_precision(tac__training *t)
{
    tac_scaler_config scaler = TAC_SCALER_CONFIG_INIT;
    tac_master_config master = TAC_MASTER_CONFIG_INIT;
    scaler.enabled = t->low == TAC_F16;
    TAC_TRY(tac_scaler_create(t->b->dev, &scaler, &t->scaler));
    if (t->low == TAC_F32) return TAC_OK;
    master.low = t->low;
    TAC_TRY(tac_master_create(t->params, &master, &t->master));
    TAC_TRY(tac_master_follow(t->master, t->optimizer));
    return tac_master_refresh(t->master, NULL);
}

static tac_status make_times(tac__training *t)
{
    for (size_t i = 0; i < TAC__PHASES; ++i) {
        t->times[i] = calloc(t->steps, sizeof(double));
        if (!t->times[i])
            return tac_fail(t->b->ctx, TAC_ERR_NOMEM, "no memory for timings");
    }
    return TAC_OK;
}

tac_status tac__training_create(tac__bench *b, const char *precision,
                                tac__training *t)
{
    const tac__bench_options *opt = b->opt;
    *t = (tac__training){.b = b,
                         .precision = precision,
                         .batch = (size_t)opt->batch,
                         .steps = (size_t)opt->steps};
    TAC_TRY(tac_precision_parse(b->ctx, precision, &t->low));
    TAC_TRY(tac_params_create(b->dev, TAC_F32, &t->params));
    TAC_TRY(tac_model_create(t->params, opt->model, NULL, &t->model));
    TAC_TRY(tac_tape_create(t->params, NULL, &t->tape));
    TAC_TRY(make_data(t));
    TAC_TRY(dry_step(t));
    TAC_TRY(lay_out(t));
    TAC_TRY(tac_params_init(t->params, (uint64_t)opt->seed));
    TAC_TRY(make_optimizer(t));
    TAC_TRY(make_precision(t));
    return make_times(t);
}

void tac__training_destroy(tac__training *t)
{
    for (size_t i = 0; i < TAC__PHASES; ++i) free(t->times[i]);
    if (t->b) {
        tac__bench_free(t->b, t->labels);
        tac__bench_free(t->b, t->images);
    }
    tac_scaler_destroy(t->scaler);
    tac_master_destroy(t->master);
    tac_optimizer_destroy(t->optimizer);
    tac_tape_destroy(t->tape);
    tac_model_destroy(t->model);
    tac_params_destroy(t->params);
}

/* The time when all that was submitted is done. */
static double settled(const tac__training *t)
{
    tac_device_ops_of(t->b->dev)->queue_sync(tac_device_impl(t->b->dev), NULL);
    return tac_clock_s();
}

static tac_status update(tac__training *t)
{
    if (t->low != TAC_F16) {
        TAC_TRY(tac_optimizer_step(t->optimizer, NULL));
    } else {
        TAC_TRY(tac_scaler_check(t->scaler, t->optimizer, NULL));
        TAC_TRY(tac_scaler_step(t->scaler, t->optimizer, NULL));
        TAC_TRY(tac_scaler_update(t->scaler, NULL));
    }
    return t->master ? tac_master_after_step(t->master, NULL) : TAC_OK;
}

/* A loss is f64 in every precision. */
static tac_status read_loss(tac__training *t, const tac_tensor *loss)
{
    TAC_TRY(tac_device_ops_of(t->b->dev)->copy(
        tac_device_impl(t->b->dev), &t->loss, loss->data, sizeof t->loss,
        TAC_COPY_DEVICE_TO_HOST, NULL));
    settled(t);
    t->loss /= (double)t->batch;
    return TAC_OK;
}

static tac_status step(tac__training *t, double seconds[TAC__PHASES])
{
    tac_tensor *loss = NULL;
    const double begin = settled(t);
    TAC_TRY(tac_tape_begin(t->tape, NULL));
    TAC_TRY(forward(t, &loss));
    const double forward_end = settled(t);
    TAC_TRY(tac_tape_backward_scaled(t->tape, loss, 1.0 / (double)t->batch,
                                     tac_scaler_scale(t->scaler)));
    const double backward_end = settled(t);
    TAC_TRY(update(t));
    const double end = settled(t);
    seconds[0] = forward_end - begin;
    seconds[1] = backward_end - forward_end;
    seconds[2] = end - backward_end;
    seconds[3] = end - begin;
    return read_loss(t, loss);
}

tac_status tac__training_run(tac__training *t, size_t upto)
{
    while (t->done < upto) {
        double seconds[TAC__PHASES];
        TAC_TRY(step(t, seconds));
        for (size_t i = 0; i < TAC__PHASES; ++i)
            t->times[i][t->done] = seconds[i];
        t->done++;
    }
    return TAC_OK;
}

tac_status tac__training_warm_up(tac__training *t)
{
    double seconds[TAC__PHASES];
    for (int i = 0; i < 3; ++i) TAC_TRY(step(t, seconds));
    return TAC_OK;
}
