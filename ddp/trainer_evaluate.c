/* A trainer evaluates, predicts, and writes its model. */
#include "trainer_impl.h"

#include <stdlib.h>

#include "local.h"
#include "tacit/checkpoint.h"
#include "tacit/folder.h"
#include "tacit/safetensors.h"

static tac_status agree(tac_trainer *t, tac_status mine)
{
    return tac__agree_verdict(t->rank.comm, t->rank.capture, mine);
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
    TAC_TRY(tac__trainer_open(t, TAC__TO_EVALUATE));
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

    if (!p)
        return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                        "tac_trainer_predict: a place for the prediction is "
                        "needed");
    TAC_TRY(evaluate_set(t, set, 1, &part, out));
    *p = (tac_eval_prediction){
        t->logits, t->labels, tac_sampler_count(part->sampler),
        tac_model_config_of(t->run.replica->model)->classes};
    return TAC_OK;
}

/* ---- weights --------------------------------------------------------------
 */

/* By their plain names, which other programs know. */
static tac_status collect(const tac_params *params, tac_safetensors_writer *w)
{
    for (size_t i = 0; i < tac_params_count(params); i++) {
        const tac_param *p = tac_params_get(params, i);

        TAC_TRY(tac_safetensors_add(w, p->name, TAC_F32, p->ndim, p->shape,
                                    tac_params_value(params, i)));
    }
    return TAC_OK;
}

static tac_status write_model(tac_trainer *t, const char *dir)
{
    tac_safetensors_writer *w = NULL;
    char *path;
    tac_status s;

    if (t->rank.rank != 0) return TAC_OK;
    if (tac_make_folders(dir) != 0)
        return tac_fail(t->rank.ctx, TAC_ERR_IO,
                        "cannot make the folder %s: %m; check the path", dir);
    path = tac_checkpoint_path(dir, "model.safetensors");
    s = path ? tac_safetensors_writer_create(t->rank.ctx, &w)
             : tac_fail(t->rank.ctx, TAC_ERR_NOMEM, "no memory for a path");
    if (s >= 0) s = collect(t->run.replica->params, w);
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    free(path);
    return s;
}

tac_status tac_trainer_save_model(tac_trainer *t, const char *dir)
{
    tac_status s;

    if (!dir || !*dir)
        return tac_fail(t->rank.ctx, TAC_ERR_ARG,
                        "tac_trainer_save_model: a folder is needed");
    t->rank.capture->armed = 1;
    TAC_TRY(tac__trainer_open(t, TAC__TO_EVALUATE));
    TAC_TRY(tac__local_show_mean(t->run.replica));
    s = agree(t, write_model(t, dir));
    TAC_TRY(tac__local_hide_mean(t->run.replica));
    return s;
}
