/* codec_impl.h: what the codecs' files share.
 *
 * codec.c            create, destroy, questions
 * codec_parse.c      specifications
 * codec_params.c     the parameters that are known
 * codec_state.c      arrangements: where residuals live
 * codec_visit.c      state for checkpoints, statistics
 * codec_wire.c       fp16, bf16, int8, fp4: one allreduce with a wire format
 * codec_topk.c       topk, with topk_record.c (what is sent of a parameter),
 *                    topk_levels.c (low bits), topk_bits.c, topk_select.c
 * codec_powersgd.c   powersgd, with powersgd_math.c
 * ../algs/codec_allreduce.c  the algorithm that runs them
 *
 * State is keyed by parameter. A call's buffer is an arrangement (set) of
 * parameters, and residuals lie in it as the elements lie in the buffer, so
 * that the loops run over whole buffers. When a parameter turns up in another
 * arrangement its residual moves there. */
#ifndef TACIT_COMM_CODEC_IMPL_H
#define TACIT_COMM_CODEC_IMPL_H

#include "codecs/codec_bytes.h"
#include "comm_impl.h"
#include "tacit/codec.h"

typedef struct tac__codec_method tac__codec_method;

typedef struct tac__codec_spec {
    const tac__codec_method *method;
    double fraction; /* topk */
    size_t rank;     /* powersgd */
    int feedback, stochastic;
    uint64_t seed, start;
    uint64_t warmup; /* topk */
    size_t min;      /* topk */
    unsigned bits;   /* topk: of a value */
    size_t chunk;    /* topk; 0: none */
    double min_rate;
} tac__codec_spec;

/* Error feedback has two copies of everything: the present one, and the one
 * that is written and becomes the present one if the result is finite. */
typedef struct tac__lost {
    float *old, *next;
} tac__lost;

/* Of a parameter: columns are all extents but the first; 1-d: (count, 1). */
typedef struct tac__extents {
    size_t count, rows, columns;
} tac__extents;

typedef struct tac__codec_set tac__codec_set;

typedef struct tac__codec_param {
    char *name;
    size_t count;
    size_t rows, columns; /* 1-d: count, 1 */
    uint64_t calls;
    tac__codec_set *home; /* where its residuals are, from element `at` on */
    size_t at;
    float *residual, *result; /* without a home: what was loaded; or NULL */
    float *q;                 /* powersgd: (rank, columns), or NULL */
} tac__codec_param;

typedef struct tac__codec_place {
    tac__codec_param *param;
    size_t at;
} tac__codec_place;

struct tac__codec_set {
    tac__codec_set *next;
    size_t count, n;
    tac__codec_place *places; /* (n) */
    uint64_t hash;
    int agreed;             /* all ranks have the same */
    tac__lost lost, result; /* (count) each */
    /* The method's own. */
    float *values; /* topk: what is sent; powersgd: P, whole parameters */
    float *sums;   /* powersgd: Q */
    char *all;     /* topk: what all ranks sent */
    size_t n_values, n_sums;
    size_t held; /* bytes of all of it */
};

/* What all ranks compare. */
typedef struct tac__codec_card {
    uint64_t spec, set, calls, count;
    char text[128];
} tac__codec_card;

struct tac_codec {
    tac_context *ctx;
    tac__codec_spec spec;
    char text[128];
    tac__codec_param **params; /* sorted by name */
    size_t n_params, room;
    tac__codec_set *sets;   /* the latest first */
    tac__codec_card *cards; /* (size + 1), the last is this rank's */
    tac_req inner;
    int in_use; /* a failed communicator may still write to messages */
    tac_codec_stats stats;
};

