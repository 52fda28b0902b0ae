/* What a run is made of: everything that the next step depends on, and what
 * its reports add up. Dropout, shuffling and stochastic rounding draw no
 * numbers: they are functions of seed, attempts and applied steps.
 *
 * The table below says which file keeps which part. Where gradients are
 * averaged, ranks have the same parameters, the same state of the optimizer and
 * of the scaler after every step, and rank 0's are everybody's. Otherwise each
 * rank has its own, and the model's file has a mean that is not loaded. */
#include "save.h"

#include <stdio.h>
#include <string.h>

#include "local.h"
#include "tacit/clock.h"

int tac__saved_is_apart(const tac__run *run)
{
    return strcmp(run->config->sync, "grad") != 0;
}

/* ---- parts ----------------------------------------------------------------
 */

static tac_status walk_params(void *saved, const tac_state_visitor *v)
{
    return tac_params_walk(((tac__saved *)saved)->run->replica->params, v);
}

static tac_status walk_optimizer(void *saved, const tac_state_visitor *v)
{
    return tac_optimizer_walk(((tac__saved *)saved)->run->replica->optimizer,
                              v);
}

static tac_status walk_scaler(void *saved, const tac_state_visitor *v)
{
    return tac_scaler_walk(((tac__saved *)saved)->run->replica->scaler, v);
}

static tac_status walk_sampler(void *saved, const tac_state_visitor *v)
{
    return tac_state_walk(v, "sampler.", tac_sampler_walk,
                          ((tac__saved *)saved)->run->train.sampler);
}

static tac_status walk_metrics(void *metrics, const tac_state_visitor *v)
{
    tac_metrics *m = metrics;

    TAC_TRY(tac_state_visit_f64(v, "loss_sum", &m->loss_sum));
    TAC_TRY(tac_state_visit_f64(v, "correct", &m->correct));
    TAC_TRY(tac_state_visit_f64(v, "count", &m->count));
    return tac_state_visit_f64(v, "nonfinite", &m->nonfinite);
}

static tac_status walk_times(void *times, const tac_state_visitor *v)
{
    tac_replica_times *t = times;

    TAC_TRY(tac_state_visit_f64(v, "forward_s", &t->forward_s));
    TAC_TRY(tac_state_visit_f64(v, "backward_s", &t->backward_s));
    TAC_TRY(tac_state_visit_f64(v, "update_s", &t->update_s));
    TAC_TRY(tac_state_visit_f64(v, "comm_s", &t->comm_s));
    TAC_TRY(tac_state_visit_f64(v, "comm_exposed_s", &t->comm_exposed_s));
    return tac_state_visit_f64(v, "wait_s", &t->wait_s);
}

/* Only local modes have it. */
static tac_status show_own_eval(tac__run *run, const tac_state_visitor *v)
{
    if (!run->replica->local) return TAC_OK;
    return tac_state_walk(v, "own_eval.", walk_metrics, &run->own_eval);
}

static tac_status show_run(void *saved, const tac_state_visitor *v)
{
    tac__saved *s = saved;
    tac__run *run = s->run;

    TAC_TRY(tac_state_visit_u64(v, "step", &run->step));
    TAC_TRY(tac_state_visit_u64(v, "attempts", &run->replica->attempts));
    TAC_TRY(tac_state_visit_u64(v, "epoch", &run->epoch));
    TAC_TRY(tac_state_visit(v, "samples", TAC_I64, 0, NULL, &run->samples));
    TAC_TRY(tac_state_visit_f64(v, "nonfinite", &run->nonfinite));
    TAC_TRY(tac_state_visit_f64(v, "train_s", &run->train_s));
    TAC_TRY(tac_state_visit_f64(v, "wall_s", &s->wall_s));
    TAC_TRY(tac_state_walk(v, "epoch_sum.", walk_metrics, &run->epoch_sum));
    TAC_TRY(tac_state_walk(v, "interval.", walk_metrics, &run->interval));
    TAC_TRY(tac_state_walk(v, "last_eval.", walk_metrics, &run->last_eval));
    TAC_TRY(show_own_eval(run, v));
    return tac_state_walk(v, "times.", walk_times, &run->replica->times);
}

