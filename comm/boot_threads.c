/* boot_threads.c: the out-of-band all-gather between threads of one process.
 *
 * Contributions are copied to slots of the group. There are two sets of slots:
 * a rank can start round k + 1 while others still read round k, but not round
 * k + 2, because round k + 1 needs everybody. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "boot.h"

#define SLOT 4096u

struct tac_thread_group {
    pthread_mutex_t lock;
    int size;
    int broken;      /* a rank has given up: it can't be used any more */
    uint64_t *round; /* [size] rounds started */
    char *slots;     /* [2][size][SLOT] */
};

/* One rank's view during one creation. */
typedef struct member {
    tac_thread_group *group;
    int rank;
    char *recv;
    size_t bytes;
} member;

tac_status tac_thread_group_create(int size, tac_thread_group **out)
{
    if (size < 1)
        return tac_fail(NULL, TAC_ERR_ARG, "a group of %d threads", size);
    const size_t n = (size_t)size;
    tac_thread_group *g = calloc(1, sizeof *g);
    if (!g) goto fail_group;
    g->size = size;
    g->round = calloc(n, sizeof *g->round);
    g->slots = calloc(2 * n, SLOT);
    if (!g->round || !g->slots) goto fail_arrays;
    pthread_mutex_init(&g->lock, NULL);
    *out = g;
    return TAC_OK;

fail_arrays:
    free(g->round);
    free(g->slots);
    free(g);
fail_group:
    return tac_fail(NULL, TAC_ERR_NOMEM, "no memory for %d thread ranks", size);
}

void tac_thread_group_destroy(tac_thread_group *g)
{
    if (!g) return;
    pthread_mutex_destroy(&g->lock);
    free(g->round);
    free(g->slots);
    free(g);
}

static char *slot(const tac_thread_group *g, int rank, uint64_t round)
{
    return g->slots + ((round & 1u) * (size_t)g->size + (size_t)rank) * SLOT;
}

static tac_status start(void *arg, const void *send, void *recv, size_t bytes,
                        void **op)
{
    member *m = arg;
    tac_thread_group *g = m->group;
    if (bytes > SLOT) return TAC_ERR_ARG;
    pthread_mutex_lock(&g->lock);
    const int broken = g->broken;
    if (!broken) {
        const uint64_t round = ++g->round[m->rank];
        memcpy(slot(g, m->rank, round), send, bytes);
        m->recv = recv;
        m->bytes = bytes;
    }
    pthread_mutex_unlock(&g->lock);
    *op = m;
    return broken ? TAC_ERR_STATE : TAC_OK;
}

/* Caller holds the lock. */
static tac_status collect(member *m)
{
    const tac_thread_group *g = m->group;
    const uint64_t round = g->round[m->rank];
    for (int r = 0; r < g->size; r++)
        if (g->round[r] < round)
            return g->broken ? TAC_ERR_TIMEOUT : TAC_INPROGRESS;
    for (int r = 0; r < g->size; r++)
        memcpy(m->recv + (size_t)r * m->bytes, slot(g, r, round), m->bytes);
    return TAC_OK;
}

static tac_status test(void *arg, void *op)
{
    member *m = op;
    (void)arg;
    pthread_mutex_lock(&m->group->lock);
    const tac_status s = collect(m);
    pthread_mutex_unlock(&m->group->lock);
    return s;
}

static void cancel(void *arg, void *op)
{
    member *m = op;
    (void)arg;
    pthread_mutex_lock(&m->group->lock);
    m->group->broken = 1;
    pthread_mutex_unlock(&m->group->lock);
}

int tac__threads_called(const tac_oob *oob, int r)
{
    if (!oob || oob->test != test) return -1;
    const member *m = oob->arg;
    pthread_mutex_lock(&m->group->lock);
    const int called = m->group->round[r] >= m->group->round[m->rank];
    pthread_mutex_unlock(&m->group->lock);
    return called;
}

tac_status tac_comm_create_threads(tac_context *ctx, tac_thread_group *group,
                                   int rank, const tac_comm_config *config,
                                   tac_comm **out)
{
    if (!group)
        return tac_fail(ctx, TAC_ERR_ARG, "tac_comm_create_threads: no group");
    member m = {.group = group, .rank = rank};
    const tac_oob oob = {sizeof oob, start, test, cancel, &m};
    return tac_comm_create_oob(ctx, rank, group->size, &oob, config, out);
}
