/* engine_model.c: step times of a model, in one precision or in several.
 *
 * Steps of each precision and matrix products alternate in rounds, so that a
 * machine that is slower for a while is slower for all. The first steps are not
 * counted: they plan and allocate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "engine_training.h"
#include "tacit/pool.h"

enum { STEPS_A_ROUND = 10, MOST_ROUNDS = 8 };

static const char *const phase_keys[TAC__PHASES] = {"forward_ms", "backward_ms",
                                                    "update_ms", "step_ms"};

/* The precisions of one run, in the order of the option. */
typedef struct comparison {
    tac__bench *b;
    tac__training all[TAC__PRECISIONS];
    size_t count;
    int bf16; /* one of them is: its peak is measured, too */
} comparison;

typedef struct result {
    double ms[TAC__PHASES], gflop, gflops, share, samples;
} result;

static tac_status set_up(comparison *c, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        c->count = i + 1;
        TAC_TRY(tac__training_create(c->b, names[i], &c->all[i]));
        if (c->all[i].low == TAC_BF16) c->bf16 = 1;
    }
    return TAC_OK;
}

static void tear_down(comparison *c)
{
    for (size_t i = 0; i < c->count; ++i) tac__training_destroy(&c->all[i]);
}

static size_t rounds_of(const comparison *c)
{
    const size_t wanted = (size_t)c->b->opt->steps / STEPS_A_ROUND;
    return wanted < 1 ? 1 : wanted > MOST_ROUNDS ? MOST_ROUNDS : wanted;
}

static tac_status measure(comparison *c, tac__peak_meter *meter)
{
    const size_t rounds = rounds_of(c);
    const size_t steps = (size_t)c->b->opt->steps;
    for (size_t i = 0; i < c->count; ++i)
        TAC_TRY(tac__training_warm_up(&c->all[i]));
    for (size_t r = 0; r < rounds; ++r) {
        TAC_TRY(tac__peak_round(meter));
        for (size_t i = 0; i < c->count; ++i)
            TAC_TRY(tac__training_run(&c->all[i], steps * (r + 1) / rounds));
    }
    return TAC_OK;
}

static tac_status check_losses(const comparison *c)
{
    for (size_t i = 0; i < c->count; ++i) {
        const tac__training *t = &c->all[i];
        if (!isfinite(t->loss))
            return tac_fail(c->b->ctx, TAC_ERR_DIVERGED,
                            "the loss in %s after %zu steps is %g",
                            t->precision, t->done, t->loss);
    }
    return TAC_OK;
}

static result result_of(tac__training *t, const tac__peaks *peaks)
{
    result r;
    for (size_t i = 0; i < TAC__PHASES; ++i)
        r.ms[i] = tac__median(t->times[i], t->done) * 1e3;
    r.gflop =
        (double)tac_model_flop_per_sample(t->model) * (double)t->batch * 1e-9;
    r.gflops = r.gflop / r.ms[TAC__PHASES - 1] * 1e3;
    r.share = r.gflops / peaks->gflops;
    r.samples = (double)t->batch / r.ms[TAC__PHASES - 1] * 1e3;
    return r;
}

static const char *kernels_of(const tac__training *t)
{
    return tac_device_kernels(t->b->dev, t->low)->names;
}

static void print_head(const comparison *c, const tac__peaks *p)
{
    const tac__training *t = &c->all[0];
    printf("model %s, batch %zu, %d threads, %s, %zu steps\n",
           tac_model_spec(t->model), t->batch, tac_pool_size(c->b->kc.pool),
           c->b->opt->optimizer, t->done);
    printf("peak   matrix product %.1f GFLOP/s (n %zu, %s); copy %.1f GB/s; "
           "update %.1f GB/s\n",
           p->gflops, p->n, p->method, p->copy_gbs, p->update_gbs);
    if (p->bf16_gflops > 0)
        printf("       matrix product in bf16 %.1f GFLOP/s, %.2f times that\n",
               p->bf16_gflops, p->bf16_gflops / p->gflops);
}

static void print(const tac__training *t, const result *r)
{
    printf("%s   kernels %s\n", t->precision, kernels_of(t));
    printf("step   %.3f ms: forward %.3f, backward %.3f, update %.3f (medians)"
           "\n",
           r->ms[3], r->ms[0], r->ms[1], r->ms[2]);
    printf("rate   %.1f samples/s; %.3f GFLOP a step, %.1f GFLOP/s, %.1f %% of "
           "the peak\n",
           r->samples, r->gflop, r->gflops, 100 * r->share);
}

