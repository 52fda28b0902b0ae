/* engine_bench.h: what the parts of engine_bench share. */
#ifndef TAC_BENCH_ENGINE_BENCH_H
#define TAC_BENCH_ENGINE_BENCH_H

#include <stdint.h>

#include "tacit/device.h"
#include "tacit/json.h"
#include "tacit/kernels.h"

typedef struct tac__bench_options {
    int ops, optimizers, small;
    const char *model, *precision, *optimizer, *json, *config;
    int64_t batch, threads, steps, seed;
    double seconds; /* of each measurement but the model's */
    int quiet;
} tac__bench_options;

/* One run of the program. */
typedef struct tac__bench {
    const tac__bench_options *opt;
    tac_context *ctx;
    tac_device *dev;
    const tac_kernels *k; /* f32 */
    tac_kctx kc;
    tac_json *json;
} tac__bench;

/* The machine's limits with the bench's threads. */
typedef struct tac__peaks {
    double gflops;      /* best square product of f32 matrices */
    size_t n;           /* its size */
    const char *method; /* how it was threaded */
    double bf16_gflops; /* best square product of bf16 matrices; 0: not asked */
    double copy_gbs;    /* memcpy, reads and writes counted */
    double update_gbs;  /* x += y, reads and writes counted */
} tac__peaks;

/* Matrix products of n = 512, 1024, 2048, each by our pool and by oneDNN's own
 * team, and if `bf16` of bf16 matrices by our pool. Measured in rounds, so that
 * they can be interleaved with what they are compared with. */
typedef struct tac__peak_meter tac__peak_meter;
tac_status tac__peak_create(tac__bench *b, size_t rounds, int bf16,
                            tac__peak_meter **out);
void tac__peak_destroy(tac__peak_meter *m); /* NULL is legal */
tac_status tac__peak_round(tac__peak_meter *m);
/* Best of the medians over the rounds so far. */
void tac__peak_result(tac__peak_meter *m, tac__peaks *out);
/* Copy and update bandwidth with `bytes` an array. */
tac_status tac__peak_bandwidth(tac__bench *b, size_t bytes, tac__peaks *out);

/* Device memory of n floats, random in (-0.5, 0.5) times `scale`. */
tac_status tac__bench_floats(tac__bench *b, size_t n, float scale, float **out);
/* The same as elements of f32, f16 or bf16. */
tac_status tac__bench_values(tac__bench *b, tac_dtype type, size_t n,
                             float scale, void **out);
void tac__bench_free(tac__bench *b, void *p);

/* Splits the option: *n names, at most TAC__PRECISIONS, in `text`, which has
 * room for the option and is changed. Errors: ARG. */
enum { TAC__PRECISIONS = 8 };
tac_status tac__bench_precisions(tac__bench *b, char *text,
                                 const char *names[TAC__PRECISIONS], size_t *n);

/* The modes; each prints and fills the JSON object that is open. */
tac_status tac__bench_model(tac__bench *b);
tac_status tac__bench_ops(tac__bench *b);
tac_status tac__bench_optimizers(tac__bench *b);

#endif
