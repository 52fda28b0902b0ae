/* localsgd_sim_paper.c: published tables beside ours.
 *
 * Streaming DiLoCo (arXiv:2501.18512), table 4, and eager updates
 * (arXiv:2502.12996), table 5: Gbit/s for 50, 80, 90, 95 and 99 % utilisation.
 * All published values lie on one grid, so cells are compared in steps of it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "localsgd_sim.h"

enum { MODELS = 3, TARGETS = 5 };

static const double targets[TARGETS] = {.5, .8, .9, .95, .99};

static const struct {
    const char *name;
    double params, step_s;
    int64_t layers;
} models[MODELS] = {
    {"1B", 1e9, 0.1, 24}, {"10B", 1e10, 0.8, 48}, {"100B", 1e11, 4.9, 108}};

typedef struct row {
    const char *method; /* in the output; NULL ends a table */
    const char *preset; /* of tac_localsgd_preset; NULL: dp */
    int64_t every, delay;
    double quarter; /* of the bits: FP4 instead of bf16 */
    double published[MODELS][TARGETS];
} row;

static const row streaming[] = {{"dp",
                                 NULL,
                                 1,
                                 0,
                                 1,
                                 {{86.8, 152.6, 184.2, 222.3, 569.0},
                                  {104.8, 222.3, 222.3, 268.3, 471.5},
                                  {184.2, 323.8, 390.7, 390.7, 471.5}}},
                                {"diloco",
                                 "diloco",
                                 100,
                                 0,
                                 1,
                                 {{1.4, 6.2, 13.3, 23.3, 86.8},
                                  {1.7, 7.5, 16.0, 33.9, 104.8},
                                  {3.0, 11.0, 23.3, 49.4, 184.2}}},
                                {"streaming",
                                 "streaming",
                                 100,
                                 0,
                                 1,
                                 {{1.4, 5.2, 9.1, 16.0, 28.1},
                                  {1.7, 5.2, 9.1, 13.3, 19.3},
                                  {2.4, 6.2, 9.1, 11.0, 19.3}}},
                                {"streaming+overlap",
                                 "streaming",
                                 100,
                                 1,
                                 1,
                                 {{1.4, 4.3, 6.2, 9.1, 11.0},
                                  {1.7, 3.6, 5.2, 6.2, 7.5},
                                  {1.7, 3.6, 4.3, 5.2, 5.2}}},
                                {"streaming+overlap+fp4",
                                 "streaming",
                                 100,
                                 1,
                                 0.25,
                                 {{.4, .9, 1.7, 2.0, 3.0},
                                  {.4, .9, 1.4, 1.4, 1.7},
                                  {.5, .9, 1.1, 1.1, 1.4}}},
                                {0}};

static const row eager[] = {
    {"1-inner-step+fp4",
     "streaming",
     30,
     1,
     0.25,
     {{2.4, 3.6, 4.3, 4.3, 4.3},
      {1.4, 2.4, 2.4, 3.0, 3.0},
      {.9, 1.7, 2.0, 2.0, 2.0}}},
    {"1-outer-step+fp4",
     "streaming",
     30,
     30,
     0.25,
     {{1.1, 2.0, 2.0, 2.0, 2.4},
      {.7, 1.1, 1.4, 1.4, 1.4},
      {.5, .8, .9, .9, .9}}},
    {"1-outer-step+fp4",
     "streaming",
     100,
     100,
     0.25,
     {{.1, .2, .2, .2, .2}, {.1, .2, .2, .3, .3}, {.2, .3, .3, .3, .4}}},
    {0}};

typedef struct tally {
    int exact, near, far;
} tally;

/* ---- one row
 * ------------------------------------------------------------------ */

static tac_status simulate(tac__sim_bench *b, const row *r, int m,
                           double out[TARGETS])
{
    const tac_sim_network net = {1, 1, 0, 0};
    double grid[TAC__SIM_GRID];
    tac_localsgd_config local;
    tac_sim_config c = TAC_SIM_CONFIG_INIT;
    c.params = models[m].params;
    c.layers = models[m].layers;
    c.step_s = models[m].step_s;
    c.bits = b->opt->bits * r->quarter;
    c.steps = tac__sim_steps(b->opt, r->every);
    if (r->preset) {
        TAC_TRY(tac_localsgd_preset(b->ctx, r->preset, r->every, &local));
        if (strcmp(r->preset, "streaming") == 0)
            local.fragments = c.layers / b->opt->fragment_layers;
        local.delay = r->delay;
        c.method = TAC_SIM_LOCAL;
        c.localsgd = &local;
    }
    tac__sim_grid(grid);
    return tac_sim_required(b->ctx, &c, &net, targets, TARGETS, grid,
                            TAC__SIM_GRID, out);
}

