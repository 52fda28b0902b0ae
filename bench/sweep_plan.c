/* From options to cases: every method at every H with every codec, and the
 * baselines.
 *
 * All cases train on the same samples in the same order: a run is a number of
 * micro-steps, and a case that accumulates H of them makes an H-th of the
 * steps. That can be exact only where H divides the micro-steps, so their
 * number is raised until it does: up to a multiple of all H, or to the end of
 * an epoch, where a step may be short. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "runs_impl.h"
#include "tacit/data.h"

enum { BATCH = 32, MOST_BATCH = 64 };

/* ---- cases -----------------------------------------------------------------
 */

typedef struct grid {
    char **sync, **compress, **baseline;
    double *every;
    size_t n_sync, n_compress, n_baseline, n_every;
} grid;

static void grid_free(grid *g)
{
    free(g->sync);
    free(g->compress);
    free(g->baseline);
    free(g->every);
}

static tac_status check_whole(tac_context *ctx, const grid *g)
{
    for (size_t i = 0; i < g->n_every; i++)
        if (g->every[i] != floor(g->every[i]) || g->every[i] > 1e9)
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--sync-every: %g is no number of steps; give "
                            "whole numbers from 1 to 1e9",
                            g->every[i]);
    return TAC_OK;
}

static tac_status grid_read(const sweep *s, grid *g)
{
    static const char known[] = "local|slowmo|diloco|post-local|streaming";
    const sweep_options *o = s->o;

    TAC_TRY(
        sweep_list_names(s->ctx, "sync", o->sync, known, &g->sync, &g->n_sync));
    TAC_TRY(sweep_list_numbers(s->ctx, "sync-every", o->sync_every, &g->every,
                               &g->n_every));
    TAC_TRY(check_whole(s->ctx, g));
    TAC_TRY(sweep_list_codecs(s->ctx, "compress", o->compress, &g->compress,
                              &g->n_compress));
    if (g->n_compress == 0)
        return tac_fail(s->ctx, TAC_ERR_CONFIG,
                        "--compress is empty; give none, or codecs");
    return sweep_list_codecs(s->ctx, "baseline-compress", o->baseline_compress,
                             &g->baseline, &g->n_baseline);
}

static sweep_case *add(sweep *s, const char *sync, int64_t every,
                       int64_t accumulate, const char *compress)
{
    sweep_case *k = &s->cases[s->n_cases++];

    memset(k, 0, sizeof *k);
    snprintf(k->sync, sizeof k->sync, "%s", sync);
    snprintf(k->compress, sizeof k->compress, "%s", compress);
    k->every = every;
    k->accumulate = accumulate;
    k->lr = k->sync_alone_s = NAN;
    return k;
}

static void add_methods(sweep *s, const grid *g)
{
    for (size_t m = 0; m < g->n_sync; m++)
        for (size_t c = 0; c < g->n_compress; c++)
            for (size_t i = 0; i < g->n_every; i++) {
                const char *codec = g->compress[c];
                const int64_t h = (int64_t)g->every[i];
                sweep_case *k = add(s, g->sync[m], h, 1, codec);

                snprintf(k->label, sizeof k->label, "%.15s%s%.30s H=%lld",
                         k->sync, strcmp(codec, "none") ? " " : "",
                         strcmp(codec, "none") ? codec : "", (long long)h);
            }
}

static sweep_case *add_baseline(sweep *s, const char *sync, int64_t every,
                                int64_t accumulate, const char *compress,
                                const char *label)
{
    sweep_case *k = add(s, sync, every, accumulate, compress);

    k->baseline = 1;
    snprintf(k->label, sizeof k->label, "%s", label);
    return k;
}

static void add_baselines(sweep *s, const grid *g)
{
    char label[64];

    add_baseline(s, "grad", 1, 1, "none", "per-step");
    for (size_t i = 0; i < g->n_baseline; i++) {
        if (strcmp(g->baseline[i], "none") == 0) continue;
        snprintf(label, sizeof label, "per-step %.40s", g->baseline[i]);
        add_baseline(s, "grad", 1, 1, g->baseline[i], label);
    }
    for (size_t i = 0; i < g->n_every; i++) {
        const int64_t h = (int64_t)g->every[i];

        if (h == 1) continue;       /* that is per-step */
        if (h > s->epoch_batches) { /* no step crosses an epoch's end */
            if (s->too_long == 0 || h < s->too_long) s->too_long = h;
            continue;
        }
        snprintf(label, sizeof label, "accumulate %lld", (long long)h);
        add_baseline(s, "grad", 1, h, "none", label);
    }
    add_baseline(s, "oneshot", s->micro_steps, 1, "none", "one-shot");
    add_baseline(s, "none", 0, 1, "none", "no averaging");
}

