/* reducer_impl.h: what the reducer's files share. Private.
 *
 * reducer.c          create, destroy, hooks, questions
 * reducer_params.c   copies of the list and the configuration
 * reducer_assign.c   which parameters form which bucket (pure)
 * reducer_layout.c   where the buckets are in memory
 * reducer_adjacent.c the same in the caller's memory
 * reducer_verify.c   all ranks have the same list and configuration
 * reducer_memory.c   the arena and the memory of control messages
 * reducer_step.c     begin, ready, unused, finish
 * reducer_flight.c   what is under way: start, poll, wait, give up
 * reducer_codec.c    buckets through a codec or a cast
 * reducer_verdict.c  what a step's end tells all ranks; used maps
 * reducer_nan.c      the check for NaN
 * reducer_rebuild.c  the agreed rebuild
 * reducer_predict.c  bytes before they are sent
 * reducer_join.c     ranks that ran out of data
 * reducer_stats.c    times and counters */
#ifndef TACIT_REDUCER_IMPL_H
#define TACIT_REDUCER_IMPL_H

#include "tacit/codec.h"
#include "tacit/reducer.h"

enum { TAC__ARENA_ALIGN = 64, TAC__MISSING_SHOWN = 6 };

typedef enum tac__mark { TAC__ABSENT = 0, TAC__READY, TAC__UNUSED } tac__mark;

typedef struct tac__param {
    char *name;
    char shape[96]; /* "f32[128,784]" */
    uint64_t hash;  /* of name, shape, dtype */
    size_t count, bytes;
    tac_dtype dtype;
    int ndim;
    size_t *extents; /* (ndim), or NULL */
    char *grad;      /* where it is now */
    tac__mark mark;  /* in this step */
    int produced;    /* since the last step with sync */
    int kept;        /* `saved` holds this step's contents */
    void *saved;     /* contents of an unused gradient's place, or NULL */
} tac__param;

typedef struct tac__bucket {
    char *buffer;
    size_t place; /* of buffer in the reducer's own arena */
    size_t count; /* elements, padding included */
    tac_dtype dtype;
    size_t first, n_params; /* into members and offsets */
    size_t bytes;           /* of the parameters */
    size_t pending;         /* parameters that are neither ready nor unused */
    void *stream;
} tac__bucket;

/* All arrays are owned. */
typedef struct tac__layout {
    size_t n_buckets;
    tac__bucket *buckets;
    size_t *members;   /* (n) parameters, bucket after bucket */
    size_t *offsets;   /* (n) first element in the bucket, as members */
    size_t *bucket_of; /* (n) by parameter */
    size_t *place;     /* (n) by parameter: byte in the reducer's own arena */
    size_t bytes;      /* of that arena */
    size_t last;       /* last bucket with elements, or n_buckets */
    uint64_t hash;
} tac__layout;

/* What each rank tells all others at the end of a step. */
typedef struct tac__verdict {
    int64_t missing;                   /* parameters */
    int64_t first[TAC__MISSING_SHOWN]; /* their indices */
    int64_t nan_param, nan_index;      /* -1: none */
    int64_t nan_bucket;
} tac__verdict;

typedef enum tac__kind {
    TAC__KIND_BUCKET = 0,
    TAC__KIND_USED,
    TAC__KIND_VERDICT,
    TAC__KIND_JOIN
} tac__kind;

typedef struct tac__flight {
    tac__kind kind;
    size_t bucket;
    tac_req *req;
    uint64_t begin_ns;
} tac__flight;

/* What a rank tells at the begin of a step, if ranks may join. */
typedef struct tac__joined {
    double grad_scale; /* of a rank with data */
    int64_t joined;
} tac__joined;

/* Memory of control messages, in one piece that outlives a failed
 * communicator's use of it. */
typedef struct tac__control {
    void *block;
    tac__verdict *verdicts; /* (world) */
    int32_t *used;          /* (n) */
    tac__joined *joined;    /* (world) */
    int64_t *order;         /* (2 n + 1) */
} tac__control;

/* Where time goes. Running while buckets are under way. */
typedef struct tac__stopwatch {
    uint64_t last_ns;
    size_t in_flight; /* buckets */
    int inside;       /* the calling thread is in the reducer */
    int blocked;      /* and waits in finish */
    uint64_t comm_ns, exposed_ns, wait_ns;
} tac__stopwatch;

struct tac_reducer {
    tac_comm *comm;
    tac_context *ctx;
    int rank, world;
    tac_status status; /* the first final failure */

    tac__param *params;
    size_t n;
    tac_reducer_config config; /* limits: own copy */
    size_t *limits;
    int own_memory; /* gradients are in `arena` */
    void *arena;
    int arena_plain; /* from the process, not from the communicator */
    tac__layout layout;
    tac__control control;
    size_t *initial_bytes; /* bucket bytes before the rebuild */
    size_t initial_buckets;
    size_t *bucket_bytes; /* (n + 1) now */

