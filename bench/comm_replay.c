/* comm_replay.c: a training step without the training: gradients become ready
 * at their times, the reducer averages them, and what remains visible of that
 * is measured.
 *
 * --compute sleep is a device: it computes on its own, gradients become ready
 * at their times whatever the caller does, and the caller sleeps, waking every
 * 100 us to move communication on (with --progress thread it need not).
 * --compute spin is a CPU: time spent in the reducer is time not computed, so
 * all later gradients come later.
 *
 * Pure communication is the same step with all gradients ready at once. Steps
 * of both kinds alternate. The bound uses each bucket's own time, measured one
 * at a time and scaled so that all together take the pure communication. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "comm_replay_run.h"
#include "tacit/clock.h"
#include "tacit/reducer.h"

enum { LEAST_STEPS = 5, MOST_STEPS = 200 };
#define NAP_NS  100000u
#define REST_NS 50000000u

/* ---- compute ---------------------------------------------------------------
 */

/* Ctrl-C cuts compute short; that step does not count. */
static int stopped(const tac__replay_run *r)
{
    return r->b->stop && *r->b->stop;
}

/* A device is at work until `until`. */
static tac_status doze(tac__replay_run *r, uint64_t until)
{
    for (;;) {
        const uint64_t now = tac_clock_ns();
        if (now >= until || stopped(r)) return TAC_OK;
        const uint64_t nap = until - now, most = r->naps ? NAP_NS : REST_NS;
        if (r->naps) TAC_TRY(tac_reducer_progress(r->reducer));
        tac_clock_sleep_ns(nap < most ? nap : most);
    }
}

/* This CPU is at work for so long. */
static void burn(const tac__replay_run *r, uint64_t ns)
{
    const uint64_t end = tac_clock_ns() + ns;
    while (tac_clock_ns() < end && !stopped(r)) {
    }
}

static uint64_t ns_of(double us)
{
    return (uint64_t)(us * 1e3);
}

/* Computes from `from` to `to` (us of this phase, which began at `begin`). */
static tac_status compute(tac__replay_run *r, uint64_t begin, double from,
                          double to)
{
    if (!r->spin) return doze(r, begin + ns_of(to));
    burn(r, ns_of(to - from));
    return TAC_OK;
}

/* ---- steps -----------------------------------------------------------------
 */

static tac_status backward(tac__replay_run *r)
{
    const uint64_t begin = tac_clock_ns();
    double at = 0;
    for (size_t i = 0; i < r->step.n; i++) {
        const double ready = r->step.tensor[i].ready_us;
        if (ready > at) TAC_TRY(compute(r, begin, at, ready));
        at = ready;
        TAC_TRY(tac_reducer_ready(r->reducer, i, NULL));
    }
    return compute(r, begin, at, r->step.backward_us);
}

static tac_status idle(tac__replay_run *r, double us)
{
    return compute(r, tac_clock_ns(), 0, us);
}

static tac_status train(tac__replay_run *r, double *seconds)
{
    r->b->group.barrier(r->b->group.state);
    const double begin = tac_clock_s();
    TAC_TRY(idle(r, r->step.forward_us));
    TAC_TRY(tac_reducer_begin(r->reducer, 1, 1));
    TAC_TRY(backward(r));
    TAC_TRY(tac_reducer_finish(r->reducer, 0));
    TAC_TRY(idle(r, r->step.update_us));
    *seconds = tac_clock_s() - begin;
    return TAC_OK;
}

static tac_status communicate(tac__replay_run *r, double *seconds)
{
    r->b->group.barrier(r->b->group.state);
    const double begin = tac_clock_s();
    TAC_TRY(tac_reducer_begin(r->reducer, 1, 1));
    for (size_t i = 0; i < r->step.n; i++)
        TAC_TRY(tac_reducer_ready(r->reducer, i, NULL));
    TAC_TRY(tac_reducer_finish(r->reducer, 0));
    *seconds = tac_clock_s() - begin;
    return TAC_OK;
}

/* The slowest rank's time of a few steps of pure communication. */
static tac_status pure_seconds(tac__replay_run *r, int steps, double *median)
{
    double t[8];
    for (int i = 0; i < steps; i++) TAC_TRY(communicate(r, &t[i]));
    r->b->group.max(r->b->group.state, t, (size_t)steps);
    *median = tac__median(t, (size_t)steps);
    return TAC_OK;
}

/* ---- the compute to replay -------------------------------------------------
 */

static double compute_us(const tac__replay_step *s)
{
    return s->forward_us + s->backward_us + s->update_us;
}

