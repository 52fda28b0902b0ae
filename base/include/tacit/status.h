/* tacit/status.h: what every function returns, with a text and a remedy.
 *
 * One list gives the enum, the texts and the remedies. 0 is success, positive
 * values are not failures, negative values are. Classes: a programmer's error
 * is TAC_ASSERT (debug builds); a user's or the environment's error is a
 * status and ONE message with the remedy (tac_fail in context.h); a peer's
 * failure poisons the communicator.
 *
 * The function that first detects a failure reports it; functions that only
 * forward a status stay silent. */
#ifndef TACIT_STATUS_H
#define TACIT_STATUS_H

#include "tacit/export.h"

TAC_BEGIN_DECLS

/*  X(name, value, text, remedy)  */
#define TAC_STATUS_LIST(X)                                                 \
    X(TAC_OK, 0, "success", "")                                            \
    X(TAC_INPROGRESS, 1, "in progress", "call tac_test or tac_wait again") \
    X(TAC_ERR_ARG, -1, "invalid argument",                                 \
      "see the function's comment in the header")                          \
    X(TAC_ERR_CONFIG, -2, "invalid configuration",                         \
      "see --help and --print-config")                                     \
    X(TAC_ERR_DATA, -3, "bad data",                                        \
      "check the file named; it may be truncated or of another format")    \
    X(TAC_ERR_NOMEM, -4, "out of memory",                                  \
      "lower the batch or the model size, or free memory")                 \
    X(TAC_ERR_IO, -5, "input or output failed",                            \
      "check the path, its permissions and the free space")                \
    X(TAC_ERR_UNSUPPORTED, -6,                                             \
      "not supported in this build or on this machine",                    \
      "tacit's start banner says what was found and what was not")         \
    X(TAC_ERR_MISMATCH, -7, "ranks disagree",                              \
      "give every rank the same calls, shapes, types and options")         \
    X(TAC_ERR_TIMEOUT, -8, "timed out",                                    \
      "look for a rank that is stopped, slow or elsewhere in the program") \
    X(TAC_ERR_PEER, -9, "a peer rank died",                                \
      "look at that rank's own output for the cause")                      \
    X(TAC_ERR_ABORTED, -10, "communicator aborted",                        \
      "another thread or rank called tac_comm_abort; see its reason")      \
    X(TAC_ERR_STATE, -11, "called in the wrong order",                     \
      "see the order of calls in the header")                              \
    X(TAC_ERR_INCOMPLETE, -12, "a gradient was never produced",            \
      "mark it with tac_reducer_unused or produce it on every rank")       \
    X(TAC_ERR_DIVERGED, -13, "training diverged",                          \
      "lower the learning rate or check the data")                         \
    X(TAC_ERR_INTERNAL, -14, "internal error",                             \
      "please report it with the lines printed before")                    \
    X(TAC_ERR_INTERRUPTED, -15, "stopped by a signal", "resume the run")

typedef enum tac_status {
#define TAC_STATUS_ENUM(name, value, text, remedy) name = value,
    TAC_STATUS_LIST(TAC_STATUS_ENUM)
#undef TAC_STATUS_ENUM
} tac_status;

/* The enumerator's name, "TAC_ERR_TIMEOUT". Never NULL. Thread-safe. */
TAC_API const char *tac_status_name(tac_status s);
/* A short text, "timed out". Never NULL. Thread-safe. */
TAC_API const char *tac_status_text(tac_status s);
/* What to do about it; "" for success. Never NULL. Thread-safe. */
TAC_API const char *tac_status_remedy(tac_status s);

/* Returns the status of `expr` from the calling function if it is a failure. */
#define TAC_TRY(expr)                                    \
    do {                                                 \
        const tac_status tac_try_status_ = (expr);       \
        if (tac_try_status_ < 0) return tac_try_status_; \
    } while (0)

/* A programmer's error. Checked in debug builds only. */
#ifdef NDEBUG
#define TAC_ASSERT(cond) ((void)sizeof(!(cond)))
#else
TAC_API void tac_assert_failed(const char *cond, const char *file, int line);
#define TAC_ASSERT(cond) \
    ((cond) ? (void)0 : tac_assert_failed(#cond, __FILE__, __LINE__))
#endif

TAC_END_DECLS

#endif