    tac_reducer_hook_fn *hook;
    tac_reducer_done_fn *done;
    void *hook_state;

    tac_codec *codec;          /* borrowed, or NULL */
    int wire_dtype;            /* or TAC_WIRE_SAME */
    tac_codec_part *parts;     /* (n) as layout.members, empty ones left out */
    tac_codec_layout *layouts; /* (n) by bucket */

    int begun; /* some step has begun */
    int in_step, sync;
    double grad_scale;
    size_t next;     /* bucket to start */
    size_t resolved; /* parameters ready or unused */
    int tail_posted;
    size_t *order; /* (n) parameters as they were resolved */
    size_t *last_order;
    size_t n_last_order;
    int rebuild_due, rebuilt;

    uint64_t polled_ns;   /* when the flights were last looked at */
    tac__flight *flights; /* (n + 4), a queue of one step */
    size_t head, tail;

    int joined;                /* this rank has no data */
    unsigned char *was_joined; /* (world) at the last exchange */
    int last_joined;
    int all_joined;

    tac__stopwatch watch;
    tac_reducer_times now, step, total;
};

/* reducer_params.c */
tac_status tac__reducer_copy_params(tac_reducer *r,
                                    const tac_param_desc *params, size_t n);
tac_status tac__reducer_copy_config(tac_reducer *r,
                                    const tac_reducer_config *config);

/* reducer_layout.c. `order` NULL: the first layout. */
tac_status tac__layout_make(tac_reducer *r, const size_t *order,
                            tac__layout *out);
void tac__layout_free(tac__layout *layout);
/* Adds an empty bucket whose first member is `first`. */
tac__bucket *tac__layout_open(tac__layout *l, size_t first, tac_dtype dtype);
/* Points parameters and buckets into the reducer's own arena. */
void tac__layout_bind(tac_reducer *r, char *arena);
void tac__reducer_note_buckets(tac_reducer *r);

/* reducer_adjacent.c */
tac_status tac__layout_fill_theirs(tac_reducer *r, const tac_bucket_plan *plan,
                                   tac__layout *l);

/* reducer_verify.c. Collective; `mine` is this rank's own verdict so far. */
tac_status tac__reducer_verify(tac_reducer *r);

/* reducer_memory.c. Collective. */
tac_status tac__arena_alloc(tac_reducer *r, size_t bytes, void **out,
                            int *plain);
void tac__arena_free(tac_reducer *r, void *arena, int plain);
tac_status tac__control_alloc(tac_reducer *r);
void tac__control_free(tac_reducer *r);

/* reducer_step.c */
tac_status tac__step_begin(tac_reducer *r, int sync, double grad_scale);
tac_status tac__step_unused(tac_reducer *r, size_t i);
tac_status tac__step_finish(tac_reducer *r, int timeout_ms);

/* reducer_flight.c */
void tac__bucket_show(const tac_reducer *r, size_t b, tac_bucket_view *out);
tac_status tac__bucket_start(tac_reducer *r, size_t b);
void tac__flight_push(tac_reducer *r, tac__kind kind, size_t bucket,
                      tac_req *req);
tac_status tac__flight_poll(tac_reducer *r);
tac_status tac__flight_wait_all(tac_reducer *r, int timeout_ms);
/* Makes `s` the reducer's final status and gives up what is under way. */
tac_status tac__reducer_break(tac_reducer *r, tac_status s, const char *what);

/* reducer_codec.c */
tac_status tac__layouts_fill(tac_reducer *r);
/* Fills in what bucket b travels as; returns its bytes on the wire. */
size_t tac__bucket_encoding(tac_reducer *r, size_t b, tac_coll_opt *opt);
void tac__layouts_free(tac_reducer *r);

/* reducer_verdict.c */
void tac__verdict_clear(tac_reducer *r);
tac_status tac__verdict_post(tac_reducer *r);
tac_status tac__verdict_read(tac_reducer *r);
void tac__verdict_missing(tac_reducer *r);
void tac__used_fill(tac_reducer *r);
int tac__used_anywhere(const tac_reducer *r, size_t i);

/* reducer_nan.c. Element index of the first NaN, or count. */
size_t tac__first_nan(const void *data, size_t count, tac_dtype dtype);
void tac__bucket_check_nan(tac_reducer *r, size_t b);

/* reducer_rebuild.c. Collective. */
tac_status tac__reducer_rebuild(tac_reducer *r);

/* reducer_join.c */
tac_status tac__join_post(tac_reducer *r);
void tac__join_read(tac_reducer *r);

/* reducer_stats.c */
void tac__watch_enter(tac_reducer *r);
void tac__watch_leave(tac_reducer *r);
void tac__watch_tick(tac_reducer *r);
void tac__watch_post(tac_reducer *r);
void tac__watch_complete(tac_reducer *r, const tac__flight *f);
void tac__stats_close(tac_reducer *r);

#endif
