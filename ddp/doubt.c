/* Steps that are skipped one after the other.
 *
 * The scaler knows the first bad element of the averaged gradients, which are
 * bad on all ranks alike. Whose samples made them so can be seen only before
 * averaging; so shortly before the replica gives up, each rank looks through
 * its own gradients as they become final. That costs a copy to the host, in
 * steps that are lost anyway. */
#include "doubt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "settings.h"

/* Steps before giving up in which ranks look; more than one, since on an
 * asynchronous device the host learns late. */
enum { LOOK = 3, PIECE = 1024 };

struct tac__doubt {
    tac__inject inject; /* of this rank; first 0: none */
    int injecting, looking;
    uint64_t origin_step; /* in which this rank's own gradients were last found
                             bad, from 1; 0: never */
    size_t origin_param, origin_element;
    uint64_t gave_up;         /* attempts when the verdict fell; 0: not yet */
    tac_scaler_report report; /* of that moment */
};

tac_status tac__doubt_create(tac_replica *r)
{
    struct tac__doubt *d = calloc(1, sizeof *d);

    if (!d) return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for a replica");
    r->doubt = d;
    TAC_TRY(tac__settings_inject(r->ctx, r->config->inject_inf,
                                 tac_comm_size(r->comm), &d->inject));
    if (d->inject.rank != tac_comm_rank(r->comm)) d->inject.first = 0;
    return TAC_OK;
}

void tac__doubt_destroy(tac_replica *r)
{
    free(r->doubt);
    r->doubt = NULL;
}

void tac__doubt_arm(tac_replica *r, int last)
{
    struct tac__doubt *d = r->doubt;
    const uint64_t attempt = r->attempts + 1;
    const uint64_t most = (uint64_t)r->config->max_skips;

    d->injecting = last && d->inject.first != 0 && attempt >= d->inject.first &&
                   attempt <= d->inject.last;
    d->looking = last && most > 0 && r->scaling.consecutive > 0 &&
                 r->scaling.consecutive + LOOK >= most;
}

/* ---- this rank's own gradients --------------------------------------------
 */

static tac_status inject(tac_replica *r, size_t param, tac_queue *queue)
{
    static const float inf = INFINITY;

    if (tac_params_get(r->params, param)->offset != 0) return TAC_OK;
    r->doubt->injecting = 0;
    return tac_device_ops_of(r->device)->copy(
        tac_device_impl(r->device), tac_params_grad(r->params, param), &inf,
        sizeof inf, TAC_COPY_HOST_TO_DEVICE, queue);
}

/* The first bad one of n elements; n: none. */
static size_t first_bad(const float *g, size_t n)
{
    size_t i = 0;

    while (i < n && isfinite(g[i])) i++;
    return i;
}

static tac_status look(tac_replica *r, size_t param, tac_queue *queue)
{
    const tac_device_ops *ops = tac_device_ops_of(r->device);
    void *impl = tac_device_impl(r->device);
    const float *g = tac_params_grad(r->params, param);
    const size_t count = tac_params_get(r->params, param)->count;
    struct tac__doubt *d = r->doubt;
    float piece[PIECE];

    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;

        TAC_TRY(ops->copy(impl, piece, g + at, n * sizeof *g,
                          TAC_COPY_DEVICE_TO_HOST, queue));
        TAC_TRY(ops->queue_sync(impl, queue));
        const size_t bad = first_bad(piece, n);
        if (bad == n) continue;
        d->looking = 0; /* one is enough */
        d->origin_step = r->attempts + 1;
        d->origin_param = param;
        d->origin_element = at + bad;
        return TAC_OK;
    }
    return TAC_OK;
}

tac_status tac__doubt_ready(tac_replica *r, size_t param, tac_queue *queue)
{
    if (r->doubt->injecting) TAC_TRY(inject(r, param, queue));
    return r->doubt->looking ? look(r, param, queue) : TAC_OK;
}

tac_status tac__doubt_all(tac_replica *r)
{
    const size_t *order = tac_params_order(r->params);

    for (size_t k = 0; k < tac_params_count(r->params); k++)
        TAC_TRY(tac__doubt_ready(r, order[k], tac_tape_queue(r->tape)));
    return TAC_OK;
}

/* ---- the verdict ----------------------------------------------------------
 */

void tac__doubt_judge(tac_replica *r)
{
    struct tac__doubt *d = r->doubt;
    const uint64_t most = (uint64_t)r->config->max_skips;

    if (d->gave_up || most == 0 || r->scaling.consecutive < most) return;
    d->gave_up = r->attempts;
    d->report = r->scaling;
}

int tac__doubt_gave_up(const tac_replica *r)
{
    return r->doubt->gave_up != 0;
}

int tac_replica_is_origin(const tac_replica *r)
{
    const struct tac__doubt *d = r->doubt;

    return d->gave_up && d->origin_step > 0 &&
           d->origin_step + LOOK > d->gave_up;
}

/* The tensor and element to name; NULL: the report has none. */
static const char *bad_tensor(const tac_replica *r, size_t *element)
{
    const struct tac__doubt *d = r->doubt;
    const size_t at = (size_t)d->report.first_bad;
    size_t param = d->origin_param;

    *element = d->origin_element;
    if (!tac_replica_is_origin(r)) {
        param = tac_params_at(r->params, at);
        if (param == SIZE_MAX) return NULL;
        *element = at - tac_params_get(r->params, param)->offset;
    }
    return tac_params_get(r->params, param)->name;
}

/* A scale that was given as a number stays: no floor helps. */
static const char *remedy(const tac_replica *r)
{
    tac_scaler_config sc;

    if (tac__settings_scaler(r->ctx, r->config, &sc) >= 0 && sc.enabled &&
        sc.min_scale == sc.max_scale)
        return "--loss-scale";
    return "--lr or --min-scale";
}

tac_status tac__doubt_verdict(tac_replica *r)
{
    const struct tac__doubt *d = r->doubt;
    size_t element = 0;
    const char *name;

    if (!d->gave_up) return TAC_OK;
    name = bad_tensor(r, &element);
    return tac_fail(
        r->ctx, TAC_ERR_DIVERGED,
        "rank %d, step %" PRIu64 ": %" PRIu64
        " steps in a row were skipped: the %sgradient of %s "
        "(element %zu) is inf or NaN, also at a loss scale of %.10g. "
        "Lower %s, or use --precision bf16; "
        "--max-skips says when to give up",
        tac_comm_rank(r->comm), d->gave_up, d->report.consecutive,
        tac_replica_is_origin(r) ? "" : "averaged ",
        name ? name : "a parameter", element, d->report.scale, remedy(r));
}
