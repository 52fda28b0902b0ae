/* comm_threads.h: running a function on every rank of a world of threads. */
#ifndef COMM_THREADS_H
#define COMM_THREADS_H

#include <pthread.h>

#include "tac_check.h"
#include "tac_sanitized.h"
#include "tacit/comm.h"

enum { THREADS_MAX = 32 };

typedef void rank_fn(tac_comm *comm, void *arg);

typedef struct rank_job {
    tac_thread_group *group;
    int rank, size;
    const tac_comm_config *config;
    rank_fn *fn;
    void *arg;
} rank_job;

static inline void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static inline tac_context *rank_context(int rank, int size)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    cc.rank = rank;
    cc.world = cc.local_ranks = size;
    cc.threads = 1;
    cc.log = drop_line; /* failures are wanted here */
    CHECK_OK(tac_context_create(&cc, &ctx));
    return ctx;
}

static inline void *rank_main(void *p)
{
    const rank_job *j = p;
    tac_comm *comm = NULL;
    tac_context *ctx = rank_context(j->rank, j->size);
    if (CHECK_OK(
            tac_comm_create_threads(ctx, j->group, j->rank, j->config, &comm)))
        j->fn(comm, j->arg);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return NULL;
}

/* fn(comm, arg) on `size` threads. */
static inline void with_threads(int size, const tac_comm_config *config,
                                rank_fn *fn, void *arg)
{
    pthread_t thread[THREADS_MAX];
    rank_job job[THREADS_MAX];
    tac_thread_group *group = NULL;
    if (!CHECK_OK(tac_thread_group_create(size, &group))) return;
    for (int r = 0; r < size; r++) {
        job[r] = (rank_job){group, r, size, config, fn, arg};
        CHECK(pthread_create(&thread[r], NULL, rank_main, &job[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(thread[r], NULL);
    tac_thread_group_destroy(group);
}

#endif
