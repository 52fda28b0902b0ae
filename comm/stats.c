/* stats.c: what communication has cost, an operation and in all. */
#include <string.h>

#include "comm_impl.h"
#include "tacit/clock.h"

/* Reading a thread's CPU clock is a system call; below this, wall time has to
 * do (the work is too short to be interrupted often). */
#define CPU_CLOCK_BYTES ((size_t)64 << 10)

tac__work tac__work_begin(size_t bytes)
{
    return (tac__work){bytes >= CPU_CLOCK_BYTES ? tac_clock_thread_cpu_s()
                                                : tac_clock_s(),
                       bytes};
}

void tac__work_end(tac_req *req, tac__work w)
{
    const double now =
        w.bytes >= CPU_CLOCK_BYTES ? tac_clock_thread_cpu_s() : tac_clock_s();
    if (now > w.from) req->cpu_ns += (uint64_t)((now - w.from) * 1e9);
}

static void add(tac_comm_op_stats *s, const tac_req *req, uint64_t now)
{
    s->calls++;
    s->calls_symmetric += req->symmetric ? 1u : 0u;
    s->bytes_logical += req->bytes_logical;
    s->bytes_wire += req->bytes_wire;
    s->bytes_between_hosts += req->between_hosts;
    s->busy_s += (double)(now - req->started_ns) * 1e-9;
    s->wait_s += (double)req->wait_ns * 1e-9;
    s->cpu_s += (double)req->cpu_ns * 1e-9;
}

void tac__stats_count(const tac_req *req, uint64_t now)
{
    tac_comm_stats *s = &req->comm->stats;
    add(&s->op[req->coll], req, now);
    add(&s->total, req, now);
}

void tac__stats_exposed(const tac_req *req, uint64_t ns)
{
    tac_comm *c = req->comm;
    pthread_mutex_lock(&c->lock);
    c->stats.op[req->coll].exposed_s += (double)ns * 1e-9;
    c->stats.total.exposed_s += (double)ns * 1e-9;
    pthread_mutex_unlock(&c->lock);
}

void tac_comm_stats_get(const tac_comm *comm, tac_comm_stats *out)
{
    tac_comm *c = (tac_comm *)(uintptr_t)comm;
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    pthread_mutex_unlock(&c->lock);
}

void tac_comm_stats_reset(tac_comm *c)
{
    pthread_mutex_lock(&c->lock);
    memset(&c->stats, 0, sizeof c->stats);
    pthread_mutex_unlock(&c->lock);
}
