/* tacit/trace.h: spans in a ring buffer, written as Chrome trace JSON.
 *
 * Lanes are separate "threads" of the picture, so that spans of one lane nest:
 * compute, communication and loader each have their own. A context made with
 * trace_events = 0 records nothing and these calls cost one branch. When the
 * ring is full the oldest spans are overwritten and counted.
 *
 * Thread-safety: tac_trace_span may be called from any thread. */
#ifndef TACIT_TRACE_H
#define TACIT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"

TAC_BEGIN_DECLS

typedef enum tac_lane {
    TAC_LANE_COMPUTE = 0,
    TAC_LANE_COMM,
    TAC_LANE_LOADER,
    TAC_LANE_STEP,
    TAC_LANE_COUNT,
    /* Gradient buckets overlap each other: bucket b has its own lane,
     * TAC_LANE_BUCKETS + b % TAC_BUCKET_LANES. */
    TAC_LANE_BUCKETS = 16
} tac_lane;
#define TAC_BUCKET_LANES 16

typedef struct tac_span {
    const char *name; /* static string, borrowed for ever */
    tac_lane lane;
    uint64_t begin_ns, end_ns; /* tac_clock_ns */
    int64_t arg;               /* bytes, bucket or step; -1: none */
} tac_span;

TAC_API int tac_trace_enabled(const tac_context *ctx);
TAC_API void tac_trace_span(tac_context *ctx, tac_lane lane, const char *name,
                            uint64_t begin_ns, uint64_t end_ns, int64_t arg);
/* Copies the recorded spans, oldest first, into `out` (capacity `n`); returns
 * how many were copied. `out` NULL: how many there are. */
TAC_API size_t tac_trace_read(const tac_context *ctx, tac_span *out, size_t n);
/* Spans that were overwritten since the context was made. */
TAC_API uint64_t tac_trace_lost(const tac_context *ctx);
/* Writes {"traceEvents":[...]} with pid = rank and tid = lane. Errors: IO. */
TAC_API tac_status tac_trace_write(tac_context *ctx, const char *path);
/* Writes the same events as a bare comma-separated list to memory, in the order
 * in which they began, so that rank 0 can merge ranks: *out is malloc'd, owned
 * by the caller. shift_ns is added to all times: minus the start of the run,
 * plus what this host's clock is behind rank 0's. */
TAC_API tac_status tac_trace_events_json(tac_context *ctx, int64_t shift_ns,
                                         char **out);

TAC_END_DECLS

#endif
