/* tacit/localsgd.h: periodic averaging of replicas, for any trainer.
 *
 * A trainer registers its tensors once, says after each optimizer attempt that
 * it was one, and finds its parameters averaged when the schedule says so:
 *
 *     tac_localsgd_create(comm, &config, &l);
 *     for each tensor: tac_localsgd_add(l, &(tac_localsgd_tensor){...});
 *     tac_localsgd_start(l, TAC_START_BROADCAST);
 *     loop:
 *         forward, backward, optimizer step
 *         tac_localsgd_step(l, &(tac_local_step){.lr = lr, .loss = loss,
 *                                                .samples = batch}, &e);
 *     tac_localsgd_finish(l);
 *
 * Works on plain host memory; knows nothing of networks, tapes or optimizers;
 * needs comm/ alone. What is done when is in tacit/localsgd_config.h.
 *
 * What is sent. Each fragment (without streaming: the whole model) is one f32
 * collective, never one a tensor; tensors that lie side by side in memory are
 * one stretch, and a fragment of one stretch is read in place where nothing has
 * to be computed first. Without an anchor (tac_localsgd_has_anchor) the
 * parameters themselves are averaged; else the deltas are. Merged tensors are
 * at most four more collectives, with fragment 0.
 *
 * Memory (tac_localsgd_bytes), for n parameters of which the largest fragment
 * has m: staging m; an anchor n; the outer optimizer's arrays n each; with a
 * delay one more buffer of a fragment for each that can be under way; and what
 * a codec holds (tac_codec_predict), for each level.
 *
 * Own communicators. tac_localsgd_start splits what it needs off the caller's,
 * two a level, so that deltas under way never wait for, nor hold up, the
 * caller's own collectives (pytorch#60891).
 *
 * Agreement. Before each synchronisation the ranks compare a digest of the
 * schedule's state (attempt, interval, level, fragment, configuration); a
 * difference is MISMATCH on all ranks, naming both, not a deadlock. All ranks
 * must call tac_localsgd_step equally often: once an attempt, also one that was
 * skipped. A rank without data left calls it with samples = 0.
 *
 * Errors. A failure of communication poisons the object: each later call
 * returns the first error at once, until tac_localsgd_regroup. Parameters then
 * hold either the state before the synchronisation or the state after it, never
 * a mixture: nothing of a fragment is written before all that is exchanged with
 * it has arrived. Destroy the object before memory of its tensors is freed.
 *
 * Thread-safety: one thread at a time an object. */
#ifndef TACIT_LOCALSGD_H
#define TACIT_LOCALSGD_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/comm.h"
#include "tacit/localsgd_config.h"
#include "tacit/state.h"

TAC_BEGIN_DECLS

typedef struct tac_localsgd tac_localsgd;

/* What a tensor is. Only parameters have deltas, anchors and outer
 * optimizers. */
typedef enum tac_tensor_role {
    TAC_ROLE_PARAM,
    TAC_ROLE_MOMENT,    /* an inner optimizer's state */
    TAC_ROLE_STATISTIC, /* running mean or variance */
    TAC_ROLE_COUNTER,   /* i64 */
    TAC_ROLE_BUFFER
} tac_tensor_role;
enum { TAC_TENSOR_ROLES = 5 };

/* What a synchronisation does with it. */
typedef enum tac_merge {
    TAC_MERGE_DEFAULT, /* AVERAGE for PARAM and STATISTIC, KEEP for MOMENT, MAX
                          for COUNTER, KEEP for BUFFER */
    TAC_MERGE_KEEP,    /* each rank its own */
    TAC_MERGE_AVERAGE,
    TAC_MERGE_RESET, /* to zero on every rank */
    TAC_MERGE_MAX,
    TAC_MERGE_MOMENTS, /* a variance whose mean is the tensor `mean_of` (added
                          before it, AVERAGE): mean(var) + var(mean), so that
                          spread between ranks counts */
    TAC_MERGE_FROZEN   /* equal everywhere and never sent; compared at start */
} tac_merge;

