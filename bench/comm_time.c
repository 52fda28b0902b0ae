/* comm_time.c: times of our side, the baseline and the floor, interleaved.
 *
 * In each iteration every side runs once, in an order that alternates, each
 * after a barrier that belongs to none of them. An iteration's time is the
 * slowest rank's; of iterations the median counts, so a disturbance that hits
 * one iteration hits no side's result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "comm_bench.h"
#include "tacit/clock.h"

enum { OURS, THEIRS, FLOOR_BEGIN, FLOOR_END, COLUMNS };
enum { LEAST_ITERS = 5, MOST_ITERS = 5000, LOOKS = 4 };

typedef struct timing {
    tac__comm_bench *b;
    const tac__case *k;
    size_t n;
    int with_baseline, with_floor;
    double *column[COLUMNS]; /* [n] nanoseconds, of all ranks in the end */
    uint64_t sink;           /* so that reading is not optimized away */
} timing;

static double now_ns(void)
{
    return (double)tac_clock_ns();
}

/* ---- the floor -------------------------------------------------------------
 */

static void read_all(timing *t, const char *p, size_t bytes)
{
    const uint64_t *x = (const uint64_t *)(const void *)p;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / 8; i++) sum += x[i];
    t->sink += sum;
}

/* Adds what nobody knows to be 0. */
static void read_and_write(timing *t, char *p, size_t bytes)
{
    uint64_t *x = (uint64_t *)(void *)p;
    const uint64_t zero = t->sink & 0;
    const volatile uint64_t unknown = zero;
    const uint64_t add = unknown;
    for (size_t i = 0; i < bytes / 8; i++) x[i] += add;
}

/* This rank reads its input and writes its output, and that is all. */
static void floor_pass(timing *t, const tac__set *s)
{
    const tac__case *k = t->k;
    const int rank = t->b->group.rank, size = t->b->group.size;
    const size_t block = k->part * tac_dtype_size(k->dtype);
    switch (k->coll) {
    case TAC_COLL_ALLREDUCE:
        if (k->in_place)
            read_and_write(t, s->dst, s->dst_bytes);
        else
            memcpy(s->dst, s->src, s->dst_bytes);
        return;
    case TAC_COLL_REDUCE_SCATTER:
        read_all(t, s->src, s->src_bytes);
        memset(s->dst, 0, s->dst_bytes);
        return;
    case TAC_COLL_ALLGATHER:
        for (int r = 0; r < size; r++)
            if (!k->in_place || r != rank)
                memcpy(s->dst + (size_t)r * block, s->src, block);
        return;
    default:
        if (rank == 0)
            read_all(t, s->src, s->src_bytes);
        else
            memset(s->dst, 0, s->dst_bytes);
    }
}

/* ---- one iteration ---------------------------------------------------------
 */

static tac_status run_ours(timing *t, size_t i)
{
    tac__comm_bench *b = t->b;
    const tac__set s =
        tac__arena_next(&b->ours, t->k, b->group.rank, b->group.size);
    b->group.barrier(b->group.state);
    const double begin = now_ns();
    TAC_TRY(tac__ours_run(b, t->k, &s));
    t->column[OURS][i] = now_ns() - begin;
    return TAC_OK;
}

static tac_status run_theirs(timing *t, size_t i)
{
    tac__comm_bench *b = t->b;
    const tac__set s =
        tac__arena_next(&b->theirs, t->k, b->group.rank, b->group.size);
    b->group.barrier(b->group.state);
    const double begin = now_ns();
    if (b->group.baseline(b->group.state, t->k, s.src, s.dst) != 0)
        return tac_fail(b->ctx, TAC_ERR_INTERNAL, "the baseline failed");
    t->column[THEIRS][i] = now_ns() - begin;
    return TAC_OK;
}

/* From the first rank's start to the last one's end: unlike an operation, a
 * rank that copies waits for nobody. */
static void run_floor(timing *t, size_t i)
{
    tac__comm_bench *b = t->b;
    const tac__set s =
        tac__arena_next(&b->ours, t->k, b->group.rank, b->group.size);
    b->group.barrier(b->group.state);
    t->column[FLOOR_BEGIN][i] = -now_ns();
    floor_pass(t, &s);
    t->column[FLOOR_END][i] = now_ns();
}

static tac_status iteration(timing *t, size_t i)
{
    const int first = (int)(i % 2);
    for (int turn = 0; turn < 2; turn++)
        if (turn == first)
            TAC_TRY(run_ours(t, i));
        else if (t->with_baseline)
            TAC_TRY(run_theirs(t, i));
    if (t->with_floor) run_floor(t, i);
    return TAC_OK;
}

/* ---- all of them -----------------------------------------------------------
 */

static tac_status open_columns(timing *t, size_t n)
{
    double *all = calloc(COLUMNS * n, sizeof *all);
    tac_status s = all ? TAC_OK
                       : tac_fail(t->b->ctx, TAC_ERR_NOMEM,
                                  "no memory for %zu iterations", n);
    TAC_TRY(tac__bench_agree(t->b, s));
    for (int c = 0; c < COLUMNS; c++) t->column[c] = all + (size_t)c * n;
    t->n = n;
    return TAC_OK;
}

static void close_columns(timing *t)
{
    free(t->column[0]);
    t->column[0] = NULL;
}