/* How a kind of codec works. */
struct tac__codec_method {
    const char *name, *doc;
    const char *argument;  /* "F", or NULL: none */
    const char *options;   /* beside ef, noef and start, separated by spaces */
    int feedback;          /* by default */
    int own_feedback;      /* works in lost.next also without feedback */
    int keeps_result;      /* the sum is encoded, too */
    uint64_t start;        /* by default */
    const tac__wire *wire; /* or NULL */
    /* Bytes sent of one parameter in its `call`-th call since the codec began
     * (where there is no wire). */
    size_t (*bytes)(const tac__codec_spec *spec, const tac__extents *e,
                    uint64_t call);
    /* Bytes that `open` allocates for a parameter on `size` ranks; NULL: none.
     */
    size_t (*room)(const tac__codec_spec *spec, const tac__extents *e,
                   int size);
    /* Allocates what a new arrangement needs on `size` ranks. */
    tac_status (*open)(tac_codec *c, tac__codec_set *set, int size);
    /* Goes on from req->turn: INPROGRESS after tac__inner_begin, OK when the
     * result is in the destination. */
    tac_status (*step)(tac_req *req);
    /* The result was finite. May be NULL. */
    void (*commit)(tac_codec *c, tac__codec_set *set);
};

extern const tac__codec_method tac__codec_fp16, tac__codec_bf16,
    tac__codec_int8, tac__codec_fp4, tac__codec_topk, tac__codec_powersgd;
/* NULL-terminated. */
extern const tac__codec_method *const tac__codec_methods[];

/* codec_parse.c. Errors: ARG, reported. */
tac_status tac__codec_parse(tac_context *ctx, const char *text,
                            tac__codec_spec *out);
void tac__codec_print(const tac__codec_spec *spec, char *buf, size_t bytes);

/* codec_params.c. Finds; finds or adds. ARG, kept but not logged, if the
 * parameter is known with another count. */
tac__codec_param *tac__codec_find(const tac_codec *c, const char *name);
tac_status tac__codec_know(tac_codec *c, const tac_codec_part *part,
                           tac__codec_param **out);
tac_status tac__codec_no_memory(const tac_codec *c, const char *what);

/* codec.c */
/* What ranks compare before the first call; by itself in a function, as it is
 * left to a communicator that failed (in_use) and leak checkers are told so. */
tac_status tac__codec_make_cards(tac_codec *c, int size);

/* codec_state.c */
/* The arrangement of a request, made if it is new, with all residuals in it.
 * ARG is kept in the context but not logged. */
tac_status tac__codec_arrange(tac_req *req, tac__codec_set **out);
/* A layout of one part for a call that gives none; `name` has 32 bytes. */
tac_codec_layout tac__codec_single(tac_codec_part *part, size_t count,
                                   uint64_t tag, char *name);
/* Calls that all parameters of an arrangement have seen. */
uint64_t tac__codec_calls(const tac__codec_set *set);
void tac__codec_free_state(tac_codec *c);

/* codec.c. In the `call`-th call since the codec began. */
size_t tac__codec_bytes(const tac_codec *c, size_t count,
                        const tac_codec_layout *layout, uint64_t call);

/* codec_wire.c: x * prescale + scale * old in set->lost.next. */
void tac__codec_prepare(const tac_req *req, tac__codec_set *set);
float tac__codec_scale(const tac_req *req);
/* A request for the whole buffer, as the caller asked. */
tac_req tac__codec_inner_like(const tac_req *req);

/* codec_powersgd.c: the rank at which a matrix is compressed (0: it is sent as
 * it is), and its warm start, made if there is none. */
size_t tac__powersgd_rank(const tac__codec_spec *spec, size_t rows,
                          size_t columns);
tac_status tac__powersgd_warm(tac_codec *c, tac__codec_param *p);

/* powersgd_math.c: makes n vectors of `length` orthonormal, one after the
 * other; those that vanish are given to `renew`, once, or become 0 (NULL). */
typedef void tac__renew_fn(void *arg, size_t which, float *v, size_t length);
void tac__orthonormalise(float *v, size_t n, size_t length,
                         tac__renew_fn *renew, void *arg);

#endif
