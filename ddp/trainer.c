/* The trainer: opens a run when it is first needed, and asks it. */
#include "trainer_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compare.h"
#include "local.h"
#include "save.h"
#include "tacit/safetensors.h"

enum { CLOSED, TO_EVALUATE, TO_TRAIN };

static tac_status agree(tac_trainer *t, tac_status mine)
{
    return tac__agree_verdict(t->rank.comm, t->rank.capture, mine);
}

/* ---- life -----------------------------------------------------------------
 */

static tac_status read_config(tac_trainer *t, const tac_trainer_config *from)
{
    const size_t bytes = from ? from->struct_size : 0;

    if (bytes < sizeof(size_t))
        return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                        "tac_trainer_create: struct_size is %zu; start from "
                        "{.struct_size = sizeof(tac_trainer_config)}",
                        bytes);
    memcpy(&t->config, from,
           bytes < sizeof t->config ? bytes : sizeof t->config);
    return TAC_OK;
}

static tac_status configure(tac_trainer *t, const tac_trainer_config *config,
                            const tac_options *options)
{
    TAC_TRY(read_config(t, config));
    TAC_TRY(tac__trainer_options(t, options));
    t->rank.stop = t->config.stop;
    return tac_train_config_resolve(t->rank.ctx, &t->rank.config,
                                    t->rank.world);
}

static int has_step_callbacks(const tac_trainer_config *c)
{
    for (size_t i = 0; i < c->n_callbacks; i++) {
        const tac_trainer_callback *b = &c->callbacks[i];

        if (b->on_epoch_begin || b->on_step_begin || b->on_step_end ||
            b->on_epoch_end || b->on_log || b->on_evaluate || b->on_save)
            return 1;
    }
    return 0;
}

static tac_status find_callbacks(tac_trainer *t)
{
    int32_t mine = has_step_callbacks(&t->config);
    tac_req *req = NULL;

    TAC_TRY(tac_allreduce(t->rank.comm, &mine, &mine, 1, TAC_I32, TAC_MAX, NULL,
                          &req));
    TAC_TRY(tac_wait(req, 0));
    t->communicates = mine;
    return TAC_OK;
}

static tac_status create(tac_trainer *t, const tac_trainer_config *config,
                         const tac_options *options)
{
    TAC_TRY(tac__place_find(t->rank.comm, &t->rank.place));
    TAC_TRY(agree(t, configure(t, config, options)));
    TAC_TRY(agree(t, tac__compare_options(t->rank.comm, t->rank.options)));
    TAC_TRY(find_callbacks(t));
    return tac__trainer_data(t);
}

tac_status tac__trainer_create(tac_context *ctx, tac_comm *comm,
                               const tac_trainer_config *config,
                               const tac_options *options, tac_trainer **out)
{
    tac_trainer *t = calloc(1, sizeof *t);
    tac_status s;

    if (!t) {
        tac_comm_abort(comm, "no memory for a trainer");
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a trainer");
    }
    t->rank.ctx = ctx;
    t->rank.comm = comm;
    t->rank.rank = t->own_capture.rank = tac_comm_rank(comm);
    t->rank.world = t->own_capture.world = tac_comm_size(comm);
    t->rank.capture = tac__capture_of(ctx);
    if (!t->rank.capture) t->rank.capture = &t->own_capture;
    t->rank.capture->armed = 1;
    s = create(t, config, options);
    if (s < 0) {
        tac_trainer_destroy(t);
        return s;
    }
    *out = t;
    return TAC_OK;
}

tac_status tac_trainer_create(tac_context *ctx, tac_comm *comm,
                              const tac_trainer_config *config,
                              tac_trainer **out)
{
    return tac__trainer_create(ctx, comm, config, NULL, out);
}

static void close_run(tac_trainer *t)
{
    if (t->open != CLOSED) tac__run_close(&t->run);
    t->open = CLOSED;
}

void tac_trainer_destroy(tac_trainer *t)
{
    if (!t) return;
    tac__part_close(&t->part);
    close_run(t);
    tac_data_close(&t->run.data);
    tac_options_destroy(t->owned);
    free(t->logits);
    free(t->labels);
    free(t);
}

/* What is there to evaluate needs no folder; what is there to train is built
 * anew if it was for the other. */
static tac_status open_run(tac_trainer *t, int to)
{
    const tac_data data = t->run.data;

    if (t->open >= to && !(to == TO_TRAIN && t->trained)) return TAC_OK;
    close_run(t);
    t->run = (tac__run){.rank = &t->rank,
                        .config = &t->rank.config,
                        .trainer = t,
                        .out = t->config.out,
                        .data = data,
                        .own_metrics = t->config.compute_metrics != NULL};
    t->open = to;
    return tac__run_open(&t->run, to == TO_TRAIN);
}

tac_replica *tac_trainer_replica(tac_trainer *t)
{
    return t->open == CLOSED ? NULL : t->run.replica;
}

/* ---- training -------------------------------------------------------------
 */

static tac_status set_resume(tac_trainer *t, const char *resume)
{
    if (!resume) return TAC_OK;
    if (strlen(resume) >= sizeof t->resume)
        return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                        "the path to resume from is longer than %zu bytes",
                        sizeof t->resume - 1);
    strcpy(t->resume, resume);
    t->rank.config.resume = t->resume;
    return tac_train_config_resolve(t->rank.ctx, &t->rank.config,
                                    t->rank.world);
}

static tac_status may_train(tac_trainer *t, const char *resume)
{
    if (t->trained && !resume)
        return tac_fail(t->rank.ctx, TAC_ERR_STATE,
                        "this trainer has trained: give a checkpoint to resume "
                        "from, or make another trainer");
    return set_resume(t, resume);
}