typedef struct tac_localsgd_tensor {
    const char *name; /* copied, unique */
    tac_tensor_role role;
    tac_merge merge;
    tac_dtype dtype; /* f32; COUNTER: i64 */
    size_t count;
    void *data;          /* borrowed for the object's life */
    int64_t layer;       /* of PARAM: decides its fragment; -1 (for all of
                            them or none): each tensor is a layer, by order */
    const char *mean_of; /* MOMENTS */
} tac_localsgd_tensor;

/* `comm` is borrowed; config is copied (strings too). Errors: ARG with what
 * tac_localsgd_check says, NOMEM. Collective only in tac_localsgd_start. */
TAC_API tac_status tac_localsgd_create(tac_comm *comm,
                                       const tac_localsgd_config *config,
                                       tac_localsgd **out);
/* Local. After finish, a failure or settle; deltas that are still under way are
 * ABORTED on all ranks. NULL is legal. */
TAC_API void tac_localsgd_destroy(tac_localsgd *l);
/* Errors: ARG (no name, a name twice, another dtype), STATE after start. */
TAC_API tac_status tac_localsgd_add(tac_localsgd *l,
                                    const tac_localsgd_tensor *t);

typedef enum tac_start {
    TAC_START_BROADCAST, /* rank 0's values of all but BUFFER go to all ranks */
    TAC_START_VERIFY,    /* all ranks must have the same bits: MISMATCH */
    TAC_START_LOADED     /* the state was loaded: nothing is sent */
} tac_start;
/* Collective. Allocates everything that is ever needed (anchors, outer state,
 * staging: see tac_localsgd_bytes), compares configuration and tensors on all
 * ranks, sets the anchor. */
TAC_API tac_status tac_localsgd_start(tac_localsgd *l, tac_start how);

/* All of the above in one call, for a model whose parameters are one array of
 * f32, (n): create with the method of tac_localsgd_preset, add, start with rank
 * 0's values. Collective. */
TAC_API tac_status tac_localsgd_create_array(tac_comm *comm, const char *method,
                                             int64_t every, float *params,
                                             size_t n, tac_localsgd **out);

typedef struct tac_local_step {
    double lr;      /* the inner one; for QSR, ADACOMM, SlowMo */
    double loss;    /* of the attempt, this rank's; NaN: not told */
    double samples; /* weight of this attempt, 0 or more */
    int skipped;    /* 1: the optimizer did not apply it */
} tac_local_step;

typedef struct tac_sync_event {
    int synced;       /* something was merged or sent at this attempt */
    int level;        /* the outermost that was */
    int64_t fragment; /* which; -1: several or all */
    int64_t interval; /* attempts since the synchronisation before */
    int arrived;      /* delayed results that were applied */
    int late;         /* TAC_LATE_DROP: the interval's time is up */
} tac_sync_event;

/* One attempt. Collective where something is due, which is the same on all
 * ranks. `event` may be NULL. Errors: ARG (samples below 0 or NaN); STATE
 * before start, after finish and after config.total attempts; MISMATCH; those
 * of comm. */
TAC_API tac_status tac_localsgd_step(tac_localsgd *l, const tac_local_step *s,
                                     tac_sync_event *event);
/* Counted for reports alone: a micro-step of accumulation is no attempt. */
TAC_API void tac_localsgd_micro_step(tac_localsgd *l);
/* 1 if the next attempt will synchronise or apply something (for trainers that
 * overlap or that checkpoint around it). Not known, and 0, before the first
 * attempt of QSR and CUSTOM. */
TAC_API int tac_localsgd_due(const tac_localsgd *l);
/* 1 if all ranks have the same parameters: nothing was trained since everything
 * was averaged, and nothing is under way. The same on all ranks. */
TAC_API int tac_localsgd_is_clean(const tac_localsgd *l);
/* Ends: applies what is under way and synchronises what is not yet. Collective;
 * all ranks end with the same parameters (and compare their attempts once more,
 * so that a rank with one too many is found). May be called once. */
