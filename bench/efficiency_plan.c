/* What is trained on how many samples: the same for every row.
 *
 * Steps are raised until H and the accumulation divide them, up to the end of
 * an epoch, so that rows with fewer synchronisations or steps see the same
 * samples, and local SGD sends exactly an H-th. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "efficiency.h"
#include "tacit/data.h"

static tac_status look(eff *e)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    sweep_options o = {.model = e->o->model};
    sweep s = {.o = &o, .ctx = e->ctx};
    tac_data data;

    dc.dir = e->o->data_dir;
    TAC_TRY(tac_data_open(e->ctx, e->o->data, &dc, &data));
    e->train_count = tac_dataset_get_info(data.train).count;
    e->val_count = tac_dataset_get_info(data.val).count;
    e->test_count = tac_dataset_get_info(data.test).count;
    const tac_status status = sweep_layers(&s, data.train);
    tac_data_close(&data);
    e->params = s.params;
    free(s.layer_params);
    return status;
}

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t common(int64_t a, int64_t b)
{
    int64_t x = a, y = b;

    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static void plan_steps(eff *e)
{
    const int64_t epoch =
        over(over((int64_t)e->train_count, e->world), e->o->batch);
    const int64_t wanted =
        e->o->epochs > 0 ? (int64_t)ceil(e->o->epochs * (double)epoch - 1e-9)
                         : e->o->steps;
    const int64_t unit = common(e->o->sync_every, e->o->accumulate);
    const int64_t rest = wanted % epoch, raised = over(rest, unit) * unit;

    e->epoch_steps = epoch;
    e->step_count = wanted - rest + (raised < epoch ? raised : epoch);
}

static tac_status plan_rates(eff *e)
{
    const char *text = e->o->lrs;
    double *list;
    size_t n;

    e->n_lrs = strcmp(text, "own") == 0 ? 1 : EFF_SEARCH;
    if (!strcmp(text, "own") || !strcmp(text, "auto")) return TAC_OK;
    TAC_TRY(sweep_list_numbers(e->ctx, "lrs", text, &list, &n));
    for (size_t i = 0; i < n && i < EFF_LRS; i++) e->lrs[i] = list[i];
    free(list);
    e->n_lrs = n;
    e->lrs_given = 1;
    if (n <= EFF_LRS) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_CONFIG,
                    "--lrs: %zu learning rates; give at most %d", n, EFF_LRS);
}

static tac_status plan_networks(eff *e)
{
    TAC_TRY(
        sweep_networks(e->ctx, e->o->networks, e->networks, &e->n_networks));
    for (size_t i = 0; i < e->n_networks; i++) {
        char link[SWEEP_TEXT];

        snprintf(e->network_names[i], sizeof e->network_names[i], "%s",
                 e->networks[i]->name);
        snprintf(e->network_links[i], sizeof e->network_links[i], "%s",
                 tac__sweep_link(&e->networks[i]->net, link));
    }
    return TAC_OK;
}

static void count_runs(eff *e)
{
    size_t searches = 0;

    for (size_t i = 0; i < e->n_rows; i++) searches += e->rows[i].searches != 0;
    e->runs_planned =
        e->n_rows * (size_t)e->o->seeds + searches * (e->n_lrs - 1);
}

tac_status eff_plan(eff *e)
{
    TAC_TRY(look(e));
    TAC_TRY(plan_rates(e));
    TAC_TRY(plan_networks(e));
    plan_steps(e);
    TAC_TRY(eff_rows(e));
    count_runs(e);
    snprintf(e->model, sizeof e->model, "%s", e->o->model);
    snprintf(e->data, sizeof e->data, "%s", e->o->data);
    snprintf(e->how, sizeof e->how, "%d rank%s (%s)%s%.60s", e->world,
             e->world == 1 ? "" : "s", e->runs.launch ? "processes" : "threads",
             e->o->emulate ? ", emulated " : "",
             e->o->emulate ? e->o->emulate : "");
    return TAC_OK;
}
