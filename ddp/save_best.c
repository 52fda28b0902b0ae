/* Which checkpoint is the best, and which are kept: docs/checkpoints.md. Rank 0
 * alone looks after the folder; in the end all load what it found. */
#include "save.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/safetensors.h"

/* HF's names have a prefix that says the same for all. */
static const char *metric_name(const tac__run *run)
{
    const char *name = run->config->best_metric;

    return strncmp(name, "eval_", 5) ? name : name + 5;
}

tac_status tac__best_check(const tac__run *run)
{
    const char *name = metric_name(run);

    if (run->own_metrics || !strcmp(name, "loss") || !strcmp(name, "accuracy"))
        return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "--best-metric %.40s is neither loss nor accuracy, and the "
                    "program computes no other",
                    name);
}

static void add(tac_checkpoint_info *info, const char *name, double value)
{
    tac_checkpoint_metric *m = info->metrics;
    const tac_checkpoint_metric *end = m + info->n_metrics;

    /* A program's accuracy takes the place of the trainer's. */
    while (m < end && strcmp(m->name, name) != 0) m++;
    if (m == info->metrics + TAC_CHECKPOINT_METRICS) return;
    snprintf(m->name, sizeof m->name, "%s", name);
    m->value = value;
    if (m == end) info->n_metrics++;
}

void tac__best_tell(const tac__run *run, tac_checkpoint_info *info)
{
    const tac_metrics *m = &run->last_eval;

    if (run->evaluated_step != run->step || m->count <= 0) return;
    add(info, "loss", m->loss_sum / m->count);
    add(info, "accuracy", m->correct / m->count);
    for (size_t i = 0; i < run->n_own; i++)
        add(info, run->own[i].name, run->own[i].value);
}

tac_status tac__best_publish(const tac__run *run)
{
    tac_context *ctx = run->rank->ctx;

    TAC_TRY(tac_checkpoint_mark_best(ctx, run->save_root, metric_name(run)));
    return tac_checkpoint_rotate(ctx, run->save_root,
                                 (size_t)run->config->save_total_limit);
}

/* ---- going on -------------------------------------------------------------
 */

/* What the checkpoint in `folder` was worth, if it is none of later than where
 * the run goes on; else NaN. */
static double worth(const tac__run *run, const char *folder)
{
    char *path = tac_checkpoint_path(folder, "checkpoint.json");
    tac_checkpoint_info info;
    double value = NAN;

    if (path && tac_checkpoint_read_info(run->rank->ctx, path, &info) >= 0 &&
        info.attempts <= run->resumed_attempts)
        value = tac_checkpoint_metric_of(&info, metric_name(run));
    free(path);
    return value;
}

/* Of the checkpoints beside the one that the run goes on from. */
static double best_so_far(const tac__run *run)
{
    char *root = strdup(run->resumed_from), *best = NULL;
    char *end = root ? strrchr(root, '/') : NULL;
    double value = NAN;

    if (end && end[1]) *end = '\0';
    if (end &&
        tac_checkpoint_find_best(run->rank->ctx, root, metric_name(run),
                                 &best) >= 0 &&
        best)
        value = worth(run, best);
    free(best);
    free(root);
    return isnan(value) ? worth(run, run->resumed_from) : value;
}

tac_status tac__best_resume(tac__run *run)
{
    double value = NAN;
    tac_req *req = NULL;

    if (!run->resumed_from) return TAC_OK;
    if (run->rank->rank == 0) value = best_so_far(run);
    TAC_TRY(tac_broadcast(run->rank->comm, &value, 1, TAC_F64, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    run->best_metric = value;
    return TAC_OK;
}

/* ---- loading it -----------------------------------------------------------
 */

static tac_status look(const tac__run *run, char text[PATH_MAX])
{
    char *found = NULL;

    if (run->rank->rank != 0) return TAC_OK;
    TAC_TRY(tac_checkpoint_find_best(run->rank->ctx, run->save_root,
                                     metric_name(run), &found));
    if (!found)
        tac_log(run->rank->ctx, TAC_LOG_WARN,
                "no checkpoint in %s was evaluated: the last step's parameters "
                "stay",
                run->save_root);
    snprintf(text, PATH_MAX, "%s", found ? found : "");
    free(found);
    return TAC_OK;
}

static tac_status load(tac__run *run, const char *checkpoint)
{
    tac__saved saved = {.run = run, .file = TAC__FILE_MODEL};
    tac_safetensors *f = NULL;
    char *path = tac_checkpoint_path(checkpoint, "model.safetensors");
    tac_status s;

    if (!path)
        return tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for a path");
    s = tac_safetensors_open(run->rank->ctx, path, &f);
    free(path);
    if (s >= 0) s = tac_safetensors_load(f, tac__saved_walk, &saved, 0);
    tac_safetensors_close(f);
    return s < 0 ? s : tac_replica_refresh(run->replica);
}

/* What is told of the run in the end is told of the model that it ends with. */
static tac_status evaluate(tac__run *run, const char *checkpoint)
{
    tac_metrics m = TAC_METRICS_INIT;

    TAC_TRY(tac__run_evaluate(run, &run->val, &m));
    run->last_eval = m;
    tac__report_best(run, checkpoint);
    return TAC_OK;
}

static tac_status load_all(tac__run *run)
{
    char text[PATH_MAX] = "";
    tac_req *req = NULL;

    TAC_TRY(tac__save_agree(run, look(run, text)));
    TAC_TRY(
        tac_broadcast(run->rank->comm, text, PATH_MAX, TAC_U8, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (!text[0]) return TAC_OK;
    TAC_TRY(tac__save_agree(run, load(run, text)));
    return evaluate(run, text);
}

tac_status tac__best_load(tac__run *run)
{
    tac__capture *c = run->rank->capture;
    tac_status s;

    if (!run->config->load_best) return TAC_OK;
    c->armed = 1;
    s = load_all(run);
    c->armed = 0;
    run->agreed = s < 0;
    return s;
}
