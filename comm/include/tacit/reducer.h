/* tacit/reducer.h: bucketed, overlapped averaging of gradients.
 *
 * A reducer averages the gradients of n parameters over the ranks of a
 * communicator while they are still being produced. Parameters are grouped into
 * buckets; a bucket starts its allreduce as soon as all its gradients are ready
 * and all earlier buckets have started, so every rank submits the same
 * operations in the same order, whatever its own order of readiness.
 *
 * The order of calls:
 *
 *     tac_reducer_create            all ranks, the same list
 *     tac_reducer_set_hook          optional, before the first step
 *     for each step:
 *         tac_reducer_begin         ask tac_reducer_grad_ptr again after it
 *         tac_reducer_ready(i)      for each gradient as it becomes final, or
 *         tac_reducer_unused(i)     if this step produces none
 *         tac_reducer_finish        the averages are in the gradients' place
 *     tac_reducer_destroy           before the communicator
 *
 * Gradients live in one of two places.
 *
 * - The caller's memory (`grad` of every parameter is set). Nothing is copied:
 *   a bucket is the slice from its first parameter to its last. Parameters
 *   should be listed in the order of their addresses, best in the order in
 *   which gradients become final. Where two neighbours are not adjacent the
 *   bucket is split. Alignment padding (under 64 bytes) between two
 *   neighbours is bridged only inside memory declared as `config.arena`: the
 *   padding is then set to 0 and travels with the rest; its contents are lost.
 *   Never rebuilt.
 * - The reducer's memory (`grad` of every parameter is NULL): one arena from
 *   tac_mem_alloc, zeroed, tensors aligned to 64 bytes, a bucket a slice.
 *   tac_reducer_grad_ptr says where each gradient is. After the first step with
 *   sync the arena is rebuilt once, at the next tac_reducer_begin, in the order
 *   in which gradients became ready on rank 0; contents move along.
 *
 * Accumulation: steps begun with require_sync = 0 send nothing; the caller adds
 * into the gradients; the next step with sync averages the sums. The reducer
 * never clears gradients, except those marked unused (below).
 *
 * Agreement: each step with sync ends with one small all-gather of a verdict
 * (posted behind the last bucket, so it hides behind it). So a gradient that
 * one rank forgot is TAC_ERR_INCOMPLETE on every rank, with names, and the
 * communicator stays healthy.
 *
 * A world of one sends nothing and needs no transport.
 *
 * A reducer has no state on which results depend, and there is nothing to save
 * in a checkpoint. In shared memory, and everywhere under
 * tac_comm_config.deterministic, sums are formed in rank order for each
 * element, so neither bucket sizes nor the order of readiness change a bit;
 * over messages the size of a bucket may choose another algorithm, with another
 * order (the order of readiness still changes nothing). With a codec or a cast,
 * blocks that share a scale are counted from the begin of a bucket, so bucket
 * sizes do; what a codec keeps is its own (tac_codec_visit).
 *
 * Thread-safety: one thread at a time, the one that uses the communicator. */
#ifndef TACIT_REDUCER_H
#define TACIT_REDUCER_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/comm.h"

TAC_BEGIN_DECLS

typedef struct tac_reducer tac_reducer;

/* One parameter, as seen by create. Everything is borrowed for the call, except
 * the memory at `grad`, which is borrowed for the reducer's life. */
typedef struct tac_param_desc {
    const char *name; /* for messages and for the comparison of ranks; copied */
    size_t count;     /* elements; 0 is legal */
    tac_dtype dtype;
    void *grad;          /* (count) dtype, or NULL: the reducer's arena */
    int ndim;            /* 0: the shape is {count} */
    const size_t *shape; /* ndim extents whose product is count; only compared
                            across ranks and shown */
} tac_param_desc;

typedef enum tac_reducer_order {
    TAC_REDUCER_ORDER_AUTO = 0, /* GIVEN with the caller's memory, else
                                   REVERSE */
    TAC_REDUCER_ORDER_GIVEN,    /* parameters are listed as they get ready */
    TAC_REDUCER_ORDER_REVERSE   /* the last parameters get ready first */
} tac_reducer_order;