TAC_API tac_status tac_localsgd_finish(tac_localsgd *l);

typedef struct tac_regroup {
    int ranks, joined; /* of the new world; of these, newcomers */
    int64_t attempts;  /* made so far: the trainer goes on behind this one */
    int64_t forward;   /* of them, those that this rank has not made itself: its
                          clock was set forward; a newcomer's: all */
    int64_t adopted;   /* fragments whose anchor this rank took over */
    int64_t dropped;   /* deltas under way that were given up, on all ranks */
    int64_t retried;   /* fragments that were synchronised in this call */
} tac_regroup;

/* Goes on with other ranks: after a failure, or between attempts (also before
 * finish is tried once more), with a new communicator of the ranks that are
 * left, in any order, and of newcomers. Collective on `comm`, which is borrowed
 * instead of the one before; that may be destroyed when this has returned.
 *
 * A newcomer has created an object on `comm` with the same configuration and
 * tensors, and calls this instead of tac_localsgd_start. It gets the anchor as
 * its parameters (without anchor: the parameters of the rank that is furthest),
 * the outer state, the clock, the rule's memory, and of the other tensors what
 * TAC_START_BROADCAST sends.
 *
 * When ranks fail, some may have completed a synchronisation that others have
 * not. What counts is the rank that is furthest: those that are behind take
 * over its clock, anchor and outer state, of fragments that they lack, mix
 * their parameters with them as they would have, and say so in `forward` and
 * `adopted`: what they had sent is in it. (Without an anchor they keep their
 * parameters, which meet the others' at the next synchronisation.) Then what
 * the furthest rank has not synchronised at its present attempt is synchronised
 * in this call, so parameters may have changed.
 *
 * Deltas under way: those whose average some rank has completely are kept, for
 * all; the others are given up. With a delay shorter than the interval that
 * loses nothing, as the parameters still have what was sent. One interval late
 * it loses that interval.
 *
 * Error feedback: residuals of the ranks that are left stay. Weights, shares
 * and bytes follow the new number of ranks; the last of `levels` too, if the
 * inner ones divide it. Deltas of EAGER replicas can't be regrouped, as their
 * anchors differ: UNSUPPORTED.
 *
 * `out` may be NULL. Errors: STATE (after finish; nobody has a state; only half
 * written ones), ARG (the configuration can't be with so many ranks), MISMATCH,
 * NOMEM, those of comm. Then the object is poisoned as after a failure, and
 * this may be called again with another communicator. */
TAC_API tac_status tac_localsgd_regroup(tac_localsgd *l, tac_comm *comm,
                                        tac_regroup *out);

/* The averaged model as evaluation should see it: before a synchronisation the
 * ranks' parameters differ. Collective: the mean over ranks of all PARAM
 * tensors into `out` (flat, in the order of tac_localsgd_add, f32, caller's,
 * tac_localsgd_elements entries); changes nothing else. */
TAC_API tac_status tac_localsgd_mean(tac_localsgd *l, float *out);
TAC_API size_t tac_localsgd_elements(const tac_localsgd *l);

typedef struct tac_localsgd_stats {
    int64_t attempts, micro_steps, skipped, syncs;
    int64_t syncs_level[TAC_LOCALSGD_LEVELS];
    uint64_t bytes_logical, bytes_wire;    /* of this rank, deltas and merged
                                              tensors; counted by comm/, of what
                                              is complete */
    uint64_t bytes_control;                /* digests */
    uint64_t bytes_role[TAC_TENSOR_ROLES]; /* wire bytes, when submitted */
    uint64_t bytes_level[TAC_LOCALSGD_LEVELS]; /* wire bytes, complete */
    double sync_s, wait_s; /* in synchronisations; of it waiting for ranks */
    int64_t last_interval;
    double delta_norm; /* 2-norm of the averaged delta of the latest outermost
                          synchronisation; NaN without anchor */
    /* These two need other ranks' figures, which travel with the next digest,
     * so that they cost no message: they belong to the last outermost
     * synchronisation but one, after finish to the last. NaN before. */
    double consensus_distance; /* before it: mean over ranks of |x_r - mean|^2;
                                  of a delayed one: mean |delta|^2 - |mean|^2 */
    double cosine;   /* mean over ranks of cos(own delta, mean); NaN without
                        anchor and for delayed ones */
    int64_t dropped; /* deltas left out, all ranks */
} tac_localsgd_stats;
TAC_API void tac_localsgd_stats_get(const tac_localsgd *l,
                                    tac_localsgd_stats *out);
