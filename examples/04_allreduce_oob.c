/* 04_allreduce_oob.c: processes that find each other by a means of their own.
 *
 *     04_allreduce_oob [RANKS]         4 if not said
 *
 * tac_comm_create_oob asks for one thing: an all-gather of a few bytes, used
 * while the communicator is made and never after. A launcher's key-value store,
 * a socket to rank 0, a shared file system all do. Here the ranks are children
 * of one process, and the means is a page of memory that they share. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, usleep */
#endif
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacit/comm.h"

enum { MAX_RANKS = 64, BYTES = 4096 }; /* no all-gather is longer */

/* Two sets of places, taken in turn: whoever begins round k + 2 knows that all
 * have begun k + 1, and so have read k. */
typedef struct board {
    atomic_int rounds[MAX_RANKS]; /* that each rank has begun */
    char place[2][MAX_RANKS][BYTES];
} board;

typedef struct gatherer {
    board *board;
    int rank, size, round; /* of the operation under way, from 1 */
    void *recv;
    size_t bytes;
} gatherer;

/* Leaves this rank's contribution; does not wait. */
static tac_status start(void *arg, const void *send, void *recv, size_t bytes,
                        void **op)
{
    gatherer *g = arg;
    g->round++;
    g->recv = recv;
    g->bytes = bytes;
    memcpy(g->board->place[g->round % 2][g->rank], send, bytes);
    atomic_store(&g->board->rounds[g->rank], g->round);
    *op = g;
    return TAC_OK;
}

/* Called again and again: have all left theirs? */
static tac_status test(void *arg, void *op)
{
    gatherer *g = arg;
    (void)op;
    for (int r = 0; r < g->size; r++)
        if (atomic_load(&g->board->rounds[r]) < g->round) {
            usleep(50);
            return TAC_INPROGRESS;
        }
    for (int r = 0; r < g->size; r++)
        memcpy((char *)g->recv + (size_t)r * g->bytes,
               g->board->place[g->round % 2][r], g->bytes);
    return TAC_OK;
}

static void cancel(void *arg, void *op)
{
    (void)arg, (void)op; /* nothing is held */
}

static tac_status run(board *b, int rank, int size)
{
    gatherer g = {.board = b, .rank = rank, .size = size};
    const tac_oob oob = {sizeof oob, start, test, cancel, &g};
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_req *req = NULL;
    double x = rank + 1, sum = 0;
    config.rank = rank;
    config.world = config.local_ranks = size;
    tac_status s = tac_context_create(&config, &ctx);
    if (s >= 0) s = tac_comm_create_oob(ctx, rank, size, &oob, NULL, &comm);
    if (s >= 0)
        s = tac_allreduce(comm, &x, &sum, 1, TAC_F64, TAC_SUM, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    if (s >= 0 && sum != size * (size + 1) / 2.0) s = TAC_ERR_INTERNAL;
    if (s >= 0 && rank == 0)
        printf("%d processes, transport %s: the sum of 1 to %d is %g\n", size,
               tac_comm_transport_name(comm), size, sum);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return s;
}

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2 || size < 1 || size > MAX_RANKS) {
        fprintf(stderr, "usage: %s [RANKS], 1 to %d\n", argv[0], MAX_RANKS);
        return 2;
    }
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0); /* zeros */
    if (b == MAP_FAILED) return 1;
    for (int r = 0; r < size; r++) {
        const pid_t child = fork();
        if (child < 0) return 1; /* the others time out */
        if (child == 0) exit(run(b, r, size) < 0);
    }
    int failed = 0, status;
    while (wait(&status) > 0) failed |= status != 0;
    munmap(b, sizeof *b);
    return failed;
}
