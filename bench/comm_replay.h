/* comm_replay.h: a training step as communication sees it: tensors, and when
 * their gradients become final. */
#ifndef TAC_BENCH_COMM_REPLAY_H
#define TAC_BENCH_COMM_REPLAY_H

#include "comm_bench.h"

typedef struct tac__replay_tensor {
    char *name;
    size_t bytes;    /* of f32 elements */
    size_t rows;     /* of the matrix that it is; 0: none, or not known */
    double ready_us; /* of backward's compute */
} tac__replay_tensor;

/* Tensors are in the order in which they become ready. */
typedef struct tac__replay_step {
    const char *source; /* "gpt2-124M" or the file, borrowed */
    double forward_us, backward_us, update_us;
    int timed; /* 0: only the shares of backward are known */
    size_t n;
    tac__replay_tensor *tensor;
} tac__replay_step;

/* The built-in one, or a file (comm_replay_file.c says how it looks).
 * `late_bytes`: of the built-in one's embedding only so many bytes are ready
 * last, and the rest first; 0: all of it is ready last. Errors: CONFIG, DATA,
 * naming file and line; NOMEM. */
tac_status tac__replay_load(tac_context *ctx, const char *source,
                            size_t late_bytes, tac__replay_step *out);
tac_status tac__replay_gpt2(tac_context *ctx, size_t late_bytes,
                            tac__replay_step *out);
tac_status tac__replay_read(tac_context *ctx, const char *path,
                            tac__replay_step *out);
void tac__replay_free(tac__replay_step *s);
/* Appends; the name is copied. Errors: NOMEM. */
tac_status tac__replay_add(tac_context *ctx, tac__replay_step *s,
                           const tac__replay_tensor *t);

/* What a replay amounts to; times in microseconds. */
typedef struct tac__replay_result {
    size_t steps, buckets;
    double compute_us, total_us, comm_us, exposed_us, bound_us;
    double bytes_logical, bytes_wire; /* of a rank and step */
    double bytes_between_hosts;       /* of all ranks, a step */
} tac__replay_result;

/* The least exposure that the ready times allow: buckets are reduced in their
 * order, each from max(its readiness, the end of the one before). */
double tac__replay_bound(const double *ready_us, const double *bucket_us,
                         size_t buckets, double backward_us);

/* comm_replay_report.c */
void tac__replay_print(const tac__comm_bench *b, const tac__replay_step *s,
                       const tac__replay_result *r);
tac_status tac__replay_write(tac__comm_bench *b, const tac__replay_step *s,
                             const tac__replay_result *r);

#endif
