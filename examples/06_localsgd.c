/* 06_localsgd.c: local SGD in a trainer of one's own, over comm/ alone.
 *
 *     06_localsgd [WORKERS [H]]        default: 4 workers, H = 16
 *
 * A softmax regression, written by hand, learns made-up data. The workers are
 * threads of this process. In every step each takes its share of a batch of 64
 * and follows its own gradient; after H steps the copies of the model are
 * averaged. With H = 1 that is the same as one worker with the whole batch:
 * compare `06_localsgd 1 1` with `06_localsgd 4 1`, to the last digit but one.
 * With H = 16 a sixteenth of the bytes is sent, for nearly the same model.
 *
 * The lines that matter are in train(). To run the workers on several machines,
 * get the communicator from tac_comm_create_mpi (tacit/comm_mpi.h) or
 * tac_comm_create_oob instead of tac_comm_create_threads. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacit/localsgd.h"
#include "tacit/rng.h"

enum { CLASSES = 5, FEATURES = 20, BATCH = 64, STEPS = 320, TESTS = 2000 };
enum { MAX_WORKERS = 64 }; /* as many as a batch has samples */
static const double RATE = 0.1;

/* The model: one score a class. Plain arrays, wherever they lie. */
typedef struct model {
    float weight[CLASSES][FEATURES], bias[CLASSES];
} model;

/* Sample i of an endless sequence: the middle of its class, plus noise. A pure
 * function of i, so that no worker has to send data to another. */
static int sample(uint64_t i, float x[FEATURES])
{
    const tac_rng_key middle = {1, TAC_STREAM_USER, 0};
    const tac_rng_key noise = {1, TAC_STREAM_USER + 1, i};
    const int y = (int)(i % CLASSES);
    for (int f = 0; f < FEATURES; f++)
        x[f] = (float)(tac_rng_normal(&middle, (uint64_t)(y * FEATURES + f)) +
                       2 * tac_rng_normal(&noise, (uint64_t)f));
    return y;
}

/* Probabilities of the classes. */
static void predict(const model *m, const float x[FEATURES], double p[CLASSES])
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        double score = m->bias[c];
        for (int f = 0; f < FEATURES; f++)
            score += (double)m->weight[c][f] * x[f];
        sum += p[c] = exp(score);
    }
    for (int c = 0; c < CLASSES; c++) p[c] /= sum;
}

