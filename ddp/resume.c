/* Going on with a run: which checkpoint, does it fit, and everything into its
 * place. Rank 0 looks, so that all take the same one. */
#include "save.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/safetensors.h"

static tac_status no_memory(const tac__run *run)
{
    return tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for a path");
}

/* ---- which ----------------------------------------------------------------
 */

/* --resume auto: the run folder's, if it has any; "" otherwise. */
static tac_status look_in_run_dir(tac__run *run, char text[PATH_MAX])
{
    char *root = tac_checkpoint_path(run->config->run_dir, "checkpoints");
    char *found = NULL;
    tac_status s = root ? TAC_OK : no_memory(run);

    if (s >= 0 && tac_checkpoint_exists(root))
        s = tac_checkpoint_find(run->rank->ctx, root, &found);
    if (found) snprintf(text, PATH_MAX, "%s", found);
    free(found);
    free(root);
    return s;
}

static tac_status look(tac__run *run, char text[PATH_MAX])
{
    const char *where = run->config->resume;
    char *found = NULL;

    if (run->rank->rank != 0) return TAC_OK;
    if (!strcmp(where, "auto")) return look_in_run_dir(run, text);
    TAC_TRY(tac_checkpoint_find(run->rank->ctx, where, &found));
    snprintf(text, PATH_MAX, "%s", found);
    free(found);
    return TAC_OK;
}

static tac_status share(tac__run *run, char text[PATH_MAX])
{
    tac_req *req = NULL;

    TAC_TRY(
        tac_broadcast(run->rank->comm, text, PATH_MAX, TAC_U8, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (!text[0]) return TAC_OK;
    run->resumed_from = strdup(text);
    return run->resumed_from ? TAC_OK : no_memory(run);
}

/* ---- does it fit ----------------------------------------------------------
 */

tac_status tac__resume_open(const tac__run *run, const char *name,
                            tac_safetensors **out)
{
    char *path = tac_checkpoint_path(run->resumed_from, name);
    tac_status s =
        path ? tac_safetensors_open(run->rank->ctx, path, out) : no_memory(run);

    free(path);
    return s;
}

static tac_status check_config(tac__run *run)
{
    tac_safetensors *f = NULL;
    tac_status s;

    TAC_TRY(tac__resume_open(run, "state.safetensors", &f));
    s = tac__resume_config(run, f);
    if (s >= 0) s = tac__resume_world(run);
    if (s >= 0) s = tac__resume_batch(run, f);
    run->regrouped =
        run->resumed_world != run->rank->world || tac__saved_was_regrouped(f);
    tac_safetensors_close(f);
    return s;
}

static tac_status read_info(tac__run *run)
{
    char *path = tac_checkpoint_path(run->resumed_from, "checkpoint.json");
    tac_checkpoint_info info = {0};
    tac_status s = path ? tac_checkpoint_read_info(run->rank->ctx, path, &info)
                        : no_memory(run);

    free(path);
    TAC_TRY(s);
    run->resumed_attempts = info.attempts;
    run->resumed_applied = info.step;
    run->resumed_world = info.world;
    return check_config(run);
}

tac_status tac__resume_find(tac__run *run)
{
    char text[PATH_MAX] = "";
    tac_status s;

    if (!run->config->resume) return TAC_OK;
    TAC_TRY(tac__agree_verdict(run->rank->comm, run->rank->capture,
                               look(run, text)));
    s = share(run, text);
    if (s >= 0 && run->resumed_from) s = read_info(run);
    return tac__agree_verdict(run->rank->comm, run->rank->capture, s);
}

/* ---- everything -----------------------------------------------------------
 */

static tac_status check(const tac__run *run, const tac_safetensors *f,
                        const char *name, tac__file file, uint64_t *id)
{
    const int rank = file == TAC__FILE_RANK ? tac__resume_rank(run) : -1;

    TAC_TRY(tac__resume_mark(run, f, name, rank, id));
    if (file == TAC__FILE_STATE) TAC_TRY(tac__resume_data(run, f));
    if (file == TAC__FILE_RANK) TAC_TRY(tac__resume_equal(run, f));
    return tac__resume_counters(run, f, file);
}

/* The mean of ranks that are not equal is for others to use. */
static int is_loaded(const tac__run *run, tac__file file)
{
    return file != TAC__FILE_MODEL || !tac__saved_is_apart(run);
}

static tac_status load(tac__run *run, tac__saved *saved, tac__file file)
{
    char name[TAC__FILE_NAME];
    tac_safetensors *f = NULL;
    tac_status s;

    saved->file = file;
    tac__saved_name(file, tac__resume_rank(run), name);
    TAC_TRY(tac__resume_open(run, name, &f));
    s = check(run, f, name, file, &saved->id);
    if (s >= 0 && is_loaded(run, file))
        s = tac_safetensors_load(f, tac__saved_walk, saved, 0);
    tac_safetensors_close(f);
    return s;
}

tac_status tac__resume_load(tac__run *run)
{
    tac__saved saved = {.run = run};

    if (!run->resumed_from) return TAC_OK;
    TAC_TRY(load(run, &saved, TAC__FILE_STATE));
    TAC_TRY(load(run, &saved, TAC__FILE_MODEL));
    TAC_TRY(load(run, &saved, TAC__FILE_RANK));
    TAC_TRY(tac__resume_totals(run, &saved.totals));
    return tac__saved_give(&saved);
}
