/* comm_bench.h: what the parts of comm_bench share.
 *
 * A rank's bench has the communicator that is measured and, apart from it, a
 * group: the same ranks as seen by the launcher, with a barrier that is neither
 * side's and a way to compare notes after a measurement. */
#ifndef TAC_BENCH_COMM_BENCH_H
#define TAC_BENCH_COMM_BENCH_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "tacit/codec.h"
#include "tacit/comm.h"
#include "tacit/json.h"
#include "tacit/options.h"

/* ---- options (comm_options.c, comm_plan.c)
 * ----------------------------------------------
 */

typedef struct tac__comm_options {
    const char *op, *dtype, *redop, *sizes, *counts, *in_place;
    uint64_t min, max;
    int64_t factor;
    const char *wire, *memory, *algorithm, *algorithms, *tune_file;
    const char *transport, *emulate, *progress;
    int64_t ranks, timeout_s;
    int allow_singleton;
    int deterministic;
    const char *baseline;
    int check, corrupt;
    int64_t iters, warmup, rotate_mib;
    double seconds, link_gbs;
    const char *replay, *compute, *compute_ms;
    double bucket_mb, first_bucket_mb;
    int64_t split_embedding;
    const char *tune;
    const char *json, *svg, *dump, *config;
    int quiet;
} tac__comm_options;

extern const tac_option tac__comm_table[];

/* Sets of things named in lists, by bit. */
enum { TAC__IN_PLACE = 1, TAC__OUT_OF_PLACE = 2 };

/* The options as the program uses them. */
typedef struct tac__comm_plan {
    tac_coll colls[TAC_COLL_COUNT];
    tac_dtype dtypes[TAC_DTYPE_COUNT];
    tac_op ops[TAC_OP_COUNT];
    size_t n_colls, n_dtypes, n_ops;
    unsigned places; /* TAC__IN_PLACE | TAC__OUT_OF_PLACE */
    size_t *sizes;   /* bytes, or elements if `in_elements` */
    size_t n_sizes;
    int in_elements;
    int symmetric;
    int wire_dtype;    /* TAC_WIRE_SAME, TAC_F16, TAC_BF16 */
    const char *codec; /* specification; NULL: none */
} tac__comm_plan;

/* Errors: CONFIG, naming the option. */
tac_status tac__comm_plan_make(tac_context *ctx, const tac__comm_options *o,
                               tac__comm_plan *out);
void tac__comm_plan_free(tac__comm_plan *p);

/* ---- the ranks (comm_threads.c, comm_mpi_world.c) --------------------------
 */

/* One measured operation. */
typedef struct tac__case {
    tac_coll coll;
    tac_dtype dtype;
    tac_op op;
    int in_place;
    size_t bytes, count; /* the field's size: of the whole buffer */
    size_t part;         /* elements a rank for reduce_scatter, allgather */
} tac__case;

/* Runs the same operation by another library; 0: done. */
typedef int tac__baseline_fn(void *state, const tac__case *k, const void *src,
                             void *dst);

typedef struct tac__group {
    int rank, size;
    int here, cpus; /* ranks of this host, and the CPUs that they may use */
    int same_clock; /* all ranks are on one host */
    void *state;
    void (*barrier)(void *state);
    /* Element by element over all ranks, in place; on all of them. */
    void (*max)(void *state, double *x, size_t n);
    void (*sum)(void *state, double *x, size_t n);
    /* One more communicator over the same ranks; collective. */
    tac_status (*connect)(void *state, tac_context *ctx,
                          const tac_comm_config *config, tac_comm **out);
    const char *baseline_name; /* "Open MPI v4.1.4"; NULL: there is none */
    int (*can)(const tac__case *k);
    tac__baseline_fn *baseline;
} tac__group;

typedef struct tac__comm_bench tac__comm_bench;
typedef tac_status tac__bench_main(tac__comm_bench *b);

/* Makes the ranks, each with a context and a communicator, and runs `main` on
 * all of them. `parsed` is how reading the options went. Returns the process's
 * exit code. */
typedef struct tac__bench_start {
    const tac__comm_options *opt;
    const tac__comm_plan *plan;
    tac_status parsed;
    const char *message; /* of a failure */
    tac_options_action action;
    const tac_options *options;
    const volatile sig_atomic_t *stop;
    tac__bench_main *main;
    int told;  /* ranks that a launcher says to have started; 0: none */
    int first; /* of these */
} tac__bench_start;
int tac__bench_threads(const tac__bench_start *s);
int tac__bench_mpi(const tac__bench_start *s);
/* Seconds that a rank may wait outside the library: more than inside, so that
 * the library's message, which knows more, comes first. */
