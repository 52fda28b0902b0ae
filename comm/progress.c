/* progress.c: taking a communicator one step, and resting between steps.
 *
 * Only the first request of the queue runs. A step never blocks; if another
 * thread is stepping the communicator there is nothing to do here. */
#include <sched.h>

#include "comm_impl.h"
#include "tacit/clock.h"

#define YIELDS          8u
#define SLEEP_NS        50000000u /* nothing but a bell ends it earlier */
#define SLEEP_SHARED_NS 500000u   /* other communicators have no part in it */

static void start(tac_req *req)
{
    req->started = 1;
    req->moved = 1;
    req->started_ns = req->polled_ns = tac_clock_ns();
    req->turn_id = req->comm->turns++;
}

static tac_status step_request(tac_req *req)
{
    req->moved = 0;
    if (!req->started) {
        start(req);
        TAC_TRY(req->alg->start(req));
    }
    return req->alg->step(req);
}

int tac__comm_listen(tac_comm *c)
{
    const char *text = NULL;
    const tac_status told = c->transport->poll(c->link, &text);
    if (told >= 0) return 0;
    tac__comm_infect(c, told, text);
    return 1;
}

/* News of a failure counts only where nothing more can be done: a peer that
 * gave up afterwards doesn't spoil what it has finished. */
static int step_queue(tac_comm *c)
{
    int moved = 0;
    if (!c->head) tac__comm_listen(c);
    while (c->head && tac__comm_status(c) == TAC_OK) {
        tac_req *req = c->head;
        const tac_status s = step_request(req);
        moved |= req->moved;
        if (s == TAC_INPROGRESS && !tac__comm_listen(c)) return moved;
        if (s == TAC_OK) tac__req_complete(req, s);
        if (s < 0)
            tac__comm_poison(c, s, "%s failed on rank %d",
                             tac_coll_name(req->coll), c->rank);
        moved = 1;
    }
    if (c->head) {
        tac__req_fail_all(c);
        moved = 1;
    }
    return moved;
}

int tac__comm_step(tac_comm *c)
{
    if (pthread_mutex_trylock(&c->lock) != 0) return 0;
    const int moved = step_queue(c);
    pthread_mutex_unlock(&c->lock);
    return moved;
}

tac_status tac_comm_progress(tac_comm *c)
{
    if (!tac__engine_step(c->engine, NULL)) tac__engine_watch(c->engine);
    return tac__comm_status(c);
}

/* ---- resting ---------------------------------------------------------------
 */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Messages are polled for: 20 us at first, 1 ms in the end. Phases ring. */
static uint64_t sleep_ns(const tac_comm *c, unsigned n)
{
    if (!c->domain && c->size > 1) {
        const uint64_t ns = 20000u + 2000u * (uint64_t)n;
        return ns < 1000000u ? ns : 1000000u;
    }
    return tac__engine_active(c->engine) > 1 ? SLEEP_SHARED_NS : SLEEP_NS;
}

static int is_done(const tac_req *req)
{
    return req && atomic_load(&((tac_req *)(uintptr_t)req)->done);
}

/* Having counted itself as a sleeper it looks once more, so that nobody who
 * moved something in between has missed it. */
static void sleep_on_bell(tac_comm *c, const tac_req *req, int drive,
                          uint64_t ns)
{
    tac__bell *bell = c->bell;
    const uint32_t word = atomic_load(&bell->word);
    atomic_fetch_add(&bell->sleepers, 1);
    if (!is_done(req) && !(drive && tac__comm_step(c)))
        tac__bell_sleep(bell, word, ns);
    atomic_fetch_sub(&bell->sleepers, 1);
}

void tac__comm_rest(tac_comm *c, tac__rest *r, const tac_req *req, int drive,
                    uint64_t until_ns)
{
    const unsigned n = r->n++;
    const unsigned spins = (unsigned)c->spins;
    if (n < spins) {
        relax();
        return;
    }
    if (n < spins + YIELDS) {
        sched_yield();
        return;
    }
    tac__engine_watch(c->engine);
    const uint64_t now = tac_clock_ns();
    if (now >= until_ns) return;
    uint64_t ns = sleep_ns(c, n - spins - YIELDS);
    if (ns > until_ns - now) ns = until_ns - now;
    sleep_on_bell(c, req, drive, ns);
}
