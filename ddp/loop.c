/* The path of one training step. The numbered calls are the whole of it; what a
 * person who writes the loop himself would write as well. In f32 without loss
 * scaling the region and the scaler are there too, and pass everything
 * through. */
#include "replica_impl.h"

#include "doubt.h"
#include "record.h"
#include "tacit/clock.h"
#include "tacit/ops.h"
#include "tacit/trace.h"

/* Adds the time since *since to *sum, records the span, and starts the next. */
static void lap(tac_replica *r, const char *name, uint64_t *since, double *sum)
{
    const uint64_t now = tac_clock_ns();

    tac_trace_span(r->ctx, TAC_LANE_STEP, name, *since, now,
                   (int64_t)r->attempts);
    *sum += (double)(now - *since) * 1e-9;
    *since = now;
}

/* Forward and loss, in the precision of the run. */
static tac_status forward(tac_replica *r, const tac_batch *batch,
                          const tac_tape_step *step, tac_tensor **logits,
                          tac_xent *xent)
{
    tac_tensor *x, *y;
    tac_autocast region;

    TAC_TRY(tac_tape_begin(r->tape, step)); /* 1 */
    TAC_TRY(tac__mixed_region(r, &region)); /* 2: tac_autocast_begin */
    tac_status s = tac__replica_inputs(r, batch, &x, &y);
    if (s >= 0) s = tac_model_forward(r->model, r->tape, x, logits); /* 3 */
    if (s >= 0) s = tac_op_softmax_cross_entropy(r->tape, *logits, y, xent);
    TAC_TRY(tac_autocast_end(&region)); /* 4 */
    TAC_TRY(s);
    return tac__history_add(r, batch->count, batch->valid_count, xent);
}

tac_status tac_replica_forward(tac_replica *r, const tac_batch *batch,
                               const tac_micro *micro, tac_tensor **logits,
                               tac_xent *xent)
{
    const tac_tape_step step = {.flags = micro->first ? 0 : TAC_TAPE_ACCUMULATE,
                                .step = r->attempts,
                                .first_sample = micro->first_sample,
                                .sample_stride =
                                    (uint64_t)tac_comm_size(r->comm)};
    uint64_t since = tac_clock_ns();

    if (micro->first) tac__record_begin(r->record);
    TAC_TRY(forward(r, batch, &step, logits, xent));
    lap(r, "forward", &since, &r->times.forward_s);
    return TAC_OK;
}

/* Ranks that a step's samples are counted over. */
static int ranks(const tac_replica *r)
{
    if (r->worker) return tac_comm_size(r->worker);
    return r->local ? 1 : tac_comm_size(r->comm);
}

/* Backward with the averaging behind it. */
static tac_status backward(tac_replica *r, const tac_micro *micro,
                           const tac_xent *xent)
{
    /* Gradients are averaged over ranks, so the mean over the samples of all
     * of these needs their number here. */
    const double scale = micro->samples > 0 ? ranks(r) / micro->samples : 0;

    tac__doubt_arm(r, micro->last);
    r->hook_s = 0;
    if (r->reducer)
        TAC_TRY(tac_reducer_begin(r->reducer, micro->last,
                                  r->scaling.scale)); /* 5 */
    tac__record_backward(r->record);
    TAC_TRY(tac_tape_backward_scaled(r->tape, xent->loss, scale,
                                     tac_scaler_scale(r->scaler))); /* 6 */
    return r->reducer ? TAC_OK : tac__doubt_all(r);
}

tac_status tac_replica_backward(tac_replica *r, const tac_micro *micro,
                                const tac_xent *xent)
{
    uint64_t since = tac_clock_ns();

    TAC_TRY(backward(r, micro, xent));
    lap(r, "backward", &since, &r->times.backward_s);
    r->times.backward_s -= r->hook_s;
    if (r->reducer) TAC_TRY(tac_reducer_finish(r->reducer, 0)); /* 7 */
    return micro->last ? tac__mixed_observe(r) : TAC_OK;
}

/* Nothing here waits or asks. */
tac_status tac_replica_check(tac_replica *r)
{
    const float *found_inf = &tac_optimizer_scalars(r->optimizer)->found_inf;

    TAC_TRY(tac_scaler_check(r->scaler, r->optimizer, NULL)); /* 8 */
    return tac__history_end_step(r, found_inf);
}

tac_status tac_replica_clip(tac_replica *r, double max_norm)
{
    return tac_optimizer_clip(r->optimizer, max_norm, NULL); /* 9 */
}

tac_status tac_replica_update(tac_replica *r)
{
    TAC_TRY(tac_scaler_step(r->scaler, r->optimizer, NULL));        /* 10 */
    TAC_TRY(tac_scaler_update(r->scaler, NULL));                    /* 11 */
    if (r->master) TAC_TRY(tac_master_after_step(r->master, NULL)); /* 12 */
    r->attempts++;
    return tac__mixed_poll(r);
}

/* The gradients are averaged: one step, unless they have inf or NaN. */
static tac_status update(tac_replica *r)
{
    TAC_TRY(tac_replica_check(r));
    if (r->config->clip_norm > 0)
        TAC_TRY(tac_replica_clip(r, r->config->clip_norm));
    return tac_replica_update(r);
}

tac_status tac_replica_step(tac_replica *r, const tac_batch *batch,
                            const tac_micro *micro)
{
    uint64_t since;
    tac_tensor *logits;
    tac_xent xent;

    TAC_TRY(tac_replica_forward(r, batch, micro, &logits, &xent));
    TAC_TRY(tac_replica_backward(r, micro, &xent));
    since = tac_clock_ns();
    if (micro->last) TAC_TRY(update(r));
    lap(r, "update", &since, &r->times.update_s);
    if (micro->last) tac__record_end(r->record);
    return TAC_OK;
}

tac_status tac_replica_forward_eval(tac_replica *r, const tac_batch *batch,
                                    tac_tensor **logits, tac_xent *xent)
{
    const tac_tape_step step = {.flags = TAC_TAPE_EVAL};

    return forward(r, batch, &step, logits, xent);
}

tac_status tac_replica_evaluate(tac_replica *r, tac_loader *loader,
                                tac_metrics *out)
{
    tac_metrics kept;
    const tac_batch *batch;
    tac_tensor *logits;
    tac_xent xent;

    TAC_TRY(tac_replica_take_metrics(r, &kept));
    TAC_TRY(tac_loader_start_epoch(loader, 0));
    for (;;) {
        TAC_TRY(tac_loader_next(loader, &batch));
        if (!batch) break;
        TAC_TRY(tac_replica_forward_eval(r, batch, &logits, &xent));
        TAC_TRY(tac__history_end_step(r, NULL));
    }
    TAC_TRY(tac_replica_take_metrics(r, out));
    return tac__history_restore(r, &kept);
}
