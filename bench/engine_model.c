/* engine_model.c: step times of a model on made-up data.
 *
 * Steps and matrix products alternate in rounds, so that a machine that is
 * slower for a while is slower for both. The first round's steps are not
 * counted: they plan and allocate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "engine_bench.h"
#include "tacit/clock.h"
#include "tacit/model.h"
#include "tacit/ops.h"
#include "tacit/optim.h"
#include "tacit/pool.h"
#include "tacit/rng.h"

enum { STEPS_A_ROUND = 10, MOST_ROUNDS = 8, PHASES = 4 };

/* Times of a step: forward, backward, update, all. */
static const char *const phase_keys[PHASES] = {"forward_ms", "backward_ms",
                                               "update_ms", "step_ms"};

typedef struct training {
    tac__bench *b;
    size_t batch;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
    tac_optimizer *optimizer;
    float *images;
    int32_t *labels;
    double *times[PHASES]; /* of counted steps */
    size_t steps, done;
    double loss;
} training;

static tac_status forward(training *t, tac_tensor **loss)
{
    const tac_model_config *c = tac_model_config_of(t->model);
    const size_t xs[4] = {t->batch, c->h, c->w, c->c}, ls[1] = {t->batch};
    tac_tensor *x = NULL, *labels = NULL, *logits = NULL;
    tac_xent xent;
    TAC_TRY(
        tac_tape_input(t->tape, "images", TAC_F32, 4, xs, t->images, 0, &x));
    TAC_TRY(tac_tape_input(t->tape, "labels", TAC_I32, 1, ls, t->labels, 0,
                           &labels));
    TAC_TRY(tac_model_forward(t->model, t->tape, x, &logits));
    TAC_TRY(tac_op_softmax_cross_entropy(t->tape, logits, labels, &xent));
    *loss = xent.loss;
    return TAC_OK;
}

static tac_status dry_step(training *t)
{
    const tac_tape_step step = {.flags = TAC_TAPE_DRY};
    tac_tensor *loss = NULL;
    TAC_TRY(tac_tape_begin(t->tape, &step));
    TAC_TRY(forward(t, &loss));
    return tac_tape_backward(t->tape, loss, 1);
}

/* Parameters in the order in which their gradients become final. */
static tac_status lay_out(training *t)
{
    size_t *order = calloc(tac_params_count(t->params), sizeof *order);
    if (!order)
        return tac_fail(t->b->ctx, TAC_ERR_NOMEM, "no memory for an order");
    tac_status s = tac_tape_final_order(t->tape, order);
    if (s >= 0) s = tac_params_layout(t->params, order, NULL, NULL);
    free(order);
    return s;
}

static tac_status make_data(training *t)
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

static tac_status make_optimizer(training *t)
{
    tac_optimizer_kind kind = TAC_OPTIMIZER_SGD;
    TAC_TRY(tac_optimizer_parse(t->b->ctx, t->b->opt->optimizer, &kind));
    tac_optimizer_config config = tac_optimizer_defaults(kind);
    if (kind == TAC_OPTIMIZER_SGD) config.momentum = 0.9;
    return tac_optimizer_create(t->params, &config, &t->optimizer);
}

static tac_status set_up(training *t)
{
    const tac__bench_options *opt = t->b->opt;
    TAC_TRY(tac_params_create(t->b->dev, TAC_F32, &t->params));
    TAC_TRY(tac_model_create(t->params, opt->model, NULL, &t->model));
    TAC_TRY(tac_tape_create(t->params, NULL, &t->tape));
    TAC_TRY(make_data(t));
    TAC_TRY(dry_step(t));
    TAC_TRY(lay_out(t));
    TAC_TRY(tac_params_init(t->params, (uint64_t)opt->seed));
    TAC_TRY(make_optimizer(t));
    for (size_t i = 0; i < PHASES; ++i) {
        t->times[i] = calloc(t->steps, sizeof(double));
        if (!t->times[i])
            return tac_fail(t->b->ctx, TAC_ERR_NOMEM, "no memory for timings");
    }
    return TAC_OK;
}

static void tear_down(training *t)
{
    for (size_t i = 0; i < PHASES; ++i) free(t->times[i]);
    tac__bench_free(t->b, t->labels);
    tac__bench_free(t->b, t->images);
    tac_optimizer_destroy(t->optimizer);
    tac_tape_destroy(t->tape);
    tac_model_destroy(t->model);
    tac_params_destroy(t->params);
}

/* The time when all that was submitted is done. */
static double settled(const training *t)
{
    tac_device_ops_of(t->b->dev)->queue_sync(tac_device_impl(t->b->dev), NULL);
    return tac_clock_s();
}

/* One training step and its loss; t->times are written at t->done. */
static tac_status step(training *t, double seconds[PHASES])
{
    tac_tensor *loss = NULL;
    const double begin = settled(t);
    TAC_TRY(tac_tape_begin(t->tape, NULL));
    TAC_TRY(forward(t, &loss));
    const double forward_end = settled(t);
    TAC_TRY(tac_tape_backward(t->tape, loss, 1.0 / (double)t->batch));
    const double backward_end = settled(t);
    TAC_TRY(tac_optimizer_step(t->optimizer, NULL));
    const double end = settled(t);
    seconds[0] = forward_end - begin;
    seconds[1] = backward_end - forward_end;
    seconds[2] = end - backward_end;
    seconds[3] = end - begin;
    TAC_TRY(tac_device_ops_of(t->b->dev)->copy(
        tac_device_impl(t->b->dev), &t->loss, loss->data, sizeof t->loss,
        TAC_COPY_DEVICE_TO_HOST, NULL));
    settled(t);
    t->loss /= (double)t->batch;
    return TAC_OK;
}

