/* What a run is made of: everything that the next step depends on, and what
 * its reports add up. Dropout, shuffling and stochastic rounding draw no
 * numbers: they are functions of seed, attempts and applied steps. */
#include "save.h"

#include "tacit/clock.h"

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

static tac_status walk_run(void *saved, const tac_state_visitor *v)
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
    return tac_state_walk(v, "times.", walk_times, &run->replica->times);
}

tac_status tac__saved_walk_shared(void *saved, const tac_state_visitor *v)
{
    tac__saved *s = saved;
    tac_replica *r = s->run->replica;

    TAC_TRY(tac_optimizer_walk(r->optimizer, v));
    TAC_TRY(tac_scaler_walk(r->scaler, v));
    TAC_TRY(
        tac_state_walk(v, "sampler.", tac_sampler_walk, s->run->train.sampler));
    return tac_state_walk(v, "run.", walk_run, s);
}

static tac_status walk_codec(void *codec, const tac_state_visitor *v)
{
    return tac_codec_visit(codec, v);
}

tac_status tac__saved_walk_rank(void *saved, const tac_state_visitor *v)
{
    tac__saved *s = saved;
    tac__totals *t = &s->totals;

    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_logical", &t->bytes_logical));
    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_wire", &t->bytes_wire));
    TAC_TRY(tac_state_visit_u64(v, "comm.bytes_between_hosts",
                                &t->bytes_between_hosts));
    TAC_TRY(tac_state_visit_f64(v, "cpu_s", &t->cpu_s));
    return tac_state_walk(v, "codec.", walk_codec, s->run->replica->codec);
}

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
