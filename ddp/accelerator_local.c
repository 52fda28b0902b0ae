/* Local SGD for a part of a run: the replica is put into a local mode and taken
 * out of it, so that what happens in between is what ddp_train --sync local
 * does. */
#include "accelerator_impl.h"

#include "local.h"
#include "replica_impl.h"

/* The replica borrows a->config, and so follows. */
static tac_status configure(tac_accelerator *a, const char *sync, int64_t every)
{
    tac_train_config c = a->asked;

    c.sync = sync;
    if (every > 0) c.sync_every = every;
    TAC_TRY(tac_train_config_resolve(a->ctx, &c, a->world));
    a->config = c;
    return TAC_OK;
}

tac_status tac_accelerator_localsgd_begin(tac_accelerator *a, int64_t every)
{
    tac_replica *r = a->replica;

    TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, "localsgd_begin",
                                    "step and zero_grad"));
    if (a->dirty || r->local)
        return tac_fail(a->ctx, TAC_ERR_STATE,
                        "tac_accelerator_localsgd_begin: inside a group of "
                        "batches or of local SGD");
    if (every < 1)
        return tac_fail(a->ctx, TAC_ERR_CONFIG,
                        "tac_accelerator_localsgd_begin: every is %lld; give a "
                        "number of steps",
                        (long long)every);
    TAC_TRY(configure(a, "local", every));
    tac__replica_average(r, 0);
    TAC_TRY(tac__accelerator_agree(a, tac__local_create(r, a->total_steps)));
    return tac__accelerator_agree(a, tac__local_start(r, 0));
}

tac_status tac_accelerator_localsgd_step(tac_accelerator *a)
{
    if (!a->replica || !a->replica->local)
        return tac_fail(a->ctx, TAC_ERR_STATE,
                        "tac_accelerator_localsgd_step: call "
                        "tac_accelerator_localsgd_begin first");
    if (!a->micro.last) return TAC_OK;
    return tac__local_step(a->replica, a->micro.samples,
                           !tac__accelerator_is_empty(a));
}

/* Rank 0's, so that optimizers that stepped on different gradients do the same
 * from now on. */
static tac_status take_from_first(void *accelerator, const tac_state_item *item)
{
    tac_accelerator *a = accelerator;
    const size_t bytes =
        tac_state_item_count(item) * tac_dtype_size(item->dtype);
    tac_req *req = NULL;

    if (bytes == 0) return TAC_OK;
    TAC_TRY(tac_broadcast(a->comm, item->data, bytes, TAC_U8, 0, NULL, &req));
    return tac_wait(req, 0);
}

tac_status tac_accelerator_localsgd_end(tac_accelerator *a)
{
    const tac_state_visitor v = {take_from_first, a, NULL};
    tac_replica *r = a->replica;

    if (!r || !r->local || a->dirty)
        return tac_fail(a->ctx, TAC_ERR_STATE,
                        "tac_accelerator_localsgd_end: after localsgd_begin, "
                        "and after zero_grad");
    TAC_TRY(tac__local_finish(r));
    tac__local_destroy(r);
    TAC_TRY(configure(a, "grad", 0));
    tac__replica_average(r, 1);
    TAC_TRY(tac_optimizer_walk(r->optimizer, &v));
    TAC_TRY(tac_scaler_walk(r->scaler, &v));
    return tac_replica_refresh(r);
}