/* How many times the first precision's time each of the others takes. */
static void print_ratios(const comparison *c, const result *results)
{
    const result *first = &results[0];
    for (size_t i = 1; i < c->count; ++i) {
        const result *r = &results[i];
        printf("ratio  %s takes %.3f times the step of %s, which is %.2f times "
               "as fast: forward %.3f, backward %.3f, update %.3f\n",
               c->all[i].precision, r->ms[3] / first->ms[3],
               c->all[0].precision, first->ms[3] / r->ms[3],
               r->ms[0] / first->ms[0], r->ms[1] / first->ms[1],
               r->ms[2] / first->ms[2]);
    }
}

static void write_row(const tac__training *t, const tac__peaks *p,
                      const result *r)
{
    tac_json *j = t->b->json;
    tac_json_str(j, "model", tac_model_spec(t->model));
    tac_json_u64(j, "batch", t->batch);
    tac_json_null(j, "seq");
    tac_json_str(j, "precision", t->precision);
    tac_json_i64(j, "threads", tac_pool_size(t->b->kc.pool));
    for (size_t i = 0; i < TAC__PHASES; ++i)
        tac_json_f64(j, phase_keys[i], r->ms[i]);
    tac_json_f64(j, "flop_per_step", r->gflop * 1e9);
    tac_json_f64(j, "gflops", r->gflops);
    tac_json_f64(j, "peak_gflops", p->gflops);
    tac_json_f64(j, "peak_share", r->share);
    tac_json_f64(j, "samples_per_s", r->samples);
    tac_json_f64(j, "copy_gbs", p->copy_gbs);
    tac_json_f64(j, "update_gbs", p->update_gbs);
    tac_json_u64(j, "peak_n", p->n);
    tac_json_str(j, "peak_method", p->method);
    if (p->bf16_gflops > 0) tac_json_f64(j, "peak_bf16_gflops", p->bf16_gflops);
    tac_json_str(j, "optimizer", t->b->opt->optimizer);
    tac_json_str(j, "kernels", kernels_of(t));
    tac_json_u64(j, "steps", t->done);
    tac_json_u64(j, "activation_bytes", tac_tape_high_water(t->tape));
    tac_json_f64(j, "loss", t->loss);
}

/* Several: {"rows": [...]}, and in each the ratio to the first one's step. */
static void write_json(const comparison *c, const tac__peaks *p,
                       const result *results)
{
    tac_json *j = c->b->json;
    if (c->count == 1) {
        write_row(&c->all[0], p, &results[0]);
        return;
    }
    tac_json_begin_array(j, "rows");
    for (size_t i = 0; i < c->count; ++i) {
        tac_json_begin_object(j, NULL);
        write_row(&c->all[i], p, &results[i]);
        tac_json_f64(j, "step_ratio", results[i].ms[3] / results[0].ms[3]);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
}

static void report(comparison *c, const tac__peaks *p)
{
    result results[TAC__PRECISIONS];
    for (size_t i = 0; i < c->count; ++i) results[i] = result_of(&c->all[i], p);
    write_json(c, p, results);
    if (c->b->opt->quiet) return;
    print_head(c, p);
    for (size_t i = 0; i < c->count; ++i) print(&c->all[i], &results[i]);
    print_ratios(c, results);
}

static tac_status run(comparison *c, const char *const *names, size_t n)
{
    tac__peak_meter *meter = NULL;
    tac__peaks peaks = {.method = "none"};
    TAC_TRY(set_up(c, names, n));
    const size_t arena = tac_params_padded(c->all[0].params) * sizeof(float);
    TAC_TRY(tac__peak_bandwidth(c->b, arena, &peaks));
    TAC_TRY(tac__peak_create(c->b, rounds_of(c), c->bf16, &meter));
    const tac_status s = measure(c, meter);
    if (s >= 0) tac__peak_result(meter, &peaks);
    tac__peak_destroy(meter);
    TAC_TRY(s);
    TAC_TRY(check_losses(c));
    report(c, &peaks);
    return TAC_OK;
}

tac_status tac__bench_model(tac__bench *b)
{
    const char *names[TAC__PRECISIONS];
    comparison c = {.b = b};
    size_t n = 0;
    char *text = strdup(b->opt->precision);
    if (!text) return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for a string");
    tac_status s = tac__bench_precisions(b, text, names, &n);
    if (s >= 0) s = run(&c, names, n);
    tear_down(&c);
    free(text);
    return s;
}
