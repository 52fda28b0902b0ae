/* experiment_logistic_worker.h: one worker of logistic_train. */
#ifndef EXPERIMENT_LOGISTIC_WORKER_H
#define EXPERIMENT_LOGISTIC_WORKER_H

#include <pthread.h>

#include "experiment_logistic.h"
#include "tacit/localsgd.h"

typedef struct logistic_worker {
    const logistic_run *r;
    logistic_outcome *out; /* rank 0's alone */
    tac_thread_group *group;
    pthread_t thread;
    int rank;
    tac_comm *comm;
    tac_localsgd *l;
    size_t from, to;    /* rows that it draws from */
    float *x;           /* (d) what localsgd averages: the iterate - start */
    double *wide;       /* (d) the iterate in f64 */
    double *gradient;   /* (d) */
    double *sum;        /* (d) of t^2 x_t */
    double *look, *old; /* (d) what the last looks saw */
    double weight;      /* sum of t^2 */
    double last_gap;
    int64_t last_look, next_look;
    size_t cap_looks;
    tac_status status;
} logistic_worker;

/* Start of a coordinate: parameters of localsgd are f32, and as differences
 * from the start they tell iterates apart that lie as near to each other as
 * those of E2. */
double logistic_origin(const logistic_run *r, size_t j);
/* When to look after step t; step 0: before the first. */
void logistic_plan_look(logistic_worker *w, int64_t t);
/* Collective: what the iterate is worth, kept by rank 0. *stop becomes 1 on all
 * workers or none: they see the same bits. */
tac_status logistic_look_now(logistic_worker *w, int64_t t, int *stop);

#endif