/* Everything that the object's own communicators did, digests, means and
 * set-up included, of this rank and since tac_localsgd_start. */
TAC_API void tac_localsgd_comm_stats(const tac_localsgd *l,
                                     tac_comm_op_stats *out);
/* Bytes held after start: anchors, outer state, staging, and what codecs will
 * hold from their first calls on (residuals, messages). */
TAC_API size_t tac_localsgd_bytes(const tac_localsgd *l);
/* And of its own communicators. */
TAC_API size_t tac_localsgd_comm_bytes(const tac_localsgd *l);

/* Everything that a bitwise continuation on as many ranks needs, at any phase:
 * clocks, interval, the rule's memory, anchor, outer state, residuals of
 * codecs, deltas under way, counters. The parameters themselves are the
 * caller's to save. Names begin with "localsgd.". A tac_state_walk_fn. Each
 * rank saves and loads its own.
 *
 * What is under way is first completed by tac_localsgd_settle (collective,
 * changes no result: they are kept aside until their time); without it the walk
 * is STATE. Loading happens between the last add and start(TAC_START_LOADED),
 * which compares the ranks' clocks and anchors, and the configuration with the
 * saved one (`total` may differ). */
TAC_API tac_status tac_localsgd_settle(tac_localsgd *l);
TAC_API tac_status tac_localsgd_walk(void *localsgd,
                                     const tac_state_visitor *v);

/* ---- prediction -----------------------------------------------------------
 */

/* A model as prediction and simulation see it. */
typedef struct tac_localsgd_model {
    int64_t layers;
    const size_t *params; /* (layers) f32 elements of each */
    size_t merged;        /* further f32 elements merged with fragment 0:
                             AVERAGE, MOMENTS and MAX */
    size_t counters;      /* i64 elements of MAX */
} tac_localsgd_model;
/* The model that was registered, after start. Owned by l. */
TAC_API tac_localsgd_model tac_localsgd_model_of(const tac_localsgd *l);

typedef struct tac_localsgd_prediction {
    int64_t syncs;
    uint64_t bytes_logical, bytes_wire; /* a rank, over the whole run */
} tac_localsgd_prediction;

/* Exactly what tac_localsgd_stats will count after `attempts` attempts and
 * finish. lr(arg, attempt) is for QSR and CUSTOM, attempts counted from 1;
 * NULL: always 1. CUSTOM sees no losses and times (NaN); ADACOMM and BUDGET,
 * which need them, can't be predicted: UNSUPPORTED. ARG: what
 * tac_localsgd_check says, or more attempts than config.total. */
TAC_API tac_status tac_localsgd_predict(
    tac_context *ctx, const tac_localsgd_config *c, const tac_localsgd_model *m,
    int world, int64_t attempts, double (*lr)(void *, int64_t), void *arg,
    tac_localsgd_prediction *out);
/* What tac_localsgd_bytes will be, to the byte. Errors: ARG, NOMEM. */
TAC_API tac_status tac_localsgd_predict_memory(tac_context *ctx,
                                               const tac_localsgd_config *c,
                                               const tac_localsgd_model *m,
                                               int world, size_t *out);
/* What tac_localsgd_comm_bytes will be for `world` ranks of a communicator like
 * `comm`; exact where tac_comm_child_bytes is. */
TAC_API size_t tac_localsgd_predict_comm_bytes(const tac_comm *comm,
                                               const tac_localsgd_config *c,
                                               int world);

TAC_END_DECLS

#endif
