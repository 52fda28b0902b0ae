/* checkpoint_rotate.c: which checkpoint was best, and removing old ones.
 *
 * Both look at nothing but the folder, so that a process that was killed leaves
 * nothing to be remembered. A folder is renamed before it is removed: what a
 * kill leaves is never half a checkpoint, and the next begin removes it. Cost:
 * reading one small file a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_impl.h"
#include "files.h"

/* ---- the best ------------------------------------------------------------ */

int tac_checkpoint_is_lower_better(const char *metric)
{
    const size_t n = strlen(metric);

    return n >= 4 && !strcmp(metric + n - 4, "loss");
}

double tac_checkpoint_metric_of(const tac_checkpoint_info *info,
                                const char *metric)
{
    for (size_t i = 0; i < info->n_metrics; i++)
        if (!strcmp(info->metrics[i].name, metric))
            return info->metrics[i].value;
    return NAN;
}

/* NaN if it was not evaluated, or can't be read, which is another's concern. */
static double metric_at(tac_context *quiet, const char *root, uint64_t step,
                        const char *metric)
{
    char name[TAC__STEP_NAME_BYTES + 20];
    tac_checkpoint_info info;
    double value = NAN;

    tac__step_name(step, name);
    strcat(name, "/checkpoint.json");
    char *path = tac__files_join(root, name);
    if (path && tac_checkpoint_read_info(quiet, path, &info) >= 0)
        value = tac_checkpoint_metric_of(&info, metric);
    free(path);
    return value;
}

/* From the lowest step on, so that the first of equals stays the best. */
static int find_best(tac_context *quiet, const char *root, const char *metric,
                     uint64_t *out)
{
    const int lower = tac_checkpoint_is_lower_better(metric);
    size_t n = 0;
    uint64_t *steps = tac__checkpoint_steps(root, &n);
    double best = NAN;

    for (size_t i = n; i-- > 0;) {
        const double x = metric_at(quiet, root, steps[i], metric);

        if (isnan(x) || (lower ? x >= best : x <= best)) continue;
        best = x;
        *out = steps[i];
    }
    free(steps);
    return !isnan(best);
}

static void ignore(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static tac_status no_memory(tac_context *ctx)
{
    return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to look for checkpoints");
}

tac_status tac_checkpoint_find_best(tac_context *ctx, const char *root,
                                    const char *metric, char **out)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *quiet = NULL;
    char name[TAC__STEP_NAME_BYTES];
    uint64_t step = 0;

    cc.log = ignore;
    cc.threads = 1;
    if (tac_context_create(&cc, &quiet) < 0) return no_memory(ctx);
    const int found = find_best(quiet, root, metric, &step);
    tac_context_destroy(quiet);
    *out = NULL;
    if (!found) return TAC_OK;
    tac__step_name(step, name);
    *out = tac__files_join(root, name);
    return *out ? TAC_OK : no_memory(ctx);
}

tac_status tac_checkpoint_mark_best(tac_context *ctx, const char *root,
                                    const char *metric)
{
    char *best = NULL;
    uint64_t step = 0, marked = 0;

    TAC_TRY(tac_checkpoint_find_best(ctx, root, metric, &best));
    if (!best) return TAC_OK;
    tac__step_parse(strrchr(best, '/') + 1, &step);
    free(best);
    if (tac__checkpoint_pointer(root, "best", &marked) && marked == step)
        return TAC_OK;
    return tac__checkpoint_point(ctx, root, "best", step);
}

/* ---- removing ------------------------------------------------------------ */

static void remove_step(tac_context *ctx, const char *root, uint64_t step)
{
    char name[TAC__STEP_NAME_BYTES], hidden[TAC__STEP_NAME_BYTES + 16];

    tac__step_name(step, name);
    snprintf(hidden, sizeof hidden, TAC__TEMPORARY "old-%s", name);
    char *from = tac__files_join(root, name);
    char *to = tac__files_join(root, hidden);
    if (!from || !to || rename(from, to) != 0 || tac__files_remove_tree(to))
        tac_log(ctx, TAC_LOG_WARN,
                "cannot remove the old checkpoint %s/%s: %m; it stays", root,
                name);
    free(from);
    free(to);
}

/* What lies beyond the latest is left of a run that was resumed from before it:
 * that goes first; then the oldest. */
static size_t in_order_of_age(uint64_t *steps, size_t n, uint64_t latest,
                              uint64_t best, uint64_t *out)
{
    size_t count = 0;

    for (size_t i = 0; i < n && steps[i] > latest; i++)
        if (steps[i] != best) out[count++] = steps[i];
    for (size_t i = n; i-- > 0 && steps[i] < latest;)
        if (steps[i] != best) out[count++] = steps[i];
    return count;
}

tac_status tac_checkpoint_rotate(tac_context *ctx, const char *root,
                                 size_t keep)
{
    uint64_t latest, best = UINT64_MAX;
    size_t n = 0;

    if (keep == 0 || !tac__checkpoint_pointer(root, "latest", &latest))
        return TAC_OK;
    tac__checkpoint_pointer(root, "best", &best);
    uint64_t *steps = tac__checkpoint_steps(root, &n);
    uint64_t *old = malloc((n + 1) * sizeof *old);
    if (old && n > keep) {
        const size_t most = n - keep;
        const size_t count = in_order_of_age(steps, n, latest, best, old);

        for (size_t i = 0; i < count && i < most; i++)
            remove_step(ctx, root, old[i]);
    }
    free(steps);
    free(old);
    return old ? TAC_OK : no_memory(ctx);
}
