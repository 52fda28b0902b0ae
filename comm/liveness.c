/* liveness.c: are the peers on this host alive?
 *
 * One process descriptor a peer (pidfd_open; where the kernel has none, signal
 * 0), looked at every 50 ms while waiting. A death counts 100 to 300 ms after
 * it is first seen: a peer that finished everything and left may have messages
 * under way. Peers on other hosts are watched by timeouts only. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm_impl.h"

#define CHECK_NS   UINT64_C(50000000)
#define GRACE_NS   UINT64_C(100000000)
#define STAGGER_NS UINT64_C(20000000)

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

/* What a rank has finished it has handed over entirely, if that can be known;
 * through messages between processes, they may still be under way. A rank that
 * destroyed its communicator before its process ended is no dead one. */
static int is_needed(const tac_req *req, int rank)
{
    const tac_comm *c = req->comm;

    if (c->under && atomic_load(&c->under->line[rank]->left)) return 0;
    if (tac__req_is_p2p(req)) return req->alg->waits_for(req, rank);
    return !tac__doing_finished(req->comm, rank, req->seq);
}

/* Of several who see the same death the lowest tells the others. */
static uint64_t grace_ns(const tac_req *req, const tac__peer *p)
{
    const int me = req->comm->rank - (p->rank < req->comm->rank);
    return GRACE_NS + STAGGER_NS * (uint64_t)(me < 10 ? me : 10);
}

int tac__liveness_check(tac__liveness *l, const tac_req *req, uint64_t now)
{
    const int look = now - l->checked_ns >= CHECK_NS;
    if (look) l->checked_ns = now;
    for (int i = 0; i < l->n; i++) {
        tac__peer *p = &l->peer[i];
        if (look && p->dead_ns == 0 && is_dead(p)) p->dead_ns = now;
        if (p->dead_ns != 0 && now - p->dead_ns >= grace_ns(req, p) &&
            is_needed(req, p->rank))
            return p->rank;
    }
    return -1;
}

/* The third field of /proc/<pid>/stat, behind the name in parentheses. */
static char state_of(int64_t pid)
{
    char path[48], line[256] = "";
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return '?';
    const char *end = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    fclose(f);
    return end && end[1] == ' ' ? end[2] : '?';
}

void tac__liveness_stopped(const tac__liveness *l, char *buf, size_t bytes)
{
    buf[0] = '\0';
    for (int i = 0; i < l->n; i++) {
        const tac__peer *p = &l->peer[i];
        if (p->dead_ns != 0 || state_of(p->pid) != 'T') continue;
        snprintf(buf, bytes, "; rank %d (process %lld) is stopped", p->rank,
                 (long long)p->pid);
        return;
    }
}