/* One step of plain SGD on samples [first, end); returns their mean loss. */
static double descend(model *m, uint64_t first, uint64_t end)
{
    model g = {0};
    double loss = 0;
    const double n = (double)(end - first);
    for (uint64_t i = first; i < end; i++) {
        float x[FEATURES];
        double p[CLASSES];
        const int y = sample(i, x);
        predict(m, x, p);
        loss -= log(p[y]) / n;
        for (int c = 0; c < CLASSES; c++) {
            const float d = (float)((p[c] - (c == y)) / n);
            for (int f = 0; f < FEATURES; f++) g.weight[c][f] += d * x[f];
            g.bias[c] += d;
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        for (int f = 0; f < FEATURES; f++)
            m->weight[c][f] -= (float)RATE * g.weight[c][f];
        m->bias[c] -= (float)RATE * g.bias[c];
    }
    return loss;
}

/* What one worker does. It owns its model; localsgd changes it in place. */
static tac_status train(tac_comm *comm, int64_t h, model *m,
                        tac_localsgd_stats *stats)
{
    const uint64_t rank = (uint64_t)tac_comm_rank(comm);
    const uint64_t size = (uint64_t)tac_comm_size(comm);
    tac_localsgd_config config;
    tac_localsgd *l = NULL;

    /* 1. How replicas talk: "local" is plain averaging every h steps; "slowmo",
     * "diloco" and "streaming" are there, too (docs/localsgd.md). Knowing the
     * number of steps, it averages after the last one whatever h is. */
    TAC_TRY(tac_localsgd_preset(tac_comm_context(comm), "local", h, &config));
    config.total = STEPS;
    config.weighting = TAC_WEIGHT_SAMPLES; /* shares of a batch may differ */
    TAC_TRY(tac_localsgd_create(comm, &config, &l));

    /* 2. What is kept together: each array of parameters, once. */
    tac_status s = tac_localsgd_add(
        l, &(tac_localsgd_tensor){.name = "weight",
                                  .count = (size_t)CLASSES * FEATURES,
                                  .data = m->weight,
                                  .layer = -1});
    if (s >= 0)
        s = tac_localsgd_add(l, &(tac_localsgd_tensor){.name = "bias",
                                                       .count = CLASSES,
                                                       .data = m->bias,
                                                       .layer = -1});

    /* 3. All begin with worker 0's values. */
    if (s >= 0) s = tac_localsgd_start(l, TAC_START_BROADCAST);

    /* 4. Train. After each step localsgd is told that there was one: it counts,
     * and when h are done it waits for the others and averages. */
    for (uint64_t step = 0; s >= 0 && step < STEPS; step++) {
        const uint64_t first = step * BATCH + BATCH * rank / size;
        const uint64_t end = step * BATCH + BATCH * (rank + 1) / size;
        const double loss = descend(m, first, end);
        s = tac_localsgd_step(
            l,
            &(tac_local_step){
                .lr = RATE, .loss = loss, .samples = (double)(end - first)},
            NULL);
    }

    /* 5. The end is synchronised: every worker has the same model. */
    if (s >= 0) s = tac_localsgd_finish(l);
    tac_localsgd_stats_get(l, stats);
    tac_localsgd_destroy(l);
    return s;
}

/* ---- workers as threads ---------------------------------------------------
 */

typedef struct worker {
    pthread_t thread;
    tac_thread_group *group;
    int rank, size;
    int64_t h;
    model m;
    tac_localsgd_stats stats;
    tac_status status;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    config.rank = w->rank;
    config.world = config.local_ranks = w->size;
    w->status = tac_context_create(&config, &ctx);
    if (w->status >= 0)
        w->status =
            tac_comm_create_threads(ctx, w->group, w->rank, NULL, &comm);
    if (w->status >= 0) w->status = train(comm, w->h, &w->m, &w->stats);
    tac_comm_destroy(comm); /* NULL is legal */
    tac_context_destroy(ctx);
    return NULL;
}

/* Loss and accuracy on samples that training never reaches. */
static void report(const worker *w)
{
    double loss = 0;
    int right = 0;
    for (uint64_t i = 0; i < TESTS; i++) {
        float x[FEATURES];
        double p[CLASSES];
        const int y = sample((uint64_t)STEPS * BATCH + i, x);
        int best = 0;
        predict(&w->m, x, p);
        for (int c = 1; c < CLASSES; c++)
            if (p[c] > p[best]) best = c;
        loss -= log(p[y]) / TESTS;
        right += best == y;
    }
    printf("%d workers, H = %lld: %d steps, %lld synchronisations, %llu bytes "
           "a worker; test loss %.6f, accuracy %.2f %%\n",
           w->size, (long long)w->h, STEPS, (long long)w->stats.syncs,
           (unsigned long long)w->stats.bytes_wire, loss,
           100.0 * right / TESTS);
}

int main(int argc, char **argv)
{
    static worker workers[MAX_WORKERS]; /* models begin at zero */
    tac_thread_group *group = NULL;
    const int size = argc > 1 ? atoi(argv[1]) : 4;
    const int64_t h = argc > 2 ? atoll(argv[2]) : 16;
    if (argc > 3 || size < 1 || size > MAX_WORKERS || h < 1) {
        fprintf(stderr, "usage: %s [WORKERS [H]], 1 to %d workers, H from 1\n",
                argv[0], MAX_WORKERS);
        return 2;
    }
    if (tac_thread_group_create(size, &group) < 0) return 1;
    for (int r = 0; r < size; r++) {
        workers[r] = (worker){.group = group, .rank = r, .size = size, .h = h};
        if (pthread_create(&workers[r].thread, NULL, work, &workers[r]) != 0) {
            perror("pthread_create");
            exit(1); /* the others would wait for it */
        }
    }
    for (int r = 0; r < size; r++) pthread_join(workers[r].thread, NULL);
    tac_thread_group_destroy(group);
    for (int r = 0; r < size; r++)
        if (workers[r].status < 0) return 1; /* the message was logged */
    report(&workers[0]);
    return 0;
}
