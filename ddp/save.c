/* Saving: rank 0 makes the folder, all ranks write, rank 0 publishes; after
 * each of the three all agree on how it went. Costs three small exchanges and
 * the writing of 4 bytes a parameter and the optimizer's state: on each rank,
 * where each has its own. */
#include "save.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica_impl.h"
#include "tacit/clock.h"
#include "tacit/safetensors.h"

tac_status tac__save_agree(tac__run *run, tac_status mine)
{
    tac__capture *c = run->rank->capture;
    const int armed = c->armed;

    mine = tac__agree_verdict(run->rank->comm, c, mine);
    c->armed = armed;
    return mine;
}

/* ---- where and when -------------------------------------------------------
 */

/* Rank 0's run folder counts; the others may not even have been told of it. */
static tac_status share_root(tac__run *run, char text[PATH_MAX])
{
    tac_req *req = NULL;

    TAC_TRY(
        tac_broadcast(run->rank->comm, text, PATH_MAX, TAC_U8, 0, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    run->save_root = strdup(text);
    if (run->save_root) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for a path");
}

/* Settings that no file can hold (a path that is no UTF-8) are better found out
 * before training. */
static tac_status try_settings(tac__run *run)
{
    tac_safetensors_writer *w = NULL;
    tac_status s = tac_safetensors_writer_create(run->rank->ctx, &w);

    if (s >= 0) s = tac__save_config(run, w);
    tac_safetensors_writer_destroy(w);
    return s;
}

tac_status tac__save_open(tac__run *run)
{
    const tac_train_config *c = run->config;
    char text[PATH_MAX] = "";

    run->saving = strcmp(c->save_every, "0") != 0;
    if (!run->saving || c->dry_run) return TAC_OK;
    if (run->rank->rank == 0)
        snprintf(text, sizeof text, "%s/checkpoints", c->run_dir);
    TAC_TRY(share_root(run, text));
    if (run->rank->rank == 0 && !run->resumed_from &&
        tac_checkpoint_exists(run->save_root))
        tac_log(run->rank->ctx, TAC_LOG_WARN,
                "%s has checkpoints of an earlier run, which this one will not "
                "continue (--resume auto does)",
                run->save_root);
    TAC_TRY(tac__best_check(run));
    /* A run that is over already makes no checkpoint that would see to it. */
    if (run->rank->rank == 0)
        TAC_TRY(tac_checkpoint_tidy(run->rank->ctx, run->save_root));
    return try_settings(run);
}

int tac__save_due(const tac__run *run)
{
    const char *every = run->config->save_every;

    if (!run->saving || run->saved_step == run->step) return 0;
    if (run->stopped || run->asked.should_save) return 1;
    if (!strcmp(every, "best")) return run->improved;
    if (run->reached || run->halted || run->step >= run->total_steps) return 1;
    if (!strcmp(every, "epoch")) return run->step % run->epoch_steps == 0;
    return run->step % strtoull(every, NULL, 10) == 0;
}

/* ---- files ----------------------------------------------------------------
 */

static tac_status no_memory(tac__run *run)
{
    return tac_fail(run->rank->ctx, TAC_ERR_NOMEM,
                    "no memory for a checkpoint");
}

static tac_status write_tensors(tac__run *run, tac__saved *saved,
                                tac__file file)
{
    const int rank = file == TAC__FILE_RANK ? run->rank->rank : -1;
    char name[TAC__FILE_NAME], *path;
    tac_safetensors_writer *w = NULL;
    tac_status s;

    tac__saved_name(file, run->rank->rank, name);
    path = tac_checkpoint_tmp_path(run->save_root, run->step, name);
    s = path ? TAC_OK : no_memory(run);
    saved->file = file;
    if (s >= 0) s = tac_safetensors_writer_create(run->rank->ctx, &w);
    if (s >= 0) {
        const tac_state_visitor v = tac_safetensors_collect(w);

        s = tac__saved_walk(saved, &v);
    }
    if (s >= 0) s = tac__save_mark(w, saved->id, run->replica->attempts, rank);
    if (s >= 0 && file == TAC__FILE_STATE) s = tac__save_config(run, w);
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    free(path);
    return s;
}

static tac_status write_info(tac__run *run)
{
    const tac_replica *r = run->replica;
    tac_checkpoint_info info = {.format = 1,
                                .step = tac__replica_applied(r),
                                .attempts = r->attempts,
                                .world = run->rank->world,
                                .files = 2 + run->rank->world};
    char *path =
        tac_checkpoint_tmp_path(run->save_root, run->step, "checkpoint.json");
    tac_status s = path ? TAC_OK : no_memory(run);

    snprintf(info.program, sizeof info.program, "tacit %s", TAC_VERSION_STRING);
    tac__best_tell(run, &info);
    if (s >= 0) s = tac_checkpoint_write_info(run->rank->ctx, path, &info);
    free(path);
    return s;
}

static tac_status write_files(tac__run *run, tac__saved *saved)
{
    TAC_TRY(write_tensors(run, saved, TAC__FILE_RANK));
    if (run->rank->rank != 0) return TAC_OK;
    TAC_TRY(write_tensors(run, saved, TAC__FILE_MODEL));
    TAC_TRY(write_tensors(run, saved, TAC__FILE_STATE));
    return write_info(run);
}

/* ---- all together ---------------------------------------------------------
 */

/* What can be done alone before anybody writes. */
static tac_status begin(tac__run *run, tac__saved *saved)
{
    TAC_TRY(tac__save_mean_open(saved));
    if (run->rank->rank != 0) return TAC_OK;
    return tac_checkpoint_begin(run->rank->ctx, run->save_root, run->step);
}

static tac_status publish(tac__run *run)
{
    if (run->rank->rank != 0) return TAC_OK;
    TAC_TRY(tac_checkpoint_publish(run->rank->ctx, run->save_root, run->step));
    return tac__best_publish(run);
}

static tac_status save(tac__run *run, tac__saved *saved)
{
    TAC_TRY(tac__save_agree(run, begin(run, saved)));
    TAC_TRY(tac__save_agree(run, tac__save_id(run, &saved->id)));
    if (tac__saved_is_apart(run))
        TAC_TRY(tac__save_agree(run, tac__save_mean(saved)));
    TAC_TRY(tac__save_agree(run, write_files(run, saved)));
    return tac__save_agree(run, publish(run));
}

tac_status tac__save(tac__run *run)
{
    const double begin = tac_clock_s();
    tac__capture *c = run->rank->capture;
    tac__saved saved = tac__saved_take(run);
    tac_status s;

    c->armed = 1;
    s = save(run, &saved);
    c->armed = 0;
    free(saved.room);
    if (s < 0) {
        run->agreed = 1;
        if (run->rank->rank == 0)
            tac_checkpoint_discard(run->save_root, run->step);
        return s;
    }
    run->saved_step = run->step;
    tac__report_saved(run, tac_clock_s() - begin);
    /* Saving is not training: the next interval has nothing of it. */
    run->logged_s += tac_clock_s() - begin;
    run->exchanged_s = tac_clock_s();
    return TAC_OK;
}
