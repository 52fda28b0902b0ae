/* impl.h: what the files of localsgd/ share.
 *
 * tensors.c   create, add, destroy
 * layout.c    fragments and stretches; what is allocated
 * start.c     agreement, communicators, the first values
 * card.c      the digest that precedes each synchronisation
 * kernels.c   loops over elements
 * outer.c     outer optimizers
 * exchange.c  one collective of a fragment
 * sync.c      one synchronisation of a fragment
 * flight.c    deltas under way
 * merge.c     tensors other than parameters
 * step.c      attempts, finish
 * memory.c    bytes held, and predicted
 * stats.c state.c mean.c predict.c
 * regroup.c   other ranks: who is the furthest; regroup_adopt.c: what the
 *             others take over; regroup_codec.c: residuals; regroup_flights.c
 * clock.h     which attempt synchronises what */
#ifndef TACIT_LOCALSGD_IMPL_H
#define TACIT_LOCALSGD_IMPL_H

#include "clock.h"
#include "tacit/codec.h"
#include "tacit/localsgd.h"

enum { TAC__OUTER_ARRAYS = 4 };
/* Staging of the communicators that carry digests: short, a few a rank. */
#define TAC__CONTROL_STAGING ((size_t)16 << 10)

typedef struct tac__tensor {
    tac_localsgd_tensor t; /* name is owned; merge is never DEFAULT */
    int64_t mean;          /* index of mean_of, -1: none */
    size_t at;             /* in the staging of its kind of merge */
} tac__tensor;

/* Parameters that lie side by side. `at`: in the flat order, which has the
 * fragments one after the other. */
typedef struct tac__stretch {
    float *data;
    size_t at, n;
} tac__stretch;

typedef struct tac__fragment {
    size_t at, n; /* in the flat order */
    size_t first, stretches;
    double samples, steps; /* this rank's totals when it was last sent */
    uint64_t outer_steps;
    int64_t sent;    /* attempt at which it was last sent */
    int64_t version; /* writes of the anchor; -1: half written */
    char name[40];   /* key of codecs' state */
    tac_codec_part part;
    tac_codec_layout codec_layout;
} tac__fragment;

/* A delta under way, or its result waiting for its time. */
typedef struct tac__flight {
    int64_t active, fragment, sent;
    int64_t dropped, nobody; /* this rank's, everybody's delta left out */
    int64_t lost;            /* its exchange has failed */
    double lr;               /* inner, at sending */
    double own2;             /* |own delta|^2 */
    float *buf;
    size_t room;
    tac_req *req; /* NULL: complete */
} tac__flight;

typedef struct tac__level {
    tac_comm *data, *control;
    tac_codec *codec; /* NULL: none */
    int size;
    double samples, steps; /* totals at the last synchronisation (inner) */
    uint64_t bytes_logical, bytes_wire, bytes_control; /* before loading */
} tac__level;

/* Lengths of what merges need in staging. */
typedef struct tac__merges {
    size_t average, moments, max, counters; /* elements */
} tac__merges;

/* What a rank tells the others before a synchronisation. */
typedef struct tac__card {
    /* compared */
    uint64_t config, attempt, begin, length, place, syncs, elements;
    /* told */
    double samples, steps, lr, loss, attempt_s;
    double distance2, dot, own2; /* of the last outermost synchronisation */
} tac__card;

/* What the cards of one synchronisation say. */
typedef struct tac__told {
    double share; /* of this rank; shares add up to 1 */
    int uniform;  /* all ranks count alike: the average is enough */
    int dropped, nobody;
    double merge_share; /* the same of merged tensors, which nobody drops */
    int merge_uniform;
    double lr, loss, attempt_s;
} tac__told;

/* An attempt that is being taken. What has failed in it is tried again after
 * tac_localsgd_regroup. */
typedef struct tac__turn {
    int64_t open, ending; /* ending: tac_localsgd_finish's */
    int64_t next;         /* fragment that is to be looked at next */
    tac__due due;
    tac__told told; /* of fragment 0 at the outermost level */
    int has_told;
    int synced, outermost, inner, arrived;
    int64_t fragment, fragments; /* the last, how many */
} tac__turn;

struct tac_localsgd {
    tac_context *ctx;
    tac_comm *comm; /* the caller's */
    int rank, size;
    tac_localsgd_config config; /* codec is owned */
    tac_status failed;
    int opened, started, finished;

