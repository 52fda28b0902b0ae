/* A batch's way through an accelerator. What is checked here is the order of
 * calls; what is computed is the replica's (loop.c). */
#include "accelerator_impl.h"

#include "local.h"
#include "replica_impl.h"

/* ---- batches --------------------------------------------------------------
 */

uint64_t tac_accelerator_epochs(const tac_accelerator *a)
{
    if (a->epoch_steps == 0) return 0;
    return (a->total_steps + a->epoch_steps - 1) / a->epoch_steps;
}

uint64_t tac_accelerator_epoch(const tac_accelerator *a)
{
    return a->sampler ? tac_sampler_epoch(a->sampler) : 0;
}

tac_status tac_accelerator_start_epoch(tac_accelerator *a, uint64_t epoch)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, "start_epoch",
                                    "step and zero_grad"));
    if (a->resuming && epoch == tac_sampler_epoch(a->sampler)) {
        a->resuming = 0;
        return tac_loader_resume(a->loader);
    }
    a->resuming = 0;
    return tac_loader_start_epoch(a->loader, epoch);
}

/* Of a whole step of `n` a rank: over all ranks, in local SGD of this one. */
static double samples_of(const tac_accelerator *a, uint64_t position, size_t n)
{
    const size_t r = (size_t)a->rank;

    if (!a->replica->local)
        return (double)tac_sampler_step_count(a->sampler, position, n);
    return (double)tac_sampler_step_count_of(a->sampler, position, n, r, r + 1);
}

/* The batch as one of a group of `k`. */
static void place(tac_accelerator *a, uint64_t k)
{
    const tac_batch *b = a->batch;
    const size_t n = (size_t)a->config.batch;
    const uint64_t group = b->step - b->step % k;

    a->micro = (tac_micro){
        .first = !a->dirty,
        .last = (b->step + 1) % k == 0 ||
                b->step + 1 == tac_loader_batches(a->loader),
        .samples = samples_of(a, group * n * (uint64_t)a->world, n * k),
        .first_sample = b->count ? b->position[0] : 0};
}

tac_status tac_accelerator_next(tac_accelerator *a, const tac_batch **out)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, "next",
                                    "backward, step and zero_grad"));
    TAC_TRY(tac__accelerator_given(a, out, "next", "out"));
    *out = a->batch = NULL;
    if (!a->dirty && a->replica->attempts >= a->total_steps) return TAC_OK;
    TAC_TRY(tac_loader_next(a->loader, &a->batch));
    *out = a->batch;
    if (!a->batch) return TAC_OK;
    a->evaluating = 0;
    a->stage = TAC__BATCH;
    place(a, 1);
    return TAC_OK;
}

static tac_status expect_batch(const tac_accelerator *a, const char *call)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__BATCH, call, "next"));
    if (!a->evaluating) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_STATE,
                    "tac_accelerator_%s: this batch is of an evaluation", call);
}

tac_status tac_accelerator_accumulate(tac_accelerator *a)
{
    TAC_TRY(expect_batch(a, "accumulate"));
    place(a, (uint64_t)a->config.accumulate);
    return TAC_OK;
}

tac_status tac_accelerator_no_sync(tac_accelerator *a)
{
    TAC_TRY(expect_batch(a, "no_sync"));
    a->micro.last = 0;
    return TAC_OK;
}

int tac_accelerator_sync_gradients(const tac_accelerator *a)
{
    return a->micro.last;
}

/* ---- a step ---------------------------------------------------------------
 */

tac_status tac_accelerator_forward(tac_accelerator *a)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__BATCH, "forward", "next"));
    if (a->evaluating) {
        TAC_TRY(tac_replica_forward_eval(a->replica, a->batch, &a->logits,
                                         &a->xent));
        a->stage = TAC__FORWARD;
        return tac__history_end_step(a->replica, NULL);
    }
    TAC_TRY(tac_replica_forward(a->replica, a->batch, &a->micro, &a->logits,
                                &a->xent));
    a->stage = TAC__FORWARD;
    return TAC_OK;
}