/* ---- samples and steps -----------------------------------------------------
 */

/* What data and model amount to. */
static tac_status look(sweep *s)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    tac_data data;

    dc.dir = s->o->data_dir;
    TAC_TRY(tac_data_open(s->ctx, s->o->data, &dc, &data));
    s->train_count = tac_dataset_get_info(data.train).count;
    s->val_count = tac_dataset_get_info(data.val).count;
    s->test_count = tac_dataset_get_info(data.test).count;
    const tac_status status = sweep_layers(s, data.train);
    tac_data_close(&data);
    return status;
}

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Micro-steps of an epoch. */
static int64_t epoch_of(const sweep *s, int64_t batch)
{
    return over(over((int64_t)s->train_count, s->world), batch);
}

/* With that the last step of an epoch is as long as the others. */
static int64_t choose_batch(const sweep *s, int64_t longest)
{
    for (int64_t b = BATCH; b <= MOST_BATCH; b++)
        if (epoch_of(s, b) % longest == 0) return b;
    return BATCH;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Least common multiple of all H; at most `most`. */
static int64_t common(const grid *g, int64_t most)
{
    int64_t all = 1;

    for (size_t i = 0; i < g->n_every && all < most; i++) {
        const int64_t h = (int64_t)g->every[i];
        all = all / greatest_divisor(all, h) * h;
    }
    return all < most ? all : most;
}

/* Of the whole run: whole epochs stay what they are. */
static int64_t total(const sweep *s, const grid *g)
{
    const int64_t epoch = s->epoch_batches;
    const int64_t wanted =
        s->o->steps > 0 ? s->o->steps
                        : (int64_t)ceil(s->o->epochs * (double)epoch - 1e-9);
    const int64_t rest = wanted % epoch, unit = common(g, epoch);
    const int64_t raised = over(rest, unit) * unit;

    return wanted - rest + (raised < epoch ? raised : epoch);
}

static tac_status plan_steps(sweep *s, const grid *g, sweep_options *o)
{
    TAC_TRY(look(s));
    if (o->batch == 0)
        o->batch = choose_batch(s, (int64_t)g->every[g->n_every - 1]);
    s->epoch_batches = epoch_of(s, o->batch);
    s->micro_steps = total(s, g);
    return TAC_OK;
}

/* Groups of micro-steps do not cross the end of an epoch. */
static void set_steps(const sweep *s, sweep_case *k)
{
    const int64_t epoch = s->epoch_batches, m = s->micro_steps;

    k->steps =
        m / epoch * over(epoch, k->accumulate) + over(m % epoch, k->accumulate);
}

/* ---- learning rates --------------------------------------------------------
 */

static tac_status plan_rates(sweep *s)
{
    const sweep_options *o = s->o;
    const int quick = strcmp(o->lrs, "quick") == 0;
    const double own = strcmp(o->optimizer, "sgd") == 0 ? 0.03 : 0.003;
    static const double times[] = {0.5, 1, 2};

    if (!quick && strcmp(o->lrs, "auto") != 0)
        return sweep_list_numbers(s->ctx, "lrs", o->lrs, &s->lrs, &s->n_lrs);
    s->n_lrs = quick ? 2 : 3;
    s->lrs = calloc(s->n_lrs, sizeof *s->lrs);
    if (!s->lrs) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < s->n_lrs; i++) s->lrs[i] = own * times[i + quick];
    return TAC_OK;
}

static tac_status make_cases(sweep *s, const grid *g)
{
    const size_t most =
        (g->n_sync * g->n_compress + 1) * g->n_every + g->n_baseline + 3;

    s->cases = calloc(most, sizeof *s->cases);
    if (!s->cases) return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
    add_methods(s, g);
    add_baselines(s, g);
    for (size_t i = 0; i < s->n_cases; i++) set_steps(s, &s->cases[i]);
    s->runs_planned = s->n_cases * (s->n_lrs + (size_t)s->o->seeds - 1);
    return TAC_OK;
}

tac_status sweep_plan(sweep *s, sweep_options *o)
{
    grid g = {0};
    tac_status status = grid_read(s, &g);

    if (status >= 0) status = plan_rates(s);
    if (status >= 0) status = plan_steps(s, &g, o);
    if (status >= 0) status = make_cases(s, &g);
    grid_free(&g);
    return status;
}