/* Warm-up, and from it how many iterations fit into the time. */
static tac_status plan_iterations(timing *t, size_t *n)
{
    const tac__comm_options *o = t->b->opt;
    TAC_TRY(open_columns(t, (size_t)o->warmup));
    const double begin = tac_clock_s();
    tac_status s = TAC_OK;
    for (size_t i = 0; i < t->n && s >= 0; i++) s = iteration(t, i);
    double each = (tac_clock_s() - begin) / (double)t->n;
    close_columns(t);
    TAC_TRY(s);
    t->b->group.max(t->b->group.state, &each, 1);
    const double fit = o->seconds / (each > 1e-9 ? each : 1e-9);
    *n = fit < LEAST_ITERS  ? LEAST_ITERS
         : fit > MOST_ITERS ? MOST_ITERS
                            : (size_t)fit;
    if (o->iters > 0) *n = (size_t)o->iters;
    return TAC_OK;
}

/* *done: how many, fewer than n after Ctrl-C. */
static tac_status run_all(timing *t, size_t *done)
{
    const size_t block = (t->n + LOOKS - 1) / LOOKS;
    for (size_t i = 0; i < t->n;) {
        const size_t end = i + block < t->n ? i + block : t->n;
        for (; i < end; i++) TAC_TRY(iteration(t, i));
        *done = i;
        if (tac__bench_stopped(t->b)) break;
    }
    return TAC_OK;
}

/* ---- the result ------------------------------------------------------------
 */

/* Median and 99th percentile in microseconds; sorts. */
static double summarise(double *ns, size_t n, double *p99)
{
    const double median = tac__median(ns, n);
    const size_t at = (size_t)ceil(0.99 * (double)n) - 1;
    if (p99) *p99 = ns[at] * 1e-3;
    return median * 1e-3;
}

static double bus_factor(const tac__case *k, int n)
{
    if (n < 2) return 0;
    switch (k->coll) {
    case TAC_COLL_ALLREDUCE: return 2.0 * (n - 1) / n;
    case TAC_COLL_REDUCE_SCATTER:
    case TAC_COLL_ALLGATHER: return (double)(n - 1) / n;
    default: return 1;
    }
}

/* Between hosts: what has to cross a host's link, over its goodput. */
static double link_floor_us(const timing *t, const tac__row *row)
{
    const int h = tac_comm_hosts(t->b->comm);
    const double encoded = row->bytes_wire > 0 && t->k->bytes
                               ? row->bytes_wire
                               : (double)t->k->bytes;
    if (t->b->opt->link_gbs <= 0) return NAN;
    return bus_factor(t->k, h) * encoded / (t->b->opt->link_gbs * 1e3);
}

static void result(timing *t, size_t n, tac__row *row)
{
    const tac__case *k = t->k;
    const int size = t->b->group.size;
    row->iters = n;
    row->time_us = summarise(t->column[OURS], n, &row->p99_us);
    row->algbw = (double)k->bytes / (row->time_us * 1e3);
    row->busbw = row->algbw * bus_factor(k, size);
    row->baseline_us = row->baseline_p99_us = row->ratio = NAN;
    row->floor_us = NAN;
    if (t->with_baseline) {
        row->baseline_us =
            summarise(t->column[THEIRS], n, &row->baseline_p99_us);
        row->ratio = row->baseline_us / row->time_us;
    }
    for (size_t i = 0; t->with_floor && i < n; i++)
        t->column[FLOOR_END][i] += t->column[FLOOR_BEGIN][i];
    if (t->with_floor) row->floor_us = summarise(t->column[FLOOR_END], n, NULL);
    if (tac_comm_hosts(t->b->comm) > 1) row->floor_us = link_floor_us(t, row);
    row->floor_ratio = row->time_us / row->floor_us;
}

static void count_bytes(timing *t, const tac_comm_stats *before, tac__row *row)
{
    tac_comm_stats after;
    tac_comm_stats_get(t->b->comm, &after);
    const double calls =
        (double)(after.op[t->k->coll].calls - before->op[t->k->coll].calls);
    double between = (double)(after.total.bytes_between_hosts -
                              before->total.bytes_between_hosts);
    t->b->group.sum(t->b->group.state, &between, 1);
    row->bytes_between_hosts = calls > 0 ? between / calls : 0;
    row->bytes_wire = calls > 0 ? (double)(after.op[t->k->coll].bytes_wire -
                                           before->op[t->k->coll].bytes_wire) /
                                      calls
                                : 0;
}

tac_status tac__measure(tac__comm_bench *b, const tac__case *k, tac__row *row)
{
    timing t = {.b = b, .k = k};
    tac_comm_stats before;
    size_t n = 0, done = 0;
    t.with_baseline = b->group.baseline && b->group.can(k);
    t.with_floor = b->group.same_clock && tac_comm_hosts(b->comm) == 1;
    TAC_TRY(plan_iterations(&t, &n));
    TAC_TRY(open_columns(&t, n));
    tac_comm_stats_get(b->comm, &before);
    const tac_status s = run_all(&t, &done);
    if (s >= 0) {
        count_bytes(&t, &before, row);
        b->group.max(b->group.state, t.column[0], COLUMNS * n);
        result(&t, done, row);
    }
    close_columns(&t);
    return s;
}
