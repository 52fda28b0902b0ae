/* trace.c: the ring of spans. A span costs one uncontended lock, some 30 ns. */
#include "context_impl.h"

#include <stdlib.h>
#include <string.h>

tac_status tac__trace_init(tac__trace *t, size_t capacity)
{
    *t = (tac__trace){.capacity = capacity};
    if (capacity == 0) return TAC_OK;
    t->ring = calloc(capacity, sizeof *t->ring);
    if (!t->ring) return TAC_ERR_NOMEM;
    if (pthread_mutex_init(&t->lock, NULL) == 0) return TAC_OK;
    free(t->ring);
    t->ring = NULL;
    return TAC_ERR_NOMEM;
}

void tac__trace_destroy(tac__trace *t)
{
    if (!t->ring) return;
    pthread_mutex_destroy(&t->lock);
    free(t->ring);
    t->ring = NULL;
}

int tac_trace_enabled(const tac_context *ctx)
{
    return ctx && ctx->trace.ring;
}

void tac_trace_span(tac_context *ctx, tac_lane lane, const char *name,
                    uint64_t begin_ns, uint64_t end_ns, int64_t arg)
{
    if (!tac_trace_enabled(ctx)) return;
    tac__trace *t = &ctx->trace;
    pthread_mutex_lock(&t->lock);
    t->ring[t->written % t->capacity] =
        (tac_span){name, lane, begin_ns, end_ns, arg};
    ++t->written;
    pthread_mutex_unlock(&t->lock);
}

size_t tac_trace_read(const tac_context *ctx, tac_span *out, size_t n)
{
    if (!tac_trace_enabled(ctx)) return 0;
    tac__trace *t = (tac__trace *)&ctx->trace; /* its lock; never const */
    pthread_mutex_lock(&t->lock);
    const size_t held =
        t->written < t->capacity ? (size_t)t->written : t->capacity;
    const uint64_t first = t->written - held;
    const size_t copied = !out || n > held ? held : n;
    for (size_t i = 0; out && i < copied; ++i)
        out[i] = t->ring[(first + i) % t->capacity];
    pthread_mutex_unlock(&t->lock);
    return copied;
}

uint64_t tac_trace_lost(const tac_context *ctx)
{
    if (!tac_trace_enabled(ctx)) return 0;
    tac__trace *t = (tac__trace *)&ctx->trace;
    pthread_mutex_lock(&t->lock);
    const uint64_t lost =
        t->written > t->capacity ? t->written - t->capacity : 0;
    pthread_mutex_unlock(&t->lock);
    return lost;
}