static tac_status count_steps(training *t, size_t upto)
{
    while (t->done < upto) {
        double seconds[PHASES];
        TAC_TRY(step(t, seconds));
        for (size_t i = 0; i < PHASES; ++i) t->times[i][t->done] = seconds[i];
        t->done++;
    }
    return TAC_OK;
}

static tac_status warm_up(training *t)
{
    double seconds[PHASES];
    for (int i = 0; i < 3; ++i) TAC_TRY(step(t, seconds));
    return TAC_OK;
}

static size_t rounds_of(const training *t)
{
    const size_t wanted = t->steps / STEPS_A_ROUND;
    return wanted < 1 ? 1 : wanted > MOST_ROUNDS ? MOST_ROUNDS : wanted;
}

static tac_status measure(training *t, tac__peak_meter *meter)
{
    const size_t rounds = rounds_of(t);
    TAC_TRY(warm_up(t));
    for (size_t r = 0; r < rounds; ++r) {
        TAC_TRY(tac__peak_round(meter));
        TAC_TRY(count_steps(t, t->steps * (r + 1) / rounds));
    }
    return TAC_OK;
}

typedef struct result {
    double ms[PHASES], gflop, gflops, share, images;
} result;

static result result_of(training *t, const tac__peaks *peaks)
{
    result r;
    for (size_t i = 0; i < PHASES; ++i)
        r.ms[i] = tac__median(t->times[i], t->done) * 1e3;
    r.gflop =
        (double)tac_model_flop_per_sample(t->model) * (double)t->batch * 1e-9;
    r.gflops = r.gflop / r.ms[3] * 1e3;
    r.share = r.gflops / peaks->gflops;
    r.images = (double)t->batch / r.ms[3] * 1e3;
    return r;
}

static void print(const training *t, const tac__peaks *p, const result *r)
{
    printf("model %s, batch %zu, f32, %d threads, kernels %s, %zu steps\n",
           tac_model_spec(t->model), t->batch, tac_pool_size(t->b->kc.pool),
           t->b->k->names, t->done);
    printf("peak   matrix product %.1f GFLOP/s (n %zu, %s); copy %.1f GB/s; "
           "update %.1f GB/s\n",
           p->gflops, p->n, p->method, p->copy_gbs, p->update_gbs);
    printf("step   %.3f ms: forward %.3f, backward %.3f, update %.3f (medians)"
           "\n",
           r->ms[3], r->ms[0], r->ms[1], r->ms[2]);
    printf("rate   %.1f samples/s; %.3f GFLOP a step, %.1f GFLOP/s, %.1f %% of "
           "the peak\n",
           r->images, r->gflop, r->gflops, 100 * r->share);
}

static void write_json(const training *t, const tac__peaks *p, const result *r)
{
    tac_json *j = t->b->json;
    tac_json_str(j, "model", tac_model_spec(t->model));
    tac_json_u64(j, "batch", t->batch);
    tac_json_null(j, "seq");
    tac_json_str(j, "precision", t->b->opt->precision);
    tac_json_i64(j, "threads", tac_pool_size(t->b->kc.pool));
    for (size_t i = 0; i < PHASES; ++i)
        tac_json_f64(j, phase_keys[i], r->ms[i]);
    tac_json_f64(j, "flop_per_step", r->gflop * 1e9);
    tac_json_f64(j, "gflops", r->gflops);
    tac_json_f64(j, "peak_gflops", p->gflops);
    tac_json_f64(j, "peak_share", r->share);
    tac_json_f64(j, "samples_per_s", r->images);
    tac_json_f64(j, "copy_gbs", p->copy_gbs);
    tac_json_f64(j, "update_gbs", p->update_gbs);
    tac_json_u64(j, "peak_n", p->n);
    tac_json_str(j, "peak_method", p->method);
    tac_json_str(j, "optimizer", t->b->opt->optimizer);
    tac_json_str(j, "kernels", t->b->k->names);
    tac_json_u64(j, "steps", t->done);
    tac_json_u64(j, "activation_bytes", tac_tape_high_water(t->tape));
    tac_json_f64(j, "loss", t->loss);
}

static tac_status run(training *t)
{
    tac__peak_meter *meter = NULL;
    tac__peaks peaks = {.method = "none"};
    TAC_TRY(set_up(t));
    const size_t arena = tac_params_padded(t->params) * sizeof(float);
    TAC_TRY(tac__peak_bandwidth(t->b, arena, &peaks));
    TAC_TRY(tac__peak_create(t->b, rounds_of(t), &meter));
    const tac_status s = measure(t, meter);
    if (s >= 0) tac__peak_result(meter, &peaks);
    tac__peak_destroy(meter);
    TAC_TRY(s);
    if (!isfinite(t->loss))
        return tac_fail(t->b->ctx, TAC_ERR_DIVERGED,
                        "the loss after %zu steps is %g", t->done, t->loss);
    const result r = result_of(t, &peaks);
    if (!t->b->opt->quiet) print(t, &peaks, &r);
    write_json(t, &peaks, &r);
    return TAC_OK;
}

tac_status tac__bench_model(tac__bench *b)
{
    training t = {
        .b = b, .batch = (size_t)b->opt->batch, .steps = (size_t)b->opt->steps};
    const tac_status s = run(&t);
    tear_down(&t);
    return s;
}
