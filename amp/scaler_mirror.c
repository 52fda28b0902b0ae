/* What the host knows: copies that are enqueued after each update.
 *
 * There are two, used in turn, each with an event. Poll takes the latest that
 * has arrived and waits for none; if none has, what it took last time. On the
 * CPU a copy has arrived at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scaler_impl.h"

tac_status tac__scaler_mirrors_make(tac_scaler *s)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);

    for (size_t i = 0; i < TAC__SCALER_SLOTS; ++i)
        TAC_TRY(
            ops->event_create(tac_device_impl(s->dev), &s->mirrors[i].arrived));
    return TAC_OK;
}

/* A copy may still be under way into memory that is about to be freed. */
void tac__scaler_mirrors_drop(tac_scaler *s)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);

    for (size_t i = 0; i < TAC__SCALER_SLOTS; ++i) {
        tac__scaler_mirror *m = &s->mirrors[i];
        if (m->arrived == NULL) continue;
        if (m->used) (void)ops->event_sync(impl, m->arrived);
        ops->event_destroy(impl, m->arrived);
    }
}

tac_status tac__scaler_mirror_now(tac_scaler *s, tac_queue *queue)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);
    void *impl = tac_device_impl(s->dev);
    tac__scaler_mirror *m = &s->mirrors[s->next_mirror % TAC__SCALER_SLOTS];

    m->known.finders = s->finders;
    TAC_TRY(ops->copy(impl, &m->known.view, &s->part->view,
                      sizeof m->known.view, TAC_COPY_DEVICE_TO_HOST, queue));
    TAC_TRY(ops->event_record(impl, m->arrived, queue));
    m->used = 1;
    s->next_mirror += 1;
    return TAC_OK;
}

/* Takes the latest copy that has arrived, if one has. */
static tac_status learn(tac_scaler *s)
{
    const tac_device_ops *ops = tac_device_ops_of(s->dev);

    for (unsigned back = 1; back <= TAC__SCALER_SLOTS; ++back) {
        const tac__scaler_mirror *m =
            &s->mirrors[(s->next_mirror - back) % TAC__SCALER_SLOTS];
        int done = 0;
        if (!m->used) continue;
        TAC_TRY(ops->event_query(tac_device_impl(s->dev), m->arrived, &done));
        if (!done) continue;
        s->known = m->known;
        return TAC_OK;
    }
    return TAC_OK;
}

/* The first optimizer that found a bad element itself, and where. */
static size_t first_finder(const tac__scaler_known *k)
{
    size_t i = 0;

    while (i < TAC__SCALER_OPTIMIZERS && k->view.bad[i] == UINT64_MAX) ++i;
    return i;
}

static void write_where(const tac_scaler *s, const tac__scaler_known *k,
                        char *buf, size_t bytes)
{
    const size_t f = first_finder(k);
    const tac_params *p =
        f < TAC__SCALER_OPTIMIZERS ? k->finders.params[f] : NULL;
    const size_t i = p == NULL ? SIZE_MAX : tac_params_at(p, k->view.bad[f]);

    if (i == SIZE_MAX) {
        snprintf(buf, bytes, "%s",
                 s->agree != NULL ? "the bad values are on another rank"
                                  : "where is not known");
        return;
    }
    const tac_param *q = tac_params_get(p, i);
    snprintf(buf, bytes, "the first in %.200s, element %" PRIu64 " of %zu",
             q->name, k->view.bad[f] - q->offset, q->count);
}

static tac_status give_up(const tac_scaler *s, const tac__scaler_known *k)
{
    const tac_scaler_state *x = &k->view.state;
    char where[300];

    write_where(s, k, where, sizeof where);
    return tac_fail(s->ctx, TAC_ERR_DIVERGED,
                    "loss scaling: %" PRIu32
                    " steps in a row were skipped for inf or NaN in the "
                    "gradients (%s); step %" PRIu64
                    ", loss scale %.10g; lower the learning rate, look at the "
                    "data, or compute in bf16",
                    x->consecutive, where, x->updates, (double)x->scale);
}

tac_status tac_scaler_poll(tac_scaler *s, tac_scaler_report *out)
{
    TAC_TRY(learn(s));
    const tac__scaler_known *k = &s->known;
    const tac_scaler_state *x = &k->view.state;
    const size_t f = first_finder(k);
    *out = (tac_scaler_report){
        (double)x->scale, x->updates, x->skipped, x->consecutive,
        f < TAC__SCALER_OPTIMIZERS ? k->view.bad[f] : UINT64_MAX};
    if (s->config.max_skips > 0 &&
        x->consecutive >= (uint64_t)s->config.max_skips)
        return give_up(s, k);
    return TAC_OK;
}
