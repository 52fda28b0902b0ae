/* trace_json.c: spans as Chrome trace events, for chrome://tracing, Perfetto.
 *
 * Times are microseconds of CLOCK_MONOTONIC, which all processes of a host
 * share, plus what the caller says: hosts' clocks differ.
 * Reference: "Trace Event Format", complete events ("X") and metadata ("M"). */
#include "context_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/json.h"

static const char *const lane_names[TAC_LANE_COUNT] = {
    [TAC_LANE_COMPUTE] = "compute",
    [TAC_LANE_COMM] = "communication",
    [TAC_LANE_LOADER] = "loader",
    [TAC_LANE_STEP] = "step",
};

/* Until put_value ends it. */
static void begin_metadata(tac_json *j, int pid, int tid, const char *what)
{
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "name", what);
    tac_json_str(j, "ph", "M");
    tac_json_i64(j, "pid", pid);
    tac_json_i64(j, "tid", tid);
    tac_json_begin_object(j, "args");
}

static void end_metadata(tac_json *j)
{
    tac_json_end_object(j);
    tac_json_end_object(j);
}

/* Viewers would else sort by what they find first. */
static void put_order(tac_json *j, int pid, int tid, const char *what,
                      int place)
{
    begin_metadata(j, pid, tid, what);
    tac_json_i64(j, "sort_index", place);
    end_metadata(j);
}

static void put_lane(tac_json *j, int pid, int lane, const char *name)
{
    begin_metadata(j, pid, lane, "thread_name");
    tac_json_str(j, "name", name);
    end_metadata(j);
    put_order(j, pid, lane, "thread_sort_index", lane);
}

static void put_names(tac_json *j, const tac_context *ctx)
{
    char rank[TAC__HOST_BYTES + 32];
    snprintf(rank, sizeof rank, "rank %d (%s)", ctx->rank, ctx->host);
    begin_metadata(j, ctx->rank, 0, "process_name");
    tac_json_str(j, "name", rank);
    end_metadata(j);
    put_order(j, ctx->rank, 0, "process_sort_index", ctx->rank);
    for (int lane = 0; lane < TAC_LANE_COUNT; ++lane)
        put_lane(j, ctx->rank, lane, lane_names[lane]);
}

/* Only of those lanes of buckets that are used. */
static void put_bucket_names(tac_json *j, int pid, const tac_span *spans,
                             size_t n)
{
    char name[32];
    unsigned used = 0;
    for (size_t i = 0; i < n; ++i)
        if (spans[i].lane >= TAC_LANE_BUCKETS)
            used |= 1u << ((int)spans[i].lane - TAC_LANE_BUCKETS);
    for (int b = 0; b < TAC_BUCKET_LANES; ++b) {
        if (!(used & 1u << b)) continue;
        snprintf(name, sizeof name, "averaging, bucket %d", b);
        put_lane(j, pid, TAC_LANE_BUCKETS + b, name);
    }
}

static void put_span(tac_json *j, int pid, int64_t shift_ns, const tac_span *s)
{
    const uint64_t ns = s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 0;
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "name", s->name);
    tac_json_str(j, "ph", "X");
    tac_json_i64(j, "pid", pid);
    tac_json_i64(j, "tid", s->lane);
    tac_json_f64(j, "ts", (double)((int64_t)s->begin_ns + shift_ns) / 1e3);
    tac_json_f64(j, "dur", (double)ns / 1e3);
    if (s->arg != -1) {
        tac_json_begin_object(j, "args");
        tac_json_i64(j, "arg", s->arg);
        tac_json_end_object(j);
    }
    tac_json_end_object(j);
}

/* Of those that begin together the longer one first: it is around the other. */
static int by_begin(const void *a, const void *b)
{
    const tac_span *x = a, *y = b;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static tac_status put_events(tac_json *j, const tac_context *ctx,
                             int64_t shift_ns)
{
    size_t n = tac_trace_read(ctx, NULL, 0);
    tac_span *spans = NULL;
    put_names(j, ctx);
    if (n > 0) {
        spans = malloc(n * sizeof *spans);
        if (!spans) return TAC_ERR_NOMEM;
        n = tac_trace_read(ctx, spans, n);
        qsort(spans, n, sizeof *spans, by_begin);
    }
    put_bucket_names(j, ctx->rank, spans, n);
    for (size_t i = 0; i < n; ++i) put_span(j, ctx->rank, shift_ns, &spans[i]);
    free(spans);
    return tac_json_text(j, NULL) ? TAC_OK : TAC_ERR_NOMEM;
}

static tac_status out_of_memory(tac_context *ctx)
{
    return tac_fail(ctx, TAC_ERR_NOMEM,
                    "out of memory for the text of %zu trace events; trace "
                    "fewer of them",
                    tac_trace_read(ctx, NULL, 0));
}

tac_status tac_trace_events_json(tac_context *ctx, int64_t shift_ns, char **out)
{
    tac_json *j = tac_json_create();
    char *text = NULL;
    if (j && put_events(j, ctx, shift_ns) == TAC_OK)
        text = strdup(tac_json_text(j, NULL));
    tac_json_destroy(j);
    if (!text) return out_of_memory(ctx);
    *out = text;
    return TAC_OK;
}

static tac_status write_trace(tac_json *j, tac_context *ctx, const char *path)
{
    tac_json_begin_object(j, NULL);
    tac_json_begin_array(j, "traceEvents");
    TAC_TRY(put_events(j, ctx, 0));
    tac_json_end_array(j);
    tac_json_str(j, "displayTimeUnit", "ns");
    tac_json_begin_object(j, "otherData");
    tac_json_u64(j, "overwritten_spans", tac_trace_lost(ctx));
    tac_json_end_object(j);
    tac_json_end_object(j);
    return tac_json_write_file(j, path);
}

tac_status tac_trace_write(tac_context *ctx, const char *path)
{
    tac_json *j = tac_json_create();
    const tac_status s = j ? write_trace(j, ctx, path) : TAC_ERR_NOMEM;
    const int error = errno;
    tac_json_destroy(j);
    if (s == TAC_ERR_NOMEM) return out_of_memory(ctx);
    if (s != TAC_OK)
        return tac_fail(ctx, s, "can't write the trace to %s: %s", path,
                        strerror(error));
    return TAC_OK;
}