/* Must be equal on all ranks, except arena and arena_bytes. */
typedef struct tac_reducer_config {
    size_t struct_size;
    size_t first_bucket_bytes; /* limit of the first bucket; 0: 1 MiB */
    size_t bucket_bytes;       /* limit of the others; 0: 25 MiB */
    const size_t *limits;      /* instead of both: limits of the buckets in the
                                  order of closing, the last is repeated; NULL:
                                  {first_bucket_bytes, bucket_bytes} */
    size_t n_limits;
    tac_reducer_order order;
    int find_unused; /* 1: reduce a map of used parameters (4 bytes each), so
                        that a gradient unused on all ranks is left untouched */
    int no_rebuild;  /* 1: keep the first layout. find_unused implies it, and so
                        does the caller's memory */
    int check_nan;   /* 1: look for NaN in this rank's gradients before they are
                        sent; tac_reducer_finish returns DIVERGED on all ranks,
                        naming rank, parameter and first index. Costs one read
                        of the gradients */
    int join;        /* 1: ranks may run out of data (tac_reducer_join); each
                        step with sync then carries one more small exchange */
    void *arena;     /* the caller's flat memory in which all gradients lie, so
                        that padding may be overwritten; NULL: none declared */
    size_t arena_bytes;
} tac_reducer_config;

#define TAC_REDUCER_CONFIG_INIT                                               \
    {                                                                         \
        sizeof(tac_reducer_config), 0, 0, NULL, 0, TAC_REDUCER_ORDER_AUTO, 0, \
            0, 0, 0, NULL, 0                                                  \
    }

#define TAC_FIRST_BUCKET_BYTES ((size_t)1 << 20)
#define TAC_BUCKET_BYTES       ((size_t)25 << 20)

/* Creates a reducer; collective, with an agreed verdict. Before anything else
 * the lists and configurations of all ranks are compared: a difference is
 * TAC_ERR_MISMATCH on every rank, and the context's message names both ranks
 * and both values ("rank 1 has 7 parameters, rank 0 has 8"). `config` NULL
 * means defaults. *out is written only on success. The communicator is
 * borrowed and must outlive the reducer.
 * Errors: ARG (on any rank: a parameter that is no parameter, grad pointers
 * given for some only or misaligned), MISMATCH, NOMEM, the communicator's. */
TAC_API tac_status tac_reducer_create(tac_comm *comm,
                                      const tac_param_desc *params, size_t n,
                                      const tac_reducer_config *config,
                                      tac_reducer **out);

/* The same for n plain arrays of f32: grads[i] has counts[i] gradients. Listed
 * as the forward pass uses them, so that the last are ready first. `grads` and
 * `counts` are borrowed for the call, the arrays for the reducer's life. */
TAC_API tac_status tac_reducer_create_arrays(tac_comm *comm,
                                             float *const *grads,
                                             const size_t *counts, size_t n,
                                             tac_reducer **out);

/* Releases everything; local. With buckets under way it aborts the
 * communicator. A failed communicator may still use the arena, which is then
 * left to it. NULL is legal. */
TAC_API void tac_reducer_destroy(tac_reducer *r);

/* ---- a step ---------------------------------------------------------------
 */

/* Where the gradient of parameter i is. The pointer of an empty parameter is
 * not to be read or written. Valid until the next tac_reducer_begin (which may
 * rebuild, once) or destroy. Errors: ARG. */
TAC_API tac_status tac_reducer_grad_ptr(const tac_reducer *r, size_t i,
                                        void **out);

/* Starts a step. require_sync 0: gradients stay local (equal on all ranks).
 * `grad_scale`: the loss scale that the gradients carry, 1 if none; it is told
 * to hooks and codecs and changes nothing else. Collective and blocking only
 * when it rebuilds. Errors: STATE (the last step was not finished, or this rank
 * has joined), ARG (grad_scale not positive and finite), MISMATCH, NOMEM, the
 * communicator's. */
TAC_API tac_status tac_reducer_begin(tac_reducer *r, int require_sync,
                                     double grad_scale);

/* The gradient of parameter i is final for this step (with the caller's
 * accumulation in it). The caller must not touch it until tac_reducer_finish
 * returned. Starts what can start, and moves what is under way. `stream`: where
 * the gradient's producer was submitted; NULL: it is complete. Errors: ARG,
 * STATE (no step begun; marked ready twice: the message names it), the
 * communicator's. */
TAC_API tac_status tac_reducer_ready(tac_reducer *r, size_t i, void *stream);

