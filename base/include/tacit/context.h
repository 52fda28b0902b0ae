/* tacit/context.h: what would otherwise be global, held in one object a rank.
 *
 * A context belongs to one rank. N ranks as threads of one process have N
 * contexts; nothing in tacit is a mutable global. It carries the log, the last
 * error message, the clock's origin, the trace ring buffer and (on demand) the
 * thread pool. Objects made with a context must be destroyed before it.
 *
 * Thread-safety: every call here may be made from any thread. */
#ifndef TACIT_CONTEXT_H
#define TACIT_CONTEXT_H

#include <stddef.h>

#include "tacit/export.h"
#include "tacit/status.h"

TAC_BEGIN_DECLS

typedef struct tac_context tac_context;

typedef enum tac_log_level {
    TAC_LOG_ERROR = 0,
    TAC_LOG_WARN,
    TAC_LOG_INFO,
    TAC_LOG_DEBUG
} tac_log_level;

/* Receives one complete line without its newline. Called under no lock; must
 * be thread-safe. `arg` is borrowed from the configuration. */
typedef void tac_log_fn(void *arg, tac_log_level level, const char *line);

typedef struct tac_context_config {
    size_t struct_size;  /* sizeof(tac_context_config), set by the INIT macro */
    int rank;            /* shown in the log's prefix; 0 of 1 by default */
    int world;           /* number of ranks of the job */
    tac_log_level level; /* lines above it are dropped; default INFO */
    tac_log_fn *log;     /* NULL: stderr, one write(2) a line */
    void *log_arg;
    int threads;         /* of the pool; 0: CPUs of the affinity mask shared by
                            `local_ranks` ranks, at least 1 */
    int local_ranks;     /* ranks that share this machine; default 1 */
    size_t trace_events; /* capacity of the trace ring; 0: no tracing */
} tac_context_config;

#define TAC_CONTEXT_CONFIG_INIT                                             \
    {                                                                       \
        sizeof(tac_context_config), 0, 1, TAC_LOG_INFO, NULL, NULL, 0, 1, 0 \
    }

/* Creates a context. `config` NULL means defaults. *out is written only on
 * success and owned by the caller. Errors: ARG, NOMEM. */
TAC_API tac_status tac_context_create(const tac_context_config *config,
                                      tac_context **out);
/* NULL is legal. Never fails. Joins the pool's threads. */
TAC_API void tac_context_destroy(tac_context *ctx);

TAC_API int tac_context_rank(const tac_context *ctx);
TAC_API int tac_context_world(const tac_context *ctx);
/* Threads that the pool has or will have, the caller included (>= 1). */
TAC_API int tac_context_threads(const tac_context *ctx);
/* CPUs in the affinity mask of the process. */
TAC_API int tac_context_cpus(const tac_context *ctx);

/* Writes one line, lower case, prefixed "[rank/world host] " on ranks other
 * than 0 and then "error: ", "warning: " or "debug: ", cut so that prefix, text
 * and newline stay under 4096 bytes (one atomic write). Newlines in the text
 * become spaces. A NULL ctx writes to stderr at level INFO. Keeps errno. */
TAC_API void tac_log(tac_context *ctx, tac_log_level level, const char *fmt,
                     ...) TAC_PRINTF(3, 4);

/* Reports a failure where it is detected: logs the text at ERROR, keeps it as
 * the context's message, and returns `s`. The text says what failed, with
 * names and numbers, and what to do. NULL ctx is legal (stderr). */
TAC_API tac_status tac_fail(tac_context *ctx, tac_status s, const char *fmt,
                            ...) TAC_PRINTF(3, 4);

/* Like tac_fail but does not log: for messages that only the rank that prints
 * for all should show (agreed verdicts). */
TAC_API tac_status tac_fail_quiet(tac_context *ctx, tac_status s,
                                  const char *fmt, ...) TAC_PRINTF(3, 4);

/* Copies the message of the latest failure ("" if none) into buf, always
 * terminated. Returns the status that belongs to it. */
TAC_API tac_status tac_context_error(const tac_context *ctx, char *buf,
                                     size_t bytes);

/* Modules hang private per-rank state off the context here. `key` is the
 * address of a static object of the module; the destructor runs in
 * tac_context_destroy, in reverse order of creation. Returns the existing
 * value, or creates it with `make(ctx, arg)`; NULL if that returned NULL. */
typedef void *tac_slot_make(tac_context *ctx, void *arg);
typedef void tac_slot_free(void *value);
TAC_API void *tac_context_slot(tac_context *ctx, const void *key,
                               tac_slot_make *make, tac_slot_free *destroy,
                               void *arg);

TAC_END_DECLS

#endif
