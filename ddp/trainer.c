/* The trainer: opens a run when it is first needed, and asks it. */
#include "trainer_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

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

static tac_status compare_config(tac_trainer *t)
{
    tac__lines l = {.used = 0};

    tac__lines_config(&l, &t->rank.config);
    return tac__compare_lines(t->rank.comm, &l);
}

static void add_count(tac__lines *l, const char *name, const tac_dataset *set)
{
    char value[32] = "none";

    if (set)
        snprintf(value, sizeof value, "%zu", tac_dataset_get_info(set).count);
    tac__lines_add(l, name, value);
}

static tac_status compare_parts(tac_trainer *t)
{
    tac__lines l = {.used = 0};

    add_count(&l, "training samples", t->run.data.train);
    add_count(&l, "evaluation samples", t->run.data.val);
    add_count(&l, "test samples", t->run.data.test);
    tac__lines_add(&l, "compute_metrics",
                   t->config.compute_metrics ? "given" : "none");
    return tac__compare_lines(t->rank.comm, &l);
}

static tac_status create(tac_trainer *t, const tac_trainer_config *config,
                         const tac_options *options)
{
    TAC_TRY(tac__place_find(t->rank.comm, &t->rank.place));
    TAC_TRY(agree(t, configure(t, config, options)));
    TAC_TRY(agree(t, compare_config(t)));
    TAC_TRY(find_callbacks(t));
    TAC_TRY(tac__trainer_data(t));
    return agree(t, compare_parts(t));
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
    if (t->open != TAC__CLOSED) tac__run_close(&t->run);
    t->open = TAC__CLOSED;
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
tac_status tac__trainer_open(tac_trainer *t, int to)
{
    const tac_data data = t->run.data;

    if (t->open >= to && !(to == TAC__TO_TRAIN && t->trained)) return TAC_OK;
    close_run(t);
    t->run = (tac__run){.rank = &t->rank,
                        .config = &t->rank.config,
                        .trainer = t,
                        .out = t->config.out,
                        .data = data,
                        .model = t->config.model,
                        .own_metrics = t->config.compute_metrics != NULL};
    t->open = to;
    return tac__run_open(&t->run, to == TAC__TO_TRAIN);
}

tac_replica *tac_trainer_replica(tac_trainer *t)
{
    return t->open == TAC__CLOSED ? NULL : t->run.replica;
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
    TAC_TRY(tac__trainer_open(t, TAC__TO_TRAIN));
    t->trained = 1;
    s = tac__run_train(&t->run);
    t->rank.capture->armed = 1;
    if (out && (s >= 0 || s == TAC_ERR_INTERRUPTED)) fill_output(t, out);
    return s;
}
