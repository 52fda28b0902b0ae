/* comm_tune.h: what measuring the cost model and judging it share. */
#ifndef TAC_BENCH_COMM_TUNE_H
#define TAC_BENCH_COMM_TUNE_H

#include "comm_bench.h"

enum { TAC__TUNE_ROUNDS = 21, TAC__TUNE_BYTES = 1 << 24 };

typedef struct tac__level {
    const char *name;
    double alpha, beta; /* NaN: not measured */
} tac__level;

typedef struct tac__tuning {
    tac__comm_bench *b;
    char *buffer; /* [TAC__TUNE_BYTES] twice */
    tac__level shared, local, network;
    double gamma;
} tac__tuning;

/* Median over rounds (at most TAC__TUNE_ROUNDS) of the slowest rank's time of
 * an allreduce of f32 in t->buffer; NaN where the algorithm can't do it. */
tac_status tac__tune_time(tac__tuning *t, const char *algorithm, size_t bytes,
                          int rounds, double *seconds);
/* Prints, for each size, what a communicator that has read the file chooses
 * and what is fastest. */
tac_status tac__tune_compare(tac__tuning *t);

#endif
