/* A training step must not wait for its own loss. Each step enqueues a copy of
 * its loss sum and of its hits into the next slot; the host adds slots up only
 * when all are taken, or when somebody asks. Memory: slots * (8 + batch). */
#include "replica_impl.h"

#include <stdlib.h>

enum { SLOTS = 64 };

struct tac__history {
    size_t batch, used;
    double *loss;  /* (SLOTS) */
    uint8_t *hits; /* (SLOTS, batch) */
    size_t rows[SLOTS], valid[SLOTS];
    tac_metrics sum;
};

tac_status tac__history_create(tac_replica *r, size_t batch)
{
    struct tac__history *h = calloc(1, sizeof *h);

    if (h) {
        h->batch = batch;
        h->loss = calloc(SLOTS, sizeof *h->loss);
        h->hits = calloc(SLOTS * batch + 1, 1);
    }
    if (!h || !h->loss || !h->hits) {
        r->history = h;
        tac__history_destroy(r);
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for %d losses",
                        SLOTS);
    }
    r->history = h;
    return TAC_OK;
}

void tac__history_destroy(tac_replica *r)
{
    if (!r->history) return;
    free(r->history->loss);
    free(r->history->hits);
    free(r->history);
    r->history = NULL;
}

/* Waits for the copies and empties the slots into the sum. */
static tac_status drain(tac_replica *r)
{
    struct tac__history *h = r->history;
    const tac_device_ops *ops = tac_device_ops_of(r->device);

    TAC_TRY(ops->queue_sync(tac_device_impl(r->device), NULL));
    for (size_t s = 0; s < h->used; s++) {
        const uint8_t *hits = h->hits + s * h->batch;

        h->sum.loss_sum += h->loss[s];
        for (size_t i = 0; i < h->rows[s]; i++) h->sum.correct += hits[i];
        h->sum.count += (double)h->valid[s];
    }
    h->used = 0;
    return TAC_OK;
}

tac_status tac__history_add(tac_replica *r, size_t rows, size_t valid,
                            const tac_xent *xent)
{
    struct tac__history *h = r->history;
    const tac_device_ops *ops = tac_device_ops_of(r->device);
    void *impl = tac_device_impl(r->device);

    if (h->used == SLOTS) TAC_TRY(drain(r));
    h->rows[h->used] = rows;
    h->valid[h->used] = valid;
    TAC_TRY(ops->copy(impl, h->loss + h->used, xent->loss->data, sizeof(double),
                      TAC_COPY_DEVICE_TO_HOST, NULL));
    TAC_TRY(ops->copy(impl, h->hits + h->used * h->batch, xent->correct->data,
                      rows, TAC_COPY_DEVICE_TO_HOST, NULL));
    h->used++;
    return TAC_OK;
}

tac_status tac_replica_take_metrics(tac_replica *r, tac_metrics *out)
{
    TAC_TRY(drain(r));
    *out = r->history->sum;
    r->history->sum = (tac_metrics){0, 0, 0};
    return TAC_OK;
}

tac_status tac__history_restore(tac_replica *r, const tac_metrics *m)
{
    TAC_TRY(drain(r));
    r->history->sum.loss_sum += m->loss_sum;
    r->history->sum.correct += m->correct;
    r->history->sum.count += m->count;
    return TAC_OK;
}

tac_status tac_metrics_reduce(tac_comm *comm, tac_metrics *m)
{
    double v[3] = {m->loss_sum, m->correct, m->count};
    tac_req *req = NULL;

    TAC_TRY(tac_allreduce(comm, v, v, 3, TAC_F64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    *m = (tac_metrics){v[0], v[1], v[2]};
    return TAC_OK;
}
