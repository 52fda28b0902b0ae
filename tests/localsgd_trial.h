/* localsgd_trial.h: replicas with parameters, for tests of localsgd/.
 *
 * A trial is one rank's model: parameters as tensors with gaps between them
 * (or side by side), trained by a function of the test. Every rank can compute
 * what any other does, so results are compared with simulations in f64, or bit
 * by bit with other runs. */
#ifndef LOCALSGD_TRIAL_H
#define LOCALSGD_TRIAL_H

#include <stdlib.h>

#include "comm_threads.h"
#include "tacit/hash.h"
#include "tacit/localsgd.h"
#include "tacit/rng.h"

enum { TRIAL_TENSORS = 6 };

/* Odd, empty and single; 0 elements in all: 1 + 0 + 17 + 300 + 5 + 64. */
static const size_t trial_counts[TRIAL_TENSORS] = {1, 0, 17, 300, 5, 64};
enum { TRIAL_N = 387 };

typedef struct trial {
    tac_comm *comm;
    int rank, size;
    tac_localsgd *l;
    float *memory;
    float *p[TRIAL_TENSORS];
    int64_t attempts;
} trial;

static inline float trial_random(uint64_t stream, int rank, int64_t attempt,
                                 size_t i)
{
    const tac_rng_key key = {stream, TAC_STREAM_USER + (uint32_t)rank,
                             (uint64_t)attempt};
    return (float)tac_rng_uniform(&key, i) * 2 - 1;
}

/* Parameters begin at random, the same on all ranks, with poison between. */
static inline void trial_memory(trial *t, int gap)
{
    size_t at = 0, k = 0;
    t->memory = malloc((TRIAL_N + 64) * sizeof(float));
    for (size_t i = 0; i < TRIAL_N + 64; i++) t->memory[i] = NAN;
    for (int i = 0; i < TRIAL_TENSORS; i++) {
        t->p[i] = t->memory + at;
        for (size_t j = 0; j < trial_counts[i]; j++)
            t->p[i][j] = trial_random(7, 0, 0, k++);
        at += trial_counts[i] + (size_t)gap;
    }
}

static inline void trial_add(trial *t, const int64_t *layers)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < TRIAL_TENSORS; i++)
        CHECK_OK(tac_localsgd_add(
            t->l, &(tac_localsgd_tensor){.name = names[i],
                                         .dtype = TAC_F32,
                                         .count = trial_counts[i],
                                         .data = t->p[i],
                                         .layer = layers ? layers[i] : -1}));
}

/* Not started. */
static inline int trial_open(trial *t, tac_comm *comm,
                             const tac_localsgd_config *c, int gap)
{
    *t = (trial){
        .comm = comm, .rank = tac_comm_rank(comm), .size = tac_comm_size(comm)};
    trial_memory(t, gap);
    if (!CHECK_OK(tac_localsgd_create(comm, c, &t->l))) return 0;
    trial_add(t, NULL);
    return 1;
}

static inline int trial_start(trial *t, tac_comm *comm,
                              const tac_localsgd_config *c, int gap)
{
    return trial_open(t, comm, c, gap) &&
           CHECK_OK(tac_localsgd_start(t->l, TAC_START_VERIFY));
}

static inline void trial_close(trial *t)
{
    (void)tac_localsgd_settle(t->l); /* or deltas under way are aborted */
    tac_localsgd_destroy(t->l);
    free(t->memory);
}

/* The step of an optimizer that pulls to a target of the rank's own and adds
 * noise of (rank, attempt, element): no two ranks or steps are alike. */
static inline void trial_move(trial *t, float lr)
{
    size_t k = 0;
    const int64_t n = ++t->attempts;
    for (int i = 0; i < TRIAL_TENSORS; i++)
        for (size_t j = 0; j < trial_counts[i]; j++, k++) {
            const float target = trial_random(8, t->rank, 0, k);
            const float noise = trial_random(9, t->rank, n, k);
            t->p[i][j] -= lr * (t->p[i][j] - target + 0.1f * noise);
        }
}

static inline tac_status trial_step(trial *t, float lr, tac_sync_event *e)
{
    trial_move(t, lr);
    return tac_localsgd_step(
        t->l, &(tac_local_step){.lr = lr, .loss = NAN, .samples = 1}, e);
}

static inline void trial_run(trial *t, int64_t attempts, float lr)
{
    for (int64_t n = 0; n < attempts; n++)
        if (!CHECK_OK(trial_step(t, lr, NULL))) return;
}

static inline uint64_t trial_hash(const trial *t)
{
    uint64_t h = TAC_HASH_INIT;
    for (int i = 0; i < TRIAL_TENSORS; i++)
        h = tac_hash_bytes(h, t->p[i], trial_counts[i] * sizeof(float));
    return h;
}

static inline void gather_u64(tac_comm *comm, uint64_t mine, uint64_t *all)
{
    tac_req *req = NULL;
    const tac_status s =
        tac_allgather(comm, &mine, all, 1, TAC_I64, NULL, &req);
    CHECK_OK(s < 0 ? s : tac_wait(req, 0));
}

/* Is it the same on all ranks? */
static inline int all_equal(tac_comm *comm, uint64_t mine)
{
    uint64_t all[THREADS_MAX];
    int equal = 1;
    gather_u64(comm, mine, all);
    for (int r = 1; r < tac_comm_size(comm); r++) equal &= all[r] == all[0];
    return equal;
}

static inline tac_localsgd_config preset(tac_comm *comm, const char *name,
                                         int64_t every)
{
    tac_localsgd_config c = TAC_LOCALSGD_CONFIG_INIT;
    CHECK_OK(tac_localsgd_preset(tac_comm_context(comm), name, every, &c));
    return c;
}

static inline tac_localsgd_stats stats_of(const tac_localsgd *l)
{
    tac_localsgd_stats s;
    tac_localsgd_stats_get(l, &s);
    return s;
}

#endif
