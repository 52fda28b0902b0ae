/* A training step must not wait for its own loss. Each step enqueues a copy of
 * its loss sum and of its hits into the next slot; the host adds slots up only
 * when all are taken, or when somebody asks. Memory: slots * (8 + batch).
 *
 * Whether the step was applied is known on the device at its end, and comes in
 * its last slot. Until then the step's losses are kept apart, because those
 * that are not finite count in one way or the other (tac_metrics). */
#include "replica_impl.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS = 64 };

struct tac__history {
    size_t batch, used;
    double *loss;  /* (SLOTS) */
    uint8_t *hits; /* (SLOTS, batch) */
    size_t rows[SLOTS], valid[SLOTS];
    float found_inf[SLOTS];
    int ends[SLOTS];         /* the slot is its step's last */
    tac_metrics finite, bad; /* of the step that has not ended, by loss */
    tac_metrics sum;
    double last; /* mean loss of the last step; NaN: none that counts */
};

tac_status tac__history_create(tac_replica *r, size_t batch)
{
    struct tac__history *h = calloc(1, sizeof *h);

    if (h) {
        h->batch = batch;
        h->last = NAN;
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

static void add(tac_metrics *sum, const tac_metrics *m)
{
    sum->loss_sum += m->loss_sum;
    sum->correct += m->correct;
    sum->count += m->count;
    sum->nonfinite += m->nonfinite;
}

static tac_metrics slot_sums(const struct tac__history *h, size_t s)
{
    const uint8_t *hits = h->hits + s * h->batch;
    tac_metrics m = {h->loss[s], 0, (double)h->valid[s], 0};

    for (size_t i = 0; i < h->rows[s]; i++) m.correct += hits[i];
    return m;
}

static void end_step(struct tac__history *h, int skipped)
{
    h->last = skipped || h->bad.count > 0
                  ? NAN
                  : h->finite.loss_sum / h->finite.count;
    add(&h->sum, &h->finite);
    if (skipped)
        h->sum.nonfinite += h->bad.count;
    else
        add(&h->sum, &h->bad);
    h->finite = h->bad = (tac_metrics)TAC_METRICS_INIT;
}

/* Waits for the copies and empties the slots into the sum. */
static tac_status drain(tac_replica *r)
{
    struct tac__history *h = r->history;
    const tac_device_ops *ops = tac_device_ops_of(r->device);

    TAC_TRY(ops->queue_sync(tac_device_impl(r->device), NULL));
    for (size_t s = 0; s < h->used; s++) {
        const tac_metrics m = slot_sums(h, s);

        add(isfinite(m.loss_sum) ? &h->finite : &h->bad, &m);
        if (h->ends[s]) end_step(h, h->found_inf[s] != 0);
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
    h->ends[h->used] = 0;
    h->rows[h->used] = rows;
    h->valid[h->used] = valid;
    TAC_TRY(ops->copy(impl, h->loss + h->used, xent->loss->data, sizeof(double),
                      TAC_COPY_DEVICE_TO_HOST, NULL));
    TAC_TRY(ops->copy(impl, h->hits + h->used * h->batch, xent->correct->data,
                      rows, TAC_COPY_DEVICE_TO_HOST, NULL));
    h->used++;
    return TAC_OK;
}

tac_status tac__history_end_step(tac_replica *r, const float *found_inf)
{
    struct tac__history *h = r->history;
    const size_t last = h->used - 1;

    h->ends[last] = 1;
    h->found_inf[last] = 0;
    if (!found_inf) return TAC_OK;
    return tac_device_ops_of(r->device)->copy(
        tac_device_impl(r->device), &h->found_inf[last], found_inf,
        sizeof *found_inf, TAC_COPY_DEVICE_TO_HOST, NULL);
}

tac_status tac_replica_take_metrics(tac_replica *r, tac_metrics *out)
{
    TAC_TRY(drain(r));
    *out = r->history->sum;
    r->history->sum = (tac_metrics)TAC_METRICS_INIT;
    return TAC_OK;
}

tac_status tac__history_last(tac_replica *r, double *loss)
{
    TAC_TRY(drain(r));
    *loss = r->history->last;
    return TAC_OK;
}

tac_status tac__history_restore(tac_replica *r, const tac_metrics *m)
{
    TAC_TRY(drain(r));
    add(&r->history->sum, m);
    return TAC_OK;
}

tac_status tac_metrics_reduce(tac_comm *comm, tac_metrics *m)
{
    double v[4] = {m->loss_sum, m->correct, m->count, m->nonfinite};
    tac_req *req = NULL;

    TAC_TRY(tac_allreduce(comm, v, v, 4, TAC_F64, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    *m = (tac_metrics){v[0], v[1], v[2], v[3]};
    return TAC_OK;
}
