/* context_impl.h: what a context holds. Private to base/. */
#ifndef TAC_CONTEXT_IMPL_H
#define TAC_CONTEXT_IMPL_H

#include <pthread.h>
#include <stdint.h>

#include "tacit/context.h"
#include "tacit/trace.h"

enum {
    TAC__LINE_BYTES = 4096, /* a longer write(2) to a pipe is not atomic */
    TAC__HOST_BYTES = 256
};

typedef struct tac__slot {
    const void *key;
    void *value;
    tac_slot_free *destroy;
    struct tac__slot *next; /* the one created before */
} tac__slot;

typedef struct tac__trace {
    pthread_mutex_t lock;
    tac_span *ring; /* NULL: tracing is off */
    size_t capacity;
    uint64_t written; /* since the start; the ring holds the latest ones */
} tac__trace;

struct tac_context {
    int rank, world, threads, cpus, local_ranks;
    tac_log_level level;
    tac_log_fn *log;
    void *log_arg;
    char host[TAC__HOST_BYTES];

    pthread_mutex_t error_lock; /* error, message */
    tac_status error;
    char message[TAC__LINE_BYTES];

    pthread_mutex_t slots_lock; /* recursive: a slot's make may make slots */
    tac__slot *slots;

    tac__trace trace;
};

/* Both return a failure without reporting it. */
tac_status tac__trace_init(tac__trace *t, size_t capacity);
void tac__trace_destroy(tac__trace *t);

tac_status tac__slots_init(tac_context *ctx);
void tac__slots_destroy(tac_context *ctx);

#endif
