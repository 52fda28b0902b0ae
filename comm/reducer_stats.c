/* reducer_stats.c: how long communication took, and how much of it showed.
 *
 * One stopwatch, advanced at each event: a bucket starts or completes, the
 * calling thread enters or leaves the reducer, or blocks in finish. The time
 * since the last event belongs to comm_s if a bucket was under way, to
 * exposed_s if the thread was also inside, to wait_s if it was also blocked.
 * Cost: one clock read an event, none in steps without sync. */
#include "tacit/clock.h"
#include "tacit/trace.h"
#include "reducer_impl.h"

static const char *const bucket_names[] = {
    "bucket 0",  "bucket 1",  "bucket 2",  "bucket 3",  "bucket 4",
    "bucket 5",  "bucket 6",  "bucket 7",  "bucket 8",  "bucket 9",
    "bucket 10", "bucket 11", "bucket 12", "bucket 13", "bucket 14",
    "bucket 15", "bucket 16", "bucket 17", "bucket 18", "bucket 19",
    "bucket 20", "bucket 21", "bucket 22", "bucket 23", "bucket 24",
    "bucket 25", "bucket 26", "bucket 27", "bucket 28", "bucket 29",
    "bucket 30", "bucket 31"};

static const char *span_name(size_t bucket)
{
    const size_t n = sizeof bucket_names / sizeof *bucket_names;
    return bucket < n ? bucket_names[bucket] : "bucket";
}

void tac__watch_tick(tac_reducer *r)
{
    tac__stopwatch *w = &r->watch;
    const uint64_t now = tac_clock_ns();
    if (w->in_flight) {
        const uint64_t d = now - w->last_ns;
        w->comm_ns += d;
        if (w->inside) w->exposed_ns += d;
        if (w->blocked) w->wait_ns += d;
    }
    w->last_ns = now;
}

void tac__watch_enter(tac_reducer *r)
{
    if (r->watch.in_flight) tac__watch_tick(r);
    r->watch.inside = 1;
}

void tac__watch_leave(tac_reducer *r)
{
    if (r->watch.in_flight) tac__watch_tick(r);
    r->watch.inside = 0;
}

void tac__watch_post(tac_reducer *r)
{
    tac__watch_tick(r);
    ++r->watch.in_flight;
}

void tac__watch_complete(tac_reducer *r, const tac__flight *f)
{
    tac__watch_tick(r);
    --r->watch.in_flight;
    const int lane = TAC_LANE_BUCKETS + (int)(f->bucket % TAC_BUCKET_LANES);
    tac_trace_span(r->ctx, (tac_lane)lane, span_name(f->bucket), f->begin_ns,
                   r->watch.last_ns, (int64_t)f->bucket);
}

static void add_times(tac_reducer_times *t, const tac_reducer_times *d)
{
    t->steps += d->steps;
    t->calls += d->calls;
    t->control_calls += d->control_calls;
    t->bytes_logical += d->bytes_logical;
    t->bytes_wire += d->bytes_wire;
    t->comm_s += d->comm_s;
    t->exposed_s += d->exposed_s;
    t->wait_s += d->wait_s;
}

/* Closes the books of a step with sync. */
void tac__stats_close(tac_reducer *r)
{
    tac__stopwatch *w = &r->watch;
    r->now.steps = 1;
    r->now.comm_s = (double)w->comm_ns * 1e-9;
    r->now.exposed_s = (double)w->exposed_ns * 1e-9;
    r->now.wait_s = (double)w->wait_ns * 1e-9;
    w->comm_ns = w->exposed_ns = w->wait_ns = 0;
    r->step = r->now;
    add_times(&r->total, &r->now);
}

void tac_reducer_stats_get(const tac_reducer *r, tac_reducer_stats *out)
{
    *out = (tac_reducer_stats){.step = r->step,
                               .total = r->total,
                               .buckets = r->layout.n_buckets,
                               .bucket_bytes = r->bucket_bytes,
                               .initial_buckets = r->initial_buckets,
                               .initial_bucket_bytes = r->initial_bytes,
                               .rebuilt = r->rebuilt,
                               .n_ready = r->n_last_order,
                               .ready_order = r->last_order};
}