    tac__tensor *tensors;
    size_t n_tensors, room;
    size_t elements; /* of PARAM */
    int64_t layers;
    size_t *layer_elements;
    tac__fragment *fragments;
    int64_t n_fragments;
    tac__stretch *stretches;
    size_t n_stretches;
    tac__merges merges;

    float *anchor, *outer[TAC__OUTER_ARRAYS]; /* (elements), or NULL */
    int n_outer;
    float *own; /* (elements) EAGER: this rank's part of what is under way */
    float *staging; /* the largest fragment */
    float *merged;  /* average + moments + max */
    int64_t *counters;
    tac__flight *flights;
    int64_t n_flights;
    tac__card *cards; /* (size) */
    size_t bytes;     /* held */

    tac__level levels[TAC_LOCALSGD_LEVELS];
    int n_levels;
    tac__clock clock;
    uint64_t hash_config, hash_loaded; /* without `total` */
    uint64_t hash_all;                 /* with it, and tensors */
    tac__turn turn;
    int64_t done; /* synchronisations and arrivals of fragments, completed */

    /* since the beginning of the interval */
    double loss_sum, loss_count, busy_s;
    int64_t interval_attempts;
    double samples, steps;    /* totals */
    int64_t last_sync;        /* attempt */
    double step_ended;        /* clock, for the time of an attempt; 0: not */
    double interval_began;    /* clock, for deadlines */
    uint64_t mean_bytes;      /* of tac_localsgd_mean, which is not counted */
    tac_comm_op_stats before; /* what communicators before these have sent */
    double lr;                /* of the present attempt */
    tac_localsgd_stats stats;
    tac__card figures; /* distance2, dot, own2 to be told next */
};

/* layout.c. Once: fragments, stretches, memory. Errors: ARG, NOMEM. */
tac_status tac__lsgd_open(tac_localsgd *l);
void *tac__lsgd_alloc(tac_localsgd *l, size_t n, size_t size);
tac_status tac__lsgd_no_memory(const tac_localsgd *l, size_t bytes);

/* memory.c: how many deltas can be under way at once. */
int64_t tac__lsgd_flights(const tac_localsgd_config *c, int64_t fragments);

/* Collective failures end here: remembers the first. */
tac_status tac__lsgd_poison(tac_localsgd *l, tac_status s);

/* card.c. Collective on the level's ranks: compares and tells. `place` says
 * what is synchronised. */
enum { TAC__FRAGMENT_NONE = -1 }; /* finish */
tac_status tac__lsgd_cards(tac_localsgd *l, int level, int64_t fragment,
                           const tac__due *due, tac__told *out);
tac_status tac__lsgd_gather(tac_comm *comm, const void *send, void *recv,
                            size_t bytes);
/* Collective on the caller's communicator: the status and message of the lowest
 * rank that has failed, on all. */
tac_status tac__lsgd_agree(tac_localsgd *l, tac_status mine);
/* start.c, collective: configuration and tensors (and, LOADED, clocks, anchors
 * and outer state) are the same on all ranks; the levels' communicators; what
 * is frozen (VERIFY: everything) has the same bits. */
enum { TAC__START_REGROUP = TAC_START_LOADED + 1 };
tac_status tac__lsgd_compare(tac_localsgd *l, int how);
tac_status tac__lsgd_split(tac_localsgd *l);
tac_status tac__lsgd_verify(tac_localsgd *l, int how);
uint64_t tac__lsgd_hash_config(const tac_localsgd_config *c, int with_total);
/* Is the rank's delta left out of this synchronisation? */
int tac__lsgd_drops(const tac_localsgd_config *c, uint64_t sync,
                    int64_t fragment, int rank);

/* kernels.c. Buffers don't overlap, except that y may be x. */
void tac__copy_scaled(float *y, const float *x, float by, size_t n);
void tac__difference(float *y, const float *a, const float *x, float by,
                     size_t n); /* y = (a - x) * by */
/* x = alpha * x + (1 - alpha) * a; x = a for 0 */
void tac__mix(float *x, const float *a, float alpha, size_t n);
void tac__add_scaled(float *y, const float *x, float by, size_t n);
/* f32 sums of blocks, added in f64. */
double tac__sum_squares(const float *x, size_t n);
double tac__distance2(const float *x, const float *y, size_t n);
double tac__dot(const float *x, const float *y, size_t n);