static tac_status walk_run(void *saved, const tac_state_visitor *v)
{
    return tac_state_walk(v, "run.", show_run, saved);
}

tac_status tac__saved_walk_totals(void *totals, const tac_state_visitor *v)
{
    tac__totals *t = totals;

    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_logical", &t->bytes_logical));
    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_wire", &t->bytes_wire));
    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_between_hosts",
                                &t->bytes_between_hosts));
    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_sync_logical",
                                &t->bytes_sync_logical));
    TAC_TRY(
        tac_state_visit_u64(v, "comm.bytes_sync_wire", &t->bytes_sync_wire));
    return tac_state_visit_f64(v, "cpu_s", &t->cpu_s);
}

static tac_status walk_totals(void *saved, const tac_state_visitor *v)
{
    return tac__saved_walk_totals(&((tac__saved *)saved)->totals, v);
}

static tac_status show_codec(void *codec, const tac_state_visitor *v)
{
    return tac_codec_visit(codec, v);
}

static tac_status walk_codec(void *saved, const tac_state_visitor *v)
{
    return tac_state_walk(v, "codec.", show_codec,
                          ((tac__saved *)saved)->run->replica->codec);
}

static tac_status walk_local(void *saved, const tac_state_visitor *v)
{
    return tac__local_walk(((tac__saved *)saved)->run->replica, v);
}

/* ---- which part goes where ------------------------------------------------
 */

static const struct part {
    tac__file together, apart; /* its file where ranks are equal, or are not */
    tac_state_walk_fn *walk;   /* of a tac__saved */
} parts[] = {
    {TAC__FILE_MODEL, TAC__FILE_RANK, walk_params},
    {TAC__FILE_STATE, TAC__FILE_RANK, walk_optimizer},
    {TAC__FILE_STATE, TAC__FILE_RANK, walk_scaler},
    {TAC__FILE_STATE, TAC__FILE_STATE, walk_sampler},
    {TAC__FILE_STATE, TAC__FILE_STATE, walk_run},
    {TAC__FILE_RANK, TAC__FILE_RANK, walk_totals},
    {TAC__FILE_RANK, TAC__FILE_RANK, walk_codec},
    {TAC__FILE_RANK, TAC__FILE_RANK, walk_local},
};

void tac__saved_name(tac__file file, int rank, char out[TAC__FILE_NAME])
{
    if (file == TAC__FILE_RANK)
        snprintf(out, TAC__FILE_NAME, "rank-%05d.safetensors", rank);
    else
        snprintf(out, TAC__FILE_NAME, "%s.safetensors",
                 file == TAC__FILE_MODEL ? "model" : "state");
}

tac_status tac__saved_walk(void *saved, const tac_state_visitor *v)
{
    tac__saved *s = saved;
    const int apart = tac__saved_is_apart(s->run);

    if (s->file == TAC__FILE_MODEL)
        return s->mean ? tac__save_mean_walk(s, v) : walk_params(s, v);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if ((apart ? parts[i].apart : parts[i].together) == s->file)
            TAC_TRY(parts[i].walk(s, v));
    return TAC_OK;
}

/* ---- before saving and after loading --------------------------------------
 */

tac__saved tac__saved_take(tac__run *run)
{
    tac_replica_update_times(run->replica);
    return (tac__saved){.run = run,
                        .totals = tac__run_totals(run),
                        .wall_s = tac_clock_s() - run->begin_s};
}

tac_status tac__saved_give(const tac__saved *s)
{
    tac__run *run = s->run;

    run->before = s->totals;
    run->before_s = s->wall_s;
    run->replica->before = run->replica->times;
    run->saved_step = run->step;
    run->resuming = 1;
    return tac_replica_refresh(run->replica);
}