/* This step produces no gradient for parameter i. It counts as zeros, unless an
 * earlier step since the last one with sync produced one, which then counts.
 * The gradient's place is cleared by the reducer; afterwards it holds the
 * average of zeros and the other ranks' gradients. If no rank produced one:
 * with find_unused the place holds what it held before (this rank keeps a copy
 * meanwhile), without it zeros. Errors: ARG, STATE, NOMEM, the
 * communicator's. */
TAC_API tac_status tac_reducer_unused(tac_reducer *r, size_t i);

/* Moves what is under way, without blocking: for long stretches of compute
 * between two gradients, where progress is the caller's. */
TAC_API tac_status tac_reducer_progress(tac_reducer *r);

/* Ends the step: waits until all buckets are averaged on this rank.
 * timeout_ms > 0: at most that long, then TIMEOUT, and the communicator is
 * poisoned; <= 0: the communicator's own timeouts.
 * Errors, equal on all ranks: INCOMPLETE (a gradient was neither ready nor
 * unused on some rank; rank and names are in the message), DIVERGED
 * (check_nan). After these two the contents of the gradients are unspecified
 * (INCOMPLETE) or averaged (DIVERGED) and the next step may begin. STATE: no
 * step begun. Others are the communicator's and final. */
TAC_API tac_status tac_reducer_finish(tac_reducer *r, int timeout_ms);

/* For a rank without data while others still have some (config.join): takes
 * part in one step with zeros (and with what this rank accumulated since its
 * last step with sync). *more is 1 if some rank had data: the averages, still
 * divided by all ranks, are then in the gradients' place, and the caller
 * applies its optimizer as the others do, so that all parameters stay equal. It
 * is 0 when every rank has joined: *last_rank (may be NULL) is then the highest
 * of the ranks that joined last, and new steps may begin. So:
 *
 *     do {
 *         s = tac_reducer_join(r, timeout_ms, &more, NULL);
 *         if (!s && more) apply the optimizer;
 *     } while (!s && more);
 *
 * Errors: STATE (in a step, or config.join not set), those of finish. */
TAC_API tac_status tac_reducer_join(tac_reducer *r, int timeout_ms, int *more,
                                    int *last_rank);

/* ---- hooks ----------------------------------------------------------------
 */

/* A bucket, as hooks and banners see it. Pointers are the reducer's, valid
 * until the next tac_reducer_begin. */
typedef struct tac_bucket_view {
    size_t index; /* in the order of starting */
    void *buffer; /* (count) dtype: this rank's gradients, and later
                     the result */
    size_t count; /* elements, padding included */
    tac_dtype dtype;
    int is_last; /* 1 for the last bucket with elements */
    size_t n_params;
    const size_t *params;  /* (n_params) indices given to create */
    const size_t *offsets; /* (n_params) first element of each in buffer */
    size_t bytes;          /* of the parameters, without padding */
    double grad_scale;     /* of tac_reducer_begin */
    void *stream;          /* of the bucket's last gradient */
} tac_bucket_view;

/* Called in place of the allreduce when a bucket starts, in bucket order. It
 * submits its own collectives and sets *req to the request whose completion
 * means that bucket->buffer holds the result (the reducer waits for it and
 * releases it), or leaves it NULL if that is so already. The reducer doesn't
 * divide: averaging is the hook's. All ranks' hooks must submit the same
 * collectives. A failure aborts the communicator. */
typedef tac_status tac_reducer_hook_fn(void *state, tac_comm *comm,
                                       const tac_bucket_view *bucket,
                                       tac_req **req);
/* Called when that request is complete, before the gradients are used: to
 * decode. May not submit collectives. */
typedef tac_status tac_reducer_done_fn(void *state,
                                       const tac_bucket_view *bucket);

/* Registers a hook; `done` may be NULL, `state` is borrowed. At most once, and
 * before the first tac_reducer_begin; on all ranks. Errors: ARG, STATE. */
TAC_API tac_status tac_reducer_set_hook(tac_reducer *r,
                                        tac_reducer_hook_fn *start,
                                        tac_reducer_done_fn *done, void *state);

/* Averages buckets through a codec (tacit/codec.h), which is borrowed until
 * destroy and keyed by the parameters' names; NULL ("none") changes nothing. At
 * most once, instead of a hook, before the first tac_reducer_begin; on all
 * ranks. While the arena may still be rebuilt (the first step with sync) a
 * codec with state sends f32. grad_scale of tac_reducer_begin is passed on;
 * ranks that have joined take it from a rank with data. Only f32 parameters may
 * be listed, each with a name of its own. A parameter that no rank produced may
 * still give up its residual, which is lost where find_unused restores what the
 * place held. Errors: ARG, STATE, UNSUPPORTED, NOMEM. */
