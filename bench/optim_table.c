/* optim_table.c: what each optimizer costs: bytes of state, counted and as the
 * process grows, and the time of its pass.
 *
 * The pass is timed by turns with an in-place update, x += y, over as many
 * bytes with the same threads; the share is the ratio of the two rates. Bytes
 * are counted: each array that a pass must read or write, once. Gradients are
 * not computed but random: an optimizer's pass does not depend on them. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_stats.h"
#include "engine_bench.h"
#include "optim_shapes.h"
#include "tacit/clock.h"
#include "tacit/optim.h"

enum { MAX_ROUNDS = 200, MIN_ROUNDS = 5 };

typedef struct row {
    tac__bench *b;
    const tac__bench_shape *shape;
    tac_optimizer_kind kind;
    tac_params *params;
    tac_optimizer *o;
    float *x, *y; /* of the update */
    size_t n;     /* elements of each */
    double pass_bytes, matrix_state, matrices;
    double grown, heap;  /* bytes: by creation and first step; by later ones */
    double pass, update; /* seconds */
} row;

static double resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    double all = 0, here = 0;
    if (!f) return 0;
    if (fscanf(f, "%lf %lf", &all, &here) != 2) here = 0;
    fclose(f);
    return here * (double)sysconf(_SC_PAGESIZE);
}

