/* comm_fork.h: running a function on every rank of a world of processes, made
 * by fork, whose out-of-band all-gather is a shared page. Checks are counted in
 * the parent: a child's exit status says whether its own held. */
#ifndef COMM_FORK_H
#define COMM_FORK_H

#include <signal.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm_threads.h"

enum { FORK_MAX = 8, FORK_SLOT = 4096 };

/* Two sets of slots, as in boot_threads.c. */
typedef struct board {
    _Atomic uint64_t round[FORK_MAX];
    uint64_t result[FORK_MAX]; /* what fn wants to tell the parent */
    char slot[2][FORK_MAX][FORK_SLOT];
} board;

typedef struct fork_rank {
    board *board;
    int rank, size;
    uint64_t round;
    void *recv;
    size_t bytes;
} fork_rank;

static inline tac_status fork_start(void *arg, const void *send, void *recv,
                                    size_t bytes, void **op)
{
    fork_rank *f = arg;
    f->round++;
    f->recv = recv;
    f->bytes = bytes;
    memcpy(f->board->slot[f->round & 1][f->rank], send, bytes);
    atomic_store(&f->board->round[f->rank], f->round);
    *op = f;
    return TAC_OK;
}

static inline tac_status fork_test(void *arg, void *op)
{
    fork_rank *f = arg;
    (void)op;
    for (int r = 0; r < f->size; r++)
        if (atomic_load(&f->board->round[r]) < f->round) return TAC_INPROGRESS;
    for (int r = 0; r < f->size; r++)
        memcpy((char *)f->recv + (size_t)r * f->bytes,
               f->board->slot[f->round & 1][r], f->bytes);
    return TAC_OK;
}

static inline void fork_cancel(void *arg, void *op)
{
    (void)arg, (void)op;
}

static inline int fork_main(fork_rank *f, const tac_comm_config *config,
                            rank_fn *fn, void *arg)
{
    tac_comm *comm = NULL;
    tac_check_count.failed = 0;
    tac_context *ctx = rank_context(f->rank, f->size);
    const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel, f};
    if (CHECK_OK(
            tac_comm_create_oob(ctx, f->rank, f->size, &oob, config, &comm)))
        fn(comm, arg);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return tac_check_failed() > 0;
}

/* The status that a rank's process must end with: 0, or a signal's number. */
typedef struct fork_end {
    int rank, signal;
} fork_end;

/* fn(comm, arg) on `size` processes; fn may write board->result[rank]. `end`
 * may be NULL: all end well. */
static inline void with_processes(int size, const tac_comm_config *config,
                                  rank_fn *fn, void *arg, board *b,
                                  const fork_end *end)
{
    pid_t pid[FORK_MAX];
    memset(b, 0, sizeof *b);
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        pid[r] = fork();
        if (pid[r] == 0) {
            fork_rank f = {.board = b, .rank = r, .size = size};
            const int rc = fork_main(&f, config, fn, arg);
            fflush(NULL);
            exit(rc); /* the sanitizers' last words */
        }
        CHECK(pid[r] > 0);
    }
    for (int r = 0; r < size; r++) {
        int st = 0;
        CHECK(waitpid(pid[r], &st, 0) == pid[r]);
        if (end && end->rank == r)
            CHECK_MSG(WIFSIGNALED(st) && WTERMSIG(st) == end->signal,
                      "rank %d of %d ended with 0x%x", r, size, st);
        else
            CHECK_MSG(WIFEXITED(st) && WEXITSTATUS(st) == 0,
                      "rank %d of %d ended with 0x%x", r, size, st);
    }
}

/* Can two processes have this transport here? Says so if not. */
static inline int can_fork_over(const char *transport, board *b)
{
    int can = 1;
    pid_t pid[2];
    if (TESTS_SLOW && strcmp(transport, "ucx") == 0) {
        printf("skipped: the leak checker stumbles over UCX's threads\n");
        return 0;
    }
    memset(b, 0, sizeof *b);
    fflush(NULL);
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] != 0) continue;
        fork_rank f = {.board = b, .rank = r, .size = 2};
        const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel,
                             &f};
        tac_comm_config config = TAC_COMM_CONFIG_INIT;
        tac_context *ctx = rank_context(r, 2);
        tac_comm *c = NULL;
        config.transport = transport;
        const tac_status s = tac_comm_create_oob(ctx, r, 2, &oob, &config, &c);
        tac_comm_destroy(c);
        tac_context_destroy(ctx);
        _Exit(s == TAC_OK ? 0 : TAC_CHECK_SKIP_CODE);
    }
    for (int r = 0; r < 2; r++) {
        int st = 0;
        if (waitpid(pid[r], &st, 0) != pid[r] || st != 0) can = 0;
    }
    if (!can) printf("skipped: no transport %s here\n", transport);
    return can;
}

static inline board *board_create(void)
{
    void *p = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

#endif