static void fill_output(tac_trainer *t, tac_train_output *out)
{
    const tac__run *run = &t->run;
    const tac_summary *s = &run->summary;

    *out = (tac_train_output){.global_step = (uint64_t)s->steps,
                              .attempts = (uint64_t)s->attempts,
                              .training_loss = s->train_loss,
                              .eval_loss = s->eval_loss,
                              .eval_accuracy = s->eval_accuracy,
                              .metrics = run->own,
                              .n_metrics = run->n_own,
                              .best_metric = run->best_metric,
                              .params_hash = s->params_hash,
                              .interrupted = run->stopped,
                              .resumable = run->stopped && run->saving,
                              .summary = *s};
}

tac_status tac_trainer_train(tac_trainer *t, const char *resume,
                             tac_train_output *out)
{
    tac_status s;

    t->rank.capture->armed = 1;
    TAC_TRY(agree(t, may_train(t, resume)));
    TAC_TRY(open_run(t, TO_TRAIN));
    t->trained = 1;
    s = tac__run_train(&t->run);
    t->rank.capture->armed = 1;
    if (out && (s >= 0 || s == TAC_ERR_INTERRUPTED)) fill_output(t, out);
    return s;
}

/* ---- evaluation -----------------------------------------------------------
 */

/* NULL: the run's own; else one is opened for it. */
static tac_status find_part(tac_trainer *t, tac_dataset *set, tac__part **part)
{
    const tac_model_config *m = tac_model_config_of(t->run.replica->model);
    tac_dataset_info info;

    *part = &t->run.val;
    if (!set && t->run.val.loader) return TAC_OK;
    if (!set)
        return tac_fail(t->rank.ctx, TAC_ERR_STATE,
                        "there is no dataset to evaluate: give one, or an "
                        "eval_dataset to the trainer");
    info = tac_dataset_get_info(set);
    if (info.h != m->h || info.w != m->w || info.c != m->c ||
        info.classes > m->classes)
        return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                        "the dataset has samples of %zux%zux%zu in %zu "
                        "classes, the model is for %zux%zux%zu in %zu",
                        info.h, info.w, info.c, info.classes, m->h, m->w, m->c,
                        m->classes);
    tac__part_close(&t->part);
    *part = &t->part;
    return tac__part_open(&t->run, set, &t->part);
}

static tac_status evaluate(tac_trainer *t, tac__part *part, int logits,
                           tac_metrics *m)
{
    tac__run *run = &t->run;

    TAC_TRY(tac__local_show_mean(run->replica));
    TAC_TRY(logits || run->own_metrics
                ? tac__run_measure(run, part, m)
                : tac_replica_evaluate(run->replica, part->loader, m));
    TAC_TRY(tac__local_hide_mean(run->replica));
    return tac_metrics_reduce(t->rank.comm, m);
}

static tac_status evaluate_set(tac_trainer *t, tac_dataset *set, int logits,
                               tac__part **part, tac_eval_output *out)
{
    const tac__run *run = &t->run;
    tac_metrics m = TAC_METRICS_INIT;

    t->rank.capture->armed = 1;
    TAC_TRY(open_run(t, TO_EVALUATE));
    TAC_TRY(agree(t, find_part(t, set, part)));
    TAC_TRY(evaluate(t, *part, logits, &m));
    if (out)
        *out = (tac_eval_output){
            .loss = m.loss_sum / m.count,
            .accuracy = tac__run_own(run, "accuracy", m.correct / m.count),
            .samples = (size_t)m.count,
            .metrics = run->own,
            .n_metrics = run->n_own};
    return TAC_OK;
}

tac_status tac_trainer_evaluate(tac_trainer *t, tac_dataset *set,
                                tac_eval_output *out)
{
    tac__part *part;

    return evaluate_set(t, set, 0, &part, out);
}

tac_status tac_trainer_predict(tac_trainer *t, tac_dataset *set,
                               tac_eval_prediction *p, tac_eval_output *out)
{
    tac__part *part;

    TAC_TRY(evaluate_set(t, set, 1, &part, out));
    *p = (tac_eval_prediction){
        t->logits, t->labels, tac_sampler_count(part->sampler),
        tac_model_config_of(t->run.replica->model)->classes};
    return TAC_OK;
}

/* ---- weights --------------------------------------------------------------
 */

static tac_status write_model(tac_trainer *t, const char *dir)
{
    tac__saved saved = {.run = &t->run, .file = TAC__FILE_MODEL};
    tac_safetensors_writer *w = NULL;
    char *path;
    tac_status s;

    if (t->rank.rank != 0) return TAC_OK;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return tac_fail(t->rank.ctx, TAC_ERR_IO,
                        "cannot make the folder %s: %m; check the path", dir);
    path = tac_checkpoint_path(dir, "model.safetensors");
    s = path ? tac_safetensors_writer_create(t->rank.ctx, &w)
             : tac_fail(t->rank.ctx, TAC_ERR_NOMEM, "no memory for a path");
    if (s >= 0) {
        const tac_state_visitor v = tac_safetensors_collect(w);

        s = tac__saved_walk(&saved, &v);
    }
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    free(path);
    return s;
}

tac_status tac_trainer_save_model(tac_trainer *t, const char *dir)
{
    tac_status s;

    t->rank.capture->armed = 1;
    TAC_TRY(open_run(t, TO_EVALUATE));
    TAC_TRY(tac__local_show_mean(t->run.replica));
    s = agree(t, write_model(t, dir));
    TAC_TRY(tac__local_hide_mean(t->run.replica));
    return s;
}
