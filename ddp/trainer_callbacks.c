/* Callbacks: what they are told, and one will for all ranks. */
#include "trainer_impl.h"

#include <math.h>

static tac_trainer_event *function(const tac_trainer_callback *c, int event)
{
    switch (event) {
    case TAC__TRAIN_BEGIN: return c->on_train_begin;
    case TAC__EPOCH_BEGIN: return c->on_epoch_begin;
    case TAC__STEP_BEGIN: return c->on_step_begin;
    case TAC__STEP_END: return c->on_step_end;
    case TAC__EPOCH_END: return c->on_epoch_end;
    case TAC__LOG: return c->on_log;
    case TAC__EVALUATE: return c->on_evaluate;
    case TAC__SAVE: return c->on_save;
    default: return c->on_train_end;
    }
}

static double mean(double sum, double count)
{
    return count > 0 ? sum / count : NAN;
}

static tac_trainer_state state_of(const tac__run *run)
{
    const tac_replica *r = run->replica;

    return (tac_trainer_state){
        .global_step = r->attempts - r->scaling.skipped,
        .attempts = r->attempts,
        .max_steps = run->total_steps,
        .epoch = (double)run->step / (double)run->epoch_steps,
        .loss = mean(run->logged.loss_sum, run->logged.count),
        .learning_rate = tac_replica_lr(r),
        .eval_loss = mean(run->last_eval.loss_sum, run->last_eval.count),
        .eval_accuracy =
            tac__run_own(run, "accuracy",
                         mean(run->last_eval.correct, run->last_eval.count)),
        .metrics = run->own,
        .n_metrics = run->n_own,
        .best_metric = run->best_metric,
        .rank = run->rank->rank,
        .world = run->rank->world,
        .is_world_process_zero = run->rank->rank == 0};
}

void tac__callbacks_tell(tac__run *run, int event)
{
    tac_trainer *t = run->trainer;
    tac_trainer_state state;

    if (event == TAC__LOG) run->logged = run->interval;
    if (t->config.n_callbacks == 0) return;
    state = state_of(run);
    for (size_t i = 0; i < t->config.n_callbacks; i++) {
        const tac_trainer_callback *c = &t->config.callbacks[i];
        tac_trainer_event *f = function(c, event);

        if (f) f(c->arg, t, &state, &t->wanted);
    }
}

tac_status tac__callbacks_agree(tac__run *run)
{
    tac_trainer *t = run->trainer;
    tac_trainer_control *w = &t->wanted;
    int32_t v[4] = {w->should_stop != 0, w->should_evaluate != 0,
                    w->should_save != 0, w->should_log != 0};
    tac_req *req = NULL;

    if (!t->communicates) return TAC_OK;
    TAC_TRY(
        tac_allreduce(run->rank->comm, v, v, 4, TAC_I32, TAC_MAX, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    *w = (tac_trainer_control){0, 0, 0, 0};
    run->asked.should_evaluate |= v[1];
    run->asked.should_save |= v[2];
    run->asked.should_log |= v[3];
    if (v[0]) run->halted = 1;
    return TAC_OK;
}
