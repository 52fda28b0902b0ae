/* reducer_flight.c: what is under way in a step.
 *
 * Operations are submitted in one order on all ranks and complete in that
 * order, so a queue is enough and only its head is ever tested. */
#include <stdio.h>
#include <string.h>

#include "tacit/clock.h"
#include "reducer_impl.h"

void tac__bucket_show(const tac_reducer *r, size_t b, tac_bucket_view *out)
{
    const tac__bucket *k = &r->layout.buckets[b];
    *out = (tac_bucket_view){.index = b,
                             .buffer = k->buffer,
                             .count = k->count,
                             .dtype = k->dtype,
                             .is_last = b == r->layout.last,
                             .n_params = k->n_params,
                             .params = r->layout.members + k->first,
                             .offsets = r->layout.offsets + k->first,
                             .bytes = k->bytes,
                             .grad_scale = r->grad_scale,
                             .stream = k->stream};
}

tac_status tac__reducer_break(tac_reducer *r, tac_status s, const char *what)
{
    if (r->status) return r->status;
    r->status = s;
    if (r->world > 1) tac_comm_abort(r->comm, what);
    while (r->head < r->tail) {
        tac_req *req = r->flights[r->head++].req;
        if (req) (void)tac_wait(req, 1); /* fails at once: aborted */
    }
    r->watch.in_flight = 0;
    r->in_step = 0;
    return s;
}

void tac__flight_push(tac_reducer *r, tac__kind kind, size_t bucket,
                      tac_req *req)
{
    tac__flight *f = &r->flights[r->tail++];
    if (kind == TAC__KIND_BUCKET)
        tac__watch_post(r);
    else
        ++r->now.control_calls;
    *f = (tac__flight){kind, bucket, req, r->watch.last_ns};
}

/* ---- start ----------------------------------------------------------------
 */

static tac_status start_hook(tac_reducer *r, size_t b)
{
    tac_bucket_view view;
    tac_req *req = NULL;
    tac__bucket_show(r, b, &view);
    const tac_status s = r->hook(r->hook_state, r->comm, &view, &req);
    if (r->world > 1)
        r->now.bytes_wire += view.count * tac_dtype_size(view.dtype);
    if (s < 0) return tac__reducer_break(r, s, "a communication hook failed");
    tac__flight_push(r, TAC__KIND_BUCKET, b, req);
    return TAC_OK;
}

static tac_status start_average(tac_reducer *r, size_t b)
{
    const tac__bucket *k = &r->layout.buckets[b];
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req;
    opt.stream = k->stream;
    opt.tag = b;
    r->now.bytes_wire += tac__bucket_encoding(r, b, &opt);
    const tac_status s = tac_allreduce(r->comm, NULL, k->buffer, k->count,
                                       k->dtype, TAC_AVG, &opt, &req);
    if (s < 0) return tac__reducer_break(r, s, "a bucket could not start");
    tac__flight_push(r, TAC__KIND_BUCKET, b, req);
    return TAC_OK;
}

/* Alignment padding travels with the rest, and nobody else writes it. A codec
 * that met an inf makes a whole block NaN, so that padding would carry it into
 * all later steps. */
static void clear_padding(const tac_reducer *r, const tac__bucket *k)
{
    const size_t size = tac_dtype_size(k->dtype);
    size_t at = 0;
    for (size_t j = k->first; j < k->first + k->n_params; ++j) {
        const size_t begin = r->layout.offsets[j];
        if (begin > at) memset(k->buffer + at * size, 0, (begin - at) * size);
        at = begin + r->params[r->layout.members[j]].count;
    }
    if (k->count > at) memset(k->buffer + at * size, 0, (k->count - at) * size);
}

tac_status tac__bucket_start(tac_reducer *r, size_t b)
{
    const tac__bucket *k = &r->layout.buckets[b];
    if (!k->count) return TAC_OK;
    if (r->world > 1 || r->hook) clear_padding(r, k);
    if (r->config.check_nan) tac__bucket_check_nan(r, b);
    if (r->world == 1 && !r->hook) return TAC_OK;
    TAC_TRY(r->hook ? start_hook(r, b) : start_average(r, b));
    ++r->now.calls;
    if (r->world > 1) r->now.bytes_logical += k->bytes;
    return TAC_OK;
}

/* ---- completion -----------------------------------------------------------
 */

static tac_status complete_bucket(tac_reducer *r, const tac__flight *f)
{
    tac_status s = TAC_OK;
    if (r->done) {
        tac_bucket_view view;
        tac__bucket_show(r, f->bucket, &view);
        s = r->done(r->hook_state, &view);
    }
    tac__watch_complete(r, f);
    return s < 0 ? tac__reducer_break(r, s, "a communication hook failed") : s;
}

/* The head of the queue is complete: releases it and uses it. */
static tac_status complete(tac_reducer *r)
{
    const tac__flight f = r->flights[r->head++];
    const tac_status s = tac_wait(f.req, 0);
    if (s < 0) return tac__reducer_break(r, s, "a bucket failed");
    if (f.kind == TAC__KIND_BUCKET) return complete_bucket(r, &f);
    if (f.kind == TAC__KIND_JOIN) tac__join_read(r);
    return TAC_OK;
}

tac_status tac__flight_poll(tac_reducer *r)
{
    while (r->head < r->tail) {
        tac_req *req = r->flights[r->head].req;
        int done = req == NULL;
        const tac_status s = req ? tac_test(req, &done) : TAC_OK;
        if (s < 0) return tac__reducer_break(r, s, "a bucket failed");
        if (!done) return TAC_OK;
        TAC_TRY(complete(r));
    }
    return TAC_OK;
}

/* Says which gradients a failed wait was for; the communicator's own message
 * says what failed. */
static void log_failed(tac_reducer *r, const tac__flight *f)
{
    if (f->kind != TAC__KIND_BUCKET) return;
    const tac__bucket *k = &r->layout.buckets[f->bucket];
    const size_t *m = r->layout.members + k->first;
    tac_log(r->ctx, TAC_LOG_WARN,
            "reducer: bucket %zu of %zu ('%s' to '%s', %zu parameters, %zu "
            "bytes) was not averaged",
            f->bucket, r->layout.n_buckets, r->params[m[0]].name,
            r->params[m[k->n_params - 1]].name, k->n_params, k->bytes);
}

static tac_status wait_head(tac_reducer *r, int timeout_ms)
{
    const tac__flight f = r->flights[r->head];
    r->flights[r->head].req = NULL; /* released by tac_wait, come what may */
    const tac_status s = tac_wait(f.req, timeout_ms);
    if (s < 0) {
        log_failed(r, &f);
        return tac__reducer_break(r, s, "a bucket failed");
    }
    return complete(r);
}

/* Milliseconds until `end_ns`, at least 1; 0 if there is no end. */
static int remaining_ms(uint64_t end_ns)
{
    if (!end_ns) return 0;
    const uint64_t now = tac_clock_ns();
    return now >= end_ns ? 1 : (int)((end_ns - now) / 1000000) + 1;
}

tac_status tac__flight_wait_all(tac_reducer *r, int timeout_ms)
{
    const uint64_t end =
        timeout_ms > 0 ? tac_clock_ns() + (uint64_t)timeout_ms * 1000000 : 0;
    tac_status s = TAC_OK;
    tac__watch_tick(r);
    r->watch.blocked = 1;
    while (r->head < r->tail && !s) s = wait_head(r, remaining_ms(end));
    tac__watch_tick(r);
    r->watch.blocked = 0;
    return s;
}