static double heap(void)
{
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static double available(void)
{
    return (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Bytes that the pass over one parameter must move. */
static double bytes_of(const row *r, const tac_param *q, double state)
{
    const double n = (double)q->count;
    switch (r->kind) {
    case TAC_OPTIMIZER_SGD: return 12 * n + 2 * state;
    case TAC_OPTIMIZER_ADAMW:
    case TAC_OPTIMIZER_ADAMW8BIT: break;
    case TAC_OPTIMIZER_ADAFACTOR:
        return q->ndim >= 2 ? 24 * n + 4 * state : 20 * n + 3 * state;
    }
    return 12 * n + 2 * state; /* value twice, gradient once, state twice */
}

static tac_status count(row *r)
{
    tac_param_settings s;
    for (size_t i = 0; i < tac_params_count(r->params); ++i) {
        const tac_param *q = tac_params_get(r->params, i);
        TAC_TRY(tac_optimizer_settings(r->o, i, &s));
        r->pass_bytes += bytes_of(r, q, (double)s.state_bytes);
        if (q->ndim != 2) continue;
        r->matrix_state += (double)s.state_bytes;
        r->matrices += (double)q->count;
    }
    return TAC_OK;
}

static tac_status make_params(row *r)
{
    TAC_TRY(tac_params_create(r->b->dev, TAC_F32, &r->params));
    TAC_TRY(r->shape->add(r->params));
    TAC_TRY(tac_params_layout(r->params, NULL, NULL, NULL));
    float *p = tac_params_values(r->params), *g = tac_params_grads(r->params);
    for (size_t i = 0; i < tac_params_padded(r->params); ++i) {
        const uint32_t bits = (uint32_t)i * UINT32_C(2654435769) >> 8;
        p[i] = g[i] = 0.1F * ((float)bits * 0x1p-24F - 0.5F);
    }
    return TAC_OK;
}

static tac_status make_optimizer(row *r)
{
    tac_optimizer_config c = tac_optimizer_defaults(r->kind);
    const double before = resident();
    if (r->kind == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
    TAC_TRY(tac_optimizer_create(r->params, &c, &r->o));
    TAC_TRY(tac_optimizer_step(r->o, NULL));
    r->grown = resident() - before;
    return count(r);
}

/* Two arrays that together are as large as all that the optimizer touches. */
static tac_status make_update(row *r)
{
    const double all = 8 * (double)tac_params_padded(r->params) +
                       (double)tac_optimizer_state_bytes(r->o);
    r->n = (size_t)(all / 8);
    TAC_TRY(tac__bench_floats(r->b, r->n, 1, &r->x));
    return tac__bench_floats(r->b, r->n, 1, &r->y);
}

static tac_status timed_step(row *r, double *seconds)
{
    const double start = tac_clock_s();
    TAC_TRY(tac_optimizer_step(r->o, NULL));
    *seconds = tac_clock_s() - start;
    return TAC_OK;
}

static tac_status timed_update(row *r, double *seconds)
{
    const double start = tac_clock_s();
    TAC_TRY(r->b->k->axpy(&r->b->kc, r->n, 1e-9, r->x, r->y));
    *seconds = tac_clock_s() - start;
    return TAC_OK;
}

static tac_status time_both(row *r)
{
    double pass[MAX_ROUNDS], update[MAX_ROUNDS];
    size_t n = 0;
    TAC_TRY(timed_step(r, pass)); /* warm */
    TAC_TRY(timed_update(r, update));
    const double start = tac_clock_s(), before = heap();
    while (n < MAX_ROUNDS &&
           (n < MIN_ROUNDS || tac_clock_s() - start < 2 * r->b->opt->seconds)) {
        TAC_TRY(timed_step(r, &pass[n]));
        TAC_TRY(timed_update(r, &update[n]));
        ++n;
    }
    r->heap = heap() - before;
    r->pass = tac__median(pass, n);
    r->update = tac__median(update, n);
    return TAC_OK;
}

static void report(const row *r)
{
    tac_json *j = r->b->json;
    const double state = (double)tac_optimizer_state_bytes(r->o);
    const double n = (double)tac_params_elements(r->params);
    const double rate = r->pass_bytes / r->pass * 1e-9;
    const double limit = 12 * (double)r->n / r->update * 1e-9;

    if (!r->b->opt->quiet)
        printf("%-5s %-10s %12.0f %8.4f %8.4f %10.1f %10.3f %7.2f %7.2f "
               "%6.0f %% %6.0f\n",
               r->shape->name, tac_optimizer_kind_name(r->kind), state,
               state / n, r->matrix_state / r->matrices, r->grown * 1e-6,
               r->pass * 1e3, rate, limit, 100 * rate / limit, r->heap);
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "shape", r->shape->name);
    tac_json_str(j, "optimizer", tac_optimizer_kind_name(r->kind));
    tac_json_u64(j, "parameters", tac_params_elements(r->params));
    tac_json_f64(j, "state_bytes", state);
    tac_json_f64(j, "state_bytes_per_parameter", state / n);
    tac_json_f64(j, "state_bytes_per_matrix_parameter",
                 r->matrix_state / r->matrices);
    tac_json_u64(j, "scratch_bytes", tac_optimizer_scratch_bytes(r->o));
    tac_json_f64(j, "resident_growth_bytes", r->grown);
    tac_json_f64(j, "heap_growth_after_first_step_bytes", r->heap);
    tac_json_f64(j, "pass_seconds", r->pass);
    tac_json_f64(j, "pass_bytes", r->pass_bytes);
    tac_json_f64(j, "pass_gb_per_s", rate);
    tac_json_f64(j, "update_gb_per_s", limit);
    tac_json_f64(j, "share_of_update", rate / limit);
    tac_json_end_object(j);
}

static tac_status run_row(row *r)
{
    TAC_TRY(make_params(r));
    TAC_TRY(make_optimizer(r));
    TAC_TRY(make_update(r));
    TAC_TRY(time_both(r));
    report(r);
    return TAC_OK;
}

static tac_status one_row(tac__bench *b, const tac__bench_shape *shape,
                          tac_optimizer_kind kind)
{
    row r = {.b = b, .shape = shape, .kind = kind};
    const tac_status s = run_row(&r);
    tac__bench_free(b, r.x);
    tac__bench_free(b, r.y);
    tac_optimizer_destroy(r.o);
    tac_params_destroy(r.params);
    return s;
}

static int too_large(const tac__bench *b, const tac__bench_shape *shape)
{
    if (b->opt->small && shape != tac__bench_shapes()) return 1;
    if (available() >= shape->least_bytes) return 0;
    printf("%s left out: it takes up to %.1f GB, of which %.1f GB are free\n",
           shape->name, shape->least_bytes * 1e-9, available() * 1e-9);
    return 1;
}

tac_status tac__bench_optimizers(tac__bench *b)
{
    if (!b->opt->quiet)
        printf("%d threads\n%-5s %-10s %12s %8s %8s %10s %10s %7s %7s %8s "
               "%6s\n",
               tac_context_threads(b->ctx), "shape", "optimizer", "state B",
               "B/param", "matrices", "grown MB", "pass ms", "GB/s", "update",
               "share", "heap B");
    tac_json_i64(b->json, "threads", tac_context_threads(b->ctx));
    tac_json_begin_array(b->json, "optimizers");
    for (const tac__bench_shape *s = tac__bench_shapes(); s->name; ++s) {
        if (too_large(b, s)) continue;
        for (int k = TAC_OPTIMIZER_SGD; k <= TAC_OPTIMIZER_ADAMW8BIT; ++k)
            TAC_TRY(one_row(b, s, (tac_optimizer_kind)k));
    }
    tac_json_end_array(b->json);
    return TAC_OK;
}
