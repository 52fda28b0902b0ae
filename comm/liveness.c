/* liveness.c: are the peers on this host alive?
 *
 * One process descriptor a peer (pidfd_open; where the kernel has none, signal
 * 0), looked at every 50 ms while waiting. A death counts 100 ms after it is
 * first seen: a peer that finished everything and left may have messages under
 * way. Peers on other hosts are watched by timeouts only. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm_impl.h"

#define CHECK_NS UINT64_C(50000000)
#define GRACE_NS UINT64_C(100000000)

static int open_process(int64_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
#else
    (void)pid;
    return -1;
#endif
}

static void add(tac__liveness *l, int rank, int64_t pid)
{
    l->peer[l->n++] =
        (tac__peer){.rank = rank, .pid = pid, .fd = open_process(pid)};
}

tac_status tac__liveness_open(tac__liveness *l, const tac__hello *peers,
                              int rank, int size)
{
    memset(l, 0, sizeof *l);
    l->peer = calloc((size_t)size, sizeof *l->peer);
    if (!l->peer) return TAC_ERR_NOMEM;
    for (int r = 0; r < size; r++)
        if (peers[r].host == peers[rank].host &&
            peers[r].pid != peers[rank].pid)
            add(l, r, peers[r].pid);
    return TAC_OK;
}

void tac__liveness_close(tac__liveness *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->peer[i].fd >= 0) close(l->peer[i].fd);
    free(l->peer);
    memset(l, 0, sizeof *l);
}

static int is_dead(const tac__peer *p)
{
    struct pollfd f = {.fd = p->fd, .events = POLLIN};
    if (p->fd < 0) return kill((pid_t)p->pid, 0) != 0 && errno == ESRCH;
    return poll(&f, 1, 0) == 1;
}

/* In shared memory nothing of a dead rank that has finished the phase is
 * missing; through messages others may wait for it on this rank's behalf. */
static int is_needed(const tac_req *req, int rank)
{
    return !req->comm->domain || req->alg->waits_for(req, rank);
}

int tac__liveness_check(tac__liveness *l, const tac_req *req, uint64_t now)
{
    if (now - l->checked_ns < CHECK_NS) return -1;
    l->checked_ns = now;
    for (int i = 0; i < l->n; i++) {
        tac__peer *p = &l->peer[i];
        if (p->dead_ns == 0 && is_dead(p)) p->dead_ns = now;
        if (p->dead_ns != 0 && now - p->dead_ns >= GRACE_NS &&
            is_needed(req, p->rank))
            return p->rank;
    }
    return -1;
}