/* Steps of the grid from the published value to ours. Published values have one
 * digit after the point: what prints alike is the same, and else the published
 * one is taken for the nearest point of the grid. */
static int cells_apart(double ours, double published)
{
    const double step = 4 * log(10) / (TAC__SIM_GRID - 1);
    const long at = lround((log(published) + log(10)) / step);
    if (isinf(ours)) return TAC__SIM_GRID;
    if (lround(ours / 1e8) == lround(published * 10)) return 0;
    return (int)(lround((log(ours / 1e9) + log(10)) / step) - at);
}

static char mark(int apart, tally *t)
{
    if (apart == 0) return t->exact++, '=';
    if (apart == 1) return t->near++, '+';
    if (apart == -1) return t->near++, '-';
    return t->far++, '!';
}

static void write_cell(tac_json *j, const tac__sim_bench *b, const row *r,
                       int m, int t, double ours)
{
    tac__sim_row_begin(j, models[m].name, r->method, r->every);
    tac_json_f64(j, "target", targets[t] * 100);
    tac_json_f64(j, "gbps", ours / 1e9);
    tac_json_f64(j, "published", r->published[m][t]);
    tac_json_i64(j, "overlap", r->delay);
    tac_json_f64(j, "bits", b->opt->bits * r->quarter);
    tac_json_i64(j, "cells_apart", cells_apart(ours, r->published[m][t]));
    tac_json_end_object(j);
}

static tac_status do_row(tac__sim_bench *b, const row *r, int m, tally *t)
{
    double ours[TARGETS];
    char text[32], method[64];
    const int quiet = b->opt->quiet;
    TAC_TRY(simulate(b, r, m, ours));
    snprintf(method, sizeof method, "%s, H=%lld", r->method,
             (long long)r->every);
    if (!quiet) printf("%-5s %-29s", models[m].name, method);
    for (int i = 0; i < TARGETS; i++) {
        const char how = mark(cells_apart(ours[i], r->published[m][i]), t);
        write_cell(b->json, b, r, m, i, ours[i]);
        if (!quiet)
            printf(" %7s%c", tac__sim_gbps_text(ours[i], text, sizeof text),
                   how);
    }
    if (quiet) return TAC_OK;
    printf("\n%-5s %-29s", "", "  published");
    for (int i = 0; i < TARGETS; i++) printf(" %7.1f ", r->published[m][i]);
    printf("\n");
    return TAC_OK;
}

/* ---- the table
 * ----------------------------------------------------------------- */

static void print_head(const tac__sim_bench *b, const char *title)
{
    if (b->opt->quiet) return;
    printf("%s: Gbit/s for each utilisation\n"
           "%g bits a parameter (FP4: %g)%s, %lld steps\n\n%-35s",
           title, b->opt->bits, b->opt->bits / 4,
           b->opt->bits == TAC__SIM_FITTED_BITS
               ? ", FITTED to this table: nothing sends so many"
               : "",
           (long long)tac__sim_steps(b->opt, 1), "model, method");
    for (int i = 0; i < TARGETS; i++) printf(" %6g %%", targets[i] * 100);
    printf("\n");
}

static void print_tally(const tac__sim_bench *b, const tally *t)
{
    const int all = t->exact + t->near + t->far;
    if (b->opt->quiet) return;
    printf("\n= %d of %d exact; + - one cell of the grid (21 %%) above or "
           "below: %d within one cell; ! %d further\n",
           t->exact, all, t->exact + t->near, t->far);
}

tac_status tac__sim_paper(tac__sim_bench *b)
{
    const int is_eager = strcmp(b->opt->table, "eager") == 0;
    const row *rows = is_eager ? eager : streaming;
    tally t = {0, 0, 0};
    if (b->opt->trace)
        return tac_fail(b->ctx, TAC_ERR_ARG,
                        "a trace is of one model and network; leave out "
                        "--table");
    print_head(b, is_eager ? "Eager updates (arXiv:2502.12996), table 5"
                           : "Streaming DiLoCo (arXiv:2501.18512), table 4");
    for (int m = 0; m < MODELS; m++)
        for (const row *r = rows; r->method; r++) TAC_TRY(do_row(b, r, m, &t));
    print_tally(b, &t);
    return TAC_OK;
}