static void scale(tac__replay_step *s, double to_us)
{
    const double now = compute_us(s), by = now > 0 ? to_us / now : 0;
    s->forward_us *= by;
    s->backward_us *= by;
    s->update_us *= by;
    if (now <= 0) s->backward_us = to_us;
    for (size_t i = 0; i < s->n; i++) s->tensor[i].ready_us *= by;
}

static void set_compute(tac__replay_run *r, double comm_s)
{
    const char *asked = r->b->opt->compute_ms;
    if (!asked && r->step.timed) return;
    scale(&r->step,
          asked && strcmp(asked, "comm") ? atof(asked) * 1e3 : comm_s * 1e6);
}

static void plan_steps(tac__replay_run *r, double comm_s)
{
    const double each = 2 * comm_s + compute_us(&r->step) * 1e-6;
    const double fit = 5 * r->b->opt->seconds / (each > 1e-6 ? each : 1e-6);
    r->n = fit < LEAST_STEPS  ? LEAST_STEPS
           : fit > MOST_STEPS ? MOST_STEPS
                              : (size_t)fit;
    if (r->b->opt->iters > 0) r->n = (size_t)r->b->opt->iters;
}

/* ---- measuring -------------------------------------------------------------
 */

static tac_status run_steps(tac__replay_run *r)
{
    r->total = calloc(2 * r->n, sizeof *r->total);
    tac_status s = r->total ? TAC_OK
                            : tac_fail(r->b->ctx, TAC_ERR_NOMEM,
                                       "no memory for %zu steps", r->n);
    TAC_TRY(tac__bench_agree(r->b, s));
    r->pure = r->total + r->n;
    while (r->done < r->n && !tac__bench_stopped(r->b)) {
        TAC_TRY(train(r, &r->total[r->done]));
        if (tac__bench_stopped(r->b)) break;
        TAC_TRY(communicate(r, &r->pure[r->done]));
        r->done++;
    }
    r->b->group.max(r->b->group.state, r->total, 2 * r->n);
    return TAC_OK;
}

static void count_bytes(tac__replay_run *r, const tac_comm_stats *before,
                        tac__replay_result *out)
{
    tac_comm_stats after;
    tac_reducer_stats stats;
    tac_comm_stats_get(r->b->comm, &after);
    double between = (double)(after.total.bytes_between_hosts -
                              before->total.bytes_between_hosts);
    r->b->group.sum(r->b->group.state, &between, 1);
    tac_reducer_stats_get(r->reducer, &stats);
    out->bytes_between_hosts = r->done ? between / (2 * (double)r->done) : 0;
    out->bytes_logical = (double)stats.step.bytes_logical;
    out->bytes_wire = (double)(after.op[TAC_COLL_ALLREDUCE].bytes_wire -
                               before->op[TAC_COLL_ALLREDUCE].bytes_wire) /
                      (r->done ? 2 * (double)r->done : 1);
}

static tac_status measure(tac__replay_run *r, tac__replay_result *out)
{
    double comm_s = 0;
    tac_comm_stats before;
    TAC_TRY(pure_seconds(r, 1, &comm_s)); /* plans and allocates */
    r->repeats = comm_s > 0.5 ? 1 : 3;
    TAC_TRY(pure_seconds(r, r->repeats, &comm_s));
    set_compute(r, comm_s);
    plan_steps(r, comm_s);
    tac_comm_stats_get(r->b->comm, &before);
    TAC_TRY(run_steps(r));
    if (r->done == 0) return TAC_ERR_INTERRUPTED;
    count_bytes(r, &before, out);
    out->steps = r->done;
    out->buckets = tac_reducer_buckets(r->reducer);
    out->compute_us = compute_us(&r->step);
    out->total_us = tac__median(r->total, r->done) * 1e6;
    out->comm_us = tac__median(r->pure, r->done) * 1e6;
    out->exposed_us = out->total_us - out->compute_us;
    return tac__replay_find_bound(r, out);
}

static tac_status report(tac__replay_run *r, const tac__replay_result *out)
{
    if (r->b->speaks) tac__replay_print(r->b, &r->step, out);
    if (r->b->group.rank != 0 || !r->b->opt->json) return TAC_OK;
    return tac__replay_write(r->b, &r->step, out);
}

tac_status tac__replay(tac__comm_bench *b)
{
    tac__replay_run r = {.b = b};
    tac__replay_result out = {0};
    r.spin = strcmp(b->opt->compute, "spin") == 0;
    r.naps = strcmp(b->opt->progress, "thread") != 0;
    tac_status s = tac__replay_set_up(&r);
    if (s >= 0) s = measure(&r, &out);
    if (s >= 0) s = tac__bench_agree(b, report(&r, &out));
    tac__replay_tear_down(&r);
    if (s >= 0 && b->stop && *b->stop) return TAC_ERR_INTERRUPTED;
    return s;
}