tac_status tac_accelerator_backward(tac_accelerator *a)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__FORWARD, "backward", "forward"));
    TAC_TRY(tac_replica_backward(a->replica, &a->micro, &a->xent));
    a->dirty = 1;
    a->checked = 0;
    a->stage = a->micro.last ? TAC__BACKWARD : TAC__IDLE;
    return TAC_OK;
}

/* Calls after backward do nothing while a group is being added up. */
static int is_between(const tac_accelerator *a)
{
    return a->replica && a->stage == TAC__IDLE && a->batch && !a->micro.last;
}

static tac_status check(tac_accelerator *a)
{
    if (a->checked) return TAC_OK;
    a->checked = 1;
    return tac_replica_check(a->replica);
}

int tac__accelerator_is_empty(const tac_accelerator *a)
{
    return a->replica->local && a->micro.samples == 0;
}

/* An attempt that computed nothing. */
static tac_status drop(tac_accelerator *a)
{
    a->replica->attempts++;
    a->replica->dropped++;
    a->skipped = 1;
    a->stage = TAC__STEPPED;
    return tac__history_end_step(a->replica, NULL);
}

tac_status tac_accelerator_clip_grad_norm(tac_accelerator *a, double max_norm)
{
    if (is_between(a)) return TAC_OK;
    TAC_TRY(tac__accelerator_expect(a, TAC__BACKWARD, "clip_grad_norm",
                                    "backward"));
    if (tac__accelerator_is_empty(a)) return TAC_OK;
    TAC_TRY(check(a));
    return tac_replica_clip(a->replica, max_norm);
}

tac_status tac_accelerator_step(tac_accelerator *a)
{
    const uint64_t before = a->replica ? a->replica->scaling.skipped : 0;

    if (is_between(a)) return TAC_OK;
    TAC_TRY(tac__accelerator_expect(a, TAC__BACKWARD, "step", "backward"));
    if (tac__accelerator_is_empty(a)) return drop(a);
    TAC_TRY(check(a));
    TAC_TRY(tac_replica_update(a->replica));
    a->skipped = a->replica->scaling.skipped != before;
    a->stage = TAC__STEPPED;
    return tac_replica_poll(a->replica, NULL);
}

int tac_accelerator_optimizer_step_was_skipped(const tac_accelerator *a)
{
    return a->skipped;
}

tac_status tac_accelerator_zero_grad(tac_accelerator *a)
{
    if (is_between(a)) return TAC_OK;
    TAC_TRY(tac__accelerator_expect(a, TAC__STEPPED, "zero_grad", "step"));
    a->stage = TAC__IDLE;
    a->dirty = 0;
    return TAC_OK;
}

/* ---- what came of it ------------------------------------------------------
 */

/* At any stage, but after prepare. */
static tac_status prepared(const tac_accelerator *a, const char *call)
{
    return tac__accelerator_expect(a, a->stage, call, "prepare");
}

uint64_t tac_accelerator_steps(const tac_accelerator *a)
{
    return a->replica ? tac__replica_applied(a->replica) : 0;
}

double tac_accelerator_lr(const tac_accelerator *a)
{
    return a->replica ? tac_replica_lr(a->replica) : 0;
}

tac_status tac_accelerator_take_metrics(tac_accelerator *a, tac_metrics *out)
{
    TAC_TRY(prepared(a, "take_metrics"));
    TAC_TRY(tac__accelerator_given(a, out, "take_metrics", "out"));
    TAC_TRY(tac_replica_take_metrics(a->replica, out));
    return tac_metrics_reduce(a->comm, out);
}

tac_status tac_accelerator_params_hash(tac_accelerator *a, uint64_t *out)
{
    TAC_TRY(prepared(a, "params_hash"));
    TAC_TRY(tac__accelerator_given(a, out, "params_hash", "out"));
    return tac_replica_hash(a->replica, out);
}

tac_replica *tac_accelerator_replica(tac_accelerator *a)
{
    return a->replica;
}