int64_t tac__bench_patience(const tac__bench_start *s);
/* Shared by both. */
int tac__bench_exit_code(tac_status s);
tac_status tac__bench_creation(tac_status s);
void tac__bench_print(const tac__bench_start *s);
tac_status tac__bench_rank(const tac__bench_start *s, tac__comm_bench *b);
tac_comm_config tac__bench_comm_config(const tac__comm_options *o);

/* ---- one rank --------------------------------------------------------------
 */

/* Memory through which one side rotates (comm_arena.c). */
typedef struct tac__arena {
    char *base;
    size_t bytes;
    tac_comm *comm; /* symmetric memory of it; NULL: malloc */
    size_t next;    /* set to be used next */
    size_t passes;  /* over all sets since the last fill */
} tac__arena;

struct tac__comm_bench {
    const tac__comm_options *opt;
    const tac__comm_plan *plan;
    const volatile sig_atomic_t *stop;
    tac__group group;
    tac_context *ctx;
    tac_comm *comm;
    tac_codec *codec; /* NULL: none */
    tac__arena ours, theirs;
    struct tac__row *rows; /* on rank 0 */
    size_t n_rows, room_rows;
    int oversubscribed, speaks;
};

enum { TAC__ALGORITHM = 32 }; /* bytes of a name */

/* One line of the table. Times in microseconds; NaN: not measured. */
typedef struct tac__row {
    tac__case k;
    size_t iters;
    double time_us, p99_us, algbw, busbw; /* GB/s, 1e9 bytes */
    double wrong;                         /* elements over all ranks; NaN */
    double baseline_us, baseline_p99_us, ratio;
    double floor_us, floor_ratio;
    double bytes_wire;          /* a rank's contribution, encoded */
    double bytes_between_hosts; /* really sent, all ranks, one operation */
    char algorithm[TAC__ALGORITHM];
} tac__row;

/* A new codec, without a past; from the plan, if it has one. */
tac_status tac__bench_codec(tac__comm_bench *b);
/* A verdict for all: the worst status over the ranks. */
tac_status tac__bench_agree(tac__comm_bench *b, tac_status mine);
/* Has somebody pressed Ctrl-C? The same answer on all ranks. */
int tac__bench_stopped(tac__comm_bench *b);

/* Pages are touched. Errors: NOMEM, agreed. */
tac_status tac__arena_open(tac__comm_bench *b, tac__arena *a, size_t bytes,
                           int symmetric);
void tac__arena_close(tac__arena *a);
/* Ordinary numbers of the type everywhere. */
void tac__arena_fill(tac__arena *a, tac_dtype dtype, int rank);
/* The next set of buffers for this operation; in place: src == dst or the
 * block that the operation's rule for in place names. */
typedef struct tac__set {
    char *src, *dst;
    size_t src_bytes, dst_bytes;
} tac__set;
tac__set tac__arena_next(tac__arena *a, const tac__case *k, int rank, int size);
/* Bytes that one set takes. */
size_t tac__arena_set_bytes(const tac__case *k, int size);

/* The operation through our library, complete on return (comm_ours.c). */
tac_status tac__ours_run(tac__comm_bench *b, const tac__case *k,
                         const tac__set *set);

/* Exact inputs, poisoned output, every element verified (comm_check.c). *wrong:
 * elements over all ranks. */
tac_status tac__check(tac__comm_bench *b, const tac__case *k, double *wrong);

/* Times both sides and the floor, interleaved (comm_time.c). Fills `row`; the
 * same on all ranks. */
tac_status tac__measure(tac__comm_bench *b, const tac__case *k, tac__row *row);

/* What the last operation of that kind ran as; for rank 0 (comm_algorithm.c).
 */
void tac__last_algorithm(const tac__comm_bench *b, tac_coll coll,
                         char out[TAC__ALGORITHM]);

/* All cases, one after the other (comm_sweep.c). */
tac_status tac__sweep(tac__comm_bench *b);
/* comm_replay.c, comm_tune.c: the other two modes. */
tac_status tac__replay(tac__comm_bench *b);
tac_status tac__tune(tac__comm_bench *b);

/* comm_print.c: rank 0 alone. */
void tac__print_head(const tac__comm_bench *b);
void tac__print_row(const tac__comm_bench *b, const tac__row *row);
void tac__print_foot(const tac__comm_bench *b);
/* "4K", "16M", "17": bytes as --min takes them. */
const char *tac__size_text(size_t bytes, char text[24]);
/* comm_json.c: all rows so far; replaces the file, so that an interrupted run
 * leaves what it had. */
tac_status tac__write_rows(tac__comm_bench *b);
/* comm_picture.c: size against time. */
tac_status tac__write_picture(tac__comm_bench *b);

#endif