struct tac_codec;
TAC_API tac_status tac_reducer_set_codec(tac_reducer *r,
                                         struct tac_codec *codec);

/* The same with a cast instead of a codec: TAC_F16 or TAC_BF16. */
TAC_API tac_status tac_reducer_set_wire(tac_reducer *r, int wire_dtype);

/* ---- buckets --------------------------------------------------------------
 */

/* Buckets now, and one of them. Errors: ARG. */
TAC_API size_t tac_reducer_buckets(const tac_reducer *r);
TAC_API tac_status tac_reducer_bucket(const tac_reducer *r, size_t b,
                                      tac_bucket_view *out);

/* Which parameters form which bucket. Bucket b has the parameters
 * params[first[b]] .. params[first[b + 1] - 1] and was closed under limits[b].
 * All arrays are one allocation, owned by the plan. */
typedef struct tac_bucket_plan {
    size_t buckets;
    const size_t *first;  /* (buckets + 1) */
    const size_t *params; /* (n) parameter indices */
    const size_t *limits; /* (buckets) bytes */
} tac_bucket_plan;

/* The field's rule. Parameters are taken in the order `order` (a permutation of
 * 0..n-1; NULL: as listed) and put into one open bucket for each dtype, which
 * is closed as soon as its bytes reach the limit, the parameter included; a
 * parameter is never split. Each dtype walks through the limits on its own; the
 * last limit repeats. Buckets are sorted: by smallest parameter index if
 * `order` is NULL, else by the place in `order` of their last parameter (when
 * they can start). Only count and dtype of params are used. Pure and local.
 * Errors: ARG (no limits, no permutation, sizes that overflow), NOMEM. */
TAC_API tac_status tac_reducer_assign_buckets(const tac_param_desc *params,
                                              size_t n, const size_t *order,
                                              const size_t *limits,
                                              size_t n_limits,
                                              tac_bucket_plan *out);
TAC_API void tac_bucket_plan_free(tac_bucket_plan *plan); /* NULL is legal */

/* ---- statistics -----------------------------------------------------------
 */

/* Of one step, or of all steps with sync so far. A bucket's span goes from its
 * start to its completion (as noticed by a call of the reducer; with
 * TAC_PROGRESS_THREAD it may in truth have completed earlier). */
typedef struct tac_reducer_times {
    uint64_t steps;         /* with sync */
    uint64_t calls;         /* bucket reductions: exactly one a bucket and step
                               with sync, none for a bucket without elements;
                               0 in a world of one, unless hooked */
    uint64_t control_calls; /* verdicts, used maps, join exchanges */
    uint64_t bytes_logical; /* parameters' bytes handed over by this rank */
    uint64_t bytes_wire;    /* the same as it travels: with padding, and after
                               encoding, scales and indices included; hooks
                               count as f32 */
    double comm_s;    /* seconds in at least one bucket's span (their union) */
    double exposed_s; /* the part of comm_s that the calling thread spent inside
                         calls of the reducer, hence with no compute under it */
    double wait_s;    /* the part of exposed_s spent blocked in finish */
} tac_reducer_times;

typedef struct tac_reducer_stats {
    tac_reducer_times step;  /* the last finished step with sync */
    tac_reducer_times total; /* since create */
    size_t buckets;
    const size_t *bucket_bytes; /* (buckets) parameters' bytes, without
                                   padding */
    size_t initial_buckets;     /* before the rebuild */
    const size_t *initial_bucket_bytes;
    int rebuilt;               /* 1: the layout is final */
    size_t n_ready;            /* of the last step with sync */
    const size_t *ready_order; /* (n_ready) parameters in this rank's order of
                                  readiness, unused ones included */
} tac_reducer_stats;

/* What `steps` steps with sync, from the codec's first call on, will have added
 * to the total's bytes: known before the first of them, and exact where the
 * layout is final (with the caller's memory, or after the rebuild) and hooks
 * are none. */
TAC_API void tac_reducer_predict(const tac_reducer *r, uint64_t steps,
                                 uint64_t *bytes_logical, uint64_t *bytes_wire);

/* Pointers in *out are the reducer's, valid until its next call. */
TAC_API void tac_reducer_stats_get(const tac_reducer *r,
                                   tac_reducer_stats *out);

TAC_END_DECLS

#endif