/* outer.c: moves the fragment's anchor by the averaged delta. */
void tac__outer_step(tac_localsgd *l, tac__fragment *f, const float *delta,
                     double inner_lr);
int tac__outer_arrays(const tac_outer *o);

/* exchange.c: buf (fragment's n) becomes the ranks' average. src: read instead
 * of buf, or NULL. coded: with the level's codec. */
tac_status tac__exchange_begin(tac_localsgd *l, int level, tac__fragment *f,
                               const float *src, float *buf, int uniform,
                               int coded, tac_req **req);
tac_status tac__exchange(tac_localsgd *l, int level, tac__fragment *f,
                         const float *src, float *buf, int uniform, int coded);
tac_status tac__await(tac_localsgd *l, tac_req **req);

/* Copies and differences between stretches and a flat buffer of the fragment.
 */
void tac__gather_params(const tac_localsgd *l, const tac__fragment *f,
                        float *buf, float by);
void tac__gather_delta(const tac_localsgd *l, const tac__fragment *f,
                       float *buf, float by);
/* parameters = alpha * parameters + (1 - alpha) * values */
void tac__scatter(const tac_localsgd *l, const tac__fragment *f,
                  const float *values, double alpha);

/* sync.c */
tac_status tac__sync_fragment(tac_localsgd *l, int level, int64_t fragment,
                              const tac__due *due, tac__told *told);
/* flight.c */
int tac__is_whole(const tac_localsgd_config *c); /* a delay of one interval */
tac_status tac__flight_send(tac_localsgd *l, int64_t fragment,
                            const tac__told *told);
/* The same where results are one interval late: the fragment's old one is
 * applied between taking the new delta and sending it. */
tac_status tac__flight_exchange(tac_localsgd *l, int64_t fragment,
                                const tac__told *told);
/* The end: the fragment's old result, then the present delta. */
tac_status tac__flight_end(tac_localsgd *l, int64_t fragment,
                           const tac__told *told);
/* Applies those whose time has come (all: every one), counts them. */
tac_status tac__flights_arrive(tac_localsgd *l, int all, int *arrived);
/* Waits for it; a failure is noted. */
tac_status tac__flight_await(tac_localsgd *l, tac__flight *g);
/* Applies the fragment's, if there is one. */
tac_status tac__flight_arrive(tac_localsgd *l, int64_t fragment, int *arrived);
int tac__flights_due(const tac_localsgd *l, int64_t attempt);

/* step.c: goes on with the attempt that has failed half-way, if there is one.
 */
tac_status tac__turn_resume(tac_localsgd *l);

/* merge.c: exchange into staging; then write. */
tac_status tac__merge_exchange(tac_localsgd *l, int level,
                               const tac__told *told);
void tac__merge_write(tac_localsgd *l);

/* stats.c */
/* Before communicators are destroyed: what they have counted stays counted. */
void tac__stats_keep(tac_localsgd *l);
uint64_t tac__stats_wire(const tac_localsgd *l, int level);
uint64_t tac__stats_logical(const tac_localsgd *l, int level);
uint64_t tac__stats_control(const tac_localsgd *l, int level);
double tac__stats_wait(const tac_localsgd *l);
void tac__stats_figures(tac_localsgd *l, double distance2, double dot,
                        double own2, double norm2);

/* ---- other ranks ----------------------------------------------------------
 */

/* How far a rank has come. The ranks do the same in the same order, so of two
 * one is ahead in everything. */
typedef struct tac__progress {
    int64_t joins, attempts, done, versions;
} tac__progress;

/* regroup_adopt.c: everything that all ranks share becomes that of rank `lead`.
 * any_joins: some rank has nothing yet. */
tac_status tac__regroup_adopt(tac_localsgd *l, int lead, int any_joins,
                              tac_regroup *out);
/* regroup_flights.c: deltas under way that some rank has completely stay, on
 * all ranks. */
tac_status tac__regroup_flights(tac_localsgd *l, int lead, tac_regroup *out);
/* Collective: bytes of `data` from a rank. */
tac_status tac__regroup_send(tac_localsgd *l, int from, void *data,
                             size_t bytes);
/* regroup_codec.c: codecs for the new ranks, with what the old ones owe; then
 * the numbers of their calls, from rank `lead`. */
tac_status tac__regroup_codecs(tac_localsgd *l);
tac_status tac__regroup_calls(tac_localsgd *l, int lead);

#endif
