/* progress.c: taking a communicator one step, and resting between steps.
 *
 * Only the first request of the queue runs. A step never blocks; if another
 * thread is stepping the communicator there is nothing to do here. */
#include <sched.h>

#include "comm_impl.h"
#include "tacit/clock.h"

#define YIELDS          8u
#define SLEEP_NS        UINT64_C(50000000) /* only a bell ends it earlier */
#define ARMED_NS        UINT64_C(20000000) /* only the transport ends it */
#define POLL_NS         UINT64_C(20000)
#define POLL_MORE_NS    UINT64_C(2000)
#define POLL_LONGEST_NS UINT64_C(1000000)
#define LEFT_OUT_NS     UINT64_C(500000) /* where bells are too many */
#define LEAST_NS        UINT64_C(2000)   /* a sleep costs more */

static void start(tac_req *req)
{
    req->started = 1;
    req->moved = 1;
    req->started_ns = req->polled_ns = tac_clock_ns();
    tac__note_started(req);
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
    int moved = c->p2p.first ? tac__p2p_step(c) : 0;
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
    if (c->busy && tac__comm_status(c) < 0) {
        tac__req_fail_all(c);
        moved = 1;
    }
    return moved;
}

void tac__comm_activity(tac_comm *c)
{
    const int busy = c->head || c->p2p.first;
    if (busy != c->busy) tac__engine_activity(c->engine, busy - c->busy);
    c->busy = busy;
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

static int is_done(const tac_req *req)
{
    return req && atomic_load(&((tac_req *)(uintptr_t)req)->done);
}

/* Polled 20 us apart at first, 1 ms in the end. */
static uint64_t poll_ns(unsigned n)
{
    const uint64_t ns = POLL_NS + POLL_MORE_NS * (uint64_t)n;
    return ns < POLL_LONGEST_NS ? ns : POLL_LONGEST_NS;
}

/* How long a communicator may be left alone: until its bell rings or something
 * is due; `armed`: its transport wakes the sleeper. */
static uint64_t longest_ns(tac_comm *c, unsigned n, int armed)
{
    const tac_transport *t = c->transport;
    const int rings = c->under || c->size == 1;
    const uint64_t ns = rings ? SLEEP_NS : armed ? ARMED_NS : poll_ns(n);
    if (!t->due) return ns;
    pthread_mutex_lock(&c->lock);
    const uint64_t due = t->due(c->link), now = tac_clock_ns();
    pthread_mutex_unlock(&c->lock);
    if (due == 0) return ns;
    return due <= now ? 0 : due - now < ns ? due - now : ns;
}

/* Whom a waiter waits for: its own communicator and the context's others with
 * work under way (the levels of a hierarchy, for instance). */
typedef struct party {
    tac_comm *comm[TAC__BELLS];
    tac__bell *bell[TAC__BELLS];
    uint32_t word[TAC__BELLS];
    int n, work; /* work: the last bell is the progress thread's own */
} party;

static void add_bell(party *p, int i, tac__bell *bell)
{
    p->bell[i] = bell;
    p->word[i] = atomic_load(&bell->word);
    atomic_fetch_add(&bell->sleepers, 1);
}

static void gather(party *p, tac_comm *c, int drive)
{
    p->n = 1;
    p->comm[0] = c;
    p->work = drive && c->config.progress == TAC_PROGRESS_THREAD;
    if (tac__engine_active(c->engine) > 1)
        p->n += tac__engine_pin_busy(c->engine, c, &p->comm[1], TAC__BELLS - 2);
    for (int i = 0; i < p->n; i++) add_bell(p, i, p->comm[i]->bell);
    if (p->work) add_bell(p, p->n, tac__engine_bell(c->engine));
}

static void scatter(party *p, tac_comm *c)
{
    for (int i = 0; i < p->n + p->work; i++)
        atomic_fetch_sub(&p->bell[i]->sleepers, 1);
    tac__engine_unpin(c->engine, &p->comm[1], p->n - 1);
}

/* Having counted itself as a sleeper of all it looks once more, so that nobody
 * who moved something in between has missed it. */
static int look_again(tac_comm *c, const tac_req *req, int drive)
{
    return is_done(req) || (drive && tac__comm_step(c)) ||
           tac__engine_step(c->engine, c);
}

static void sleep_until(const party *p, unsigned n, int drive, uint64_t ns)
{
    const tac_comm *c = p->comm[0];
    const int armed = p->n == 1 && drive && c->transport->sleep && !c->under;
    if (tac__engine_active(c->engine) > p->n && ns > LEFT_OUT_NS)
        ns = LEFT_OUT_NS;
    for (int i = 0; i < p->n; i++) {
        const uint64_t most = longest_ns(p->comm[i], n, armed);
        if (most < ns) ns = most;
    }
    if (ns < LEAST_NS) return;
    if (armed)
        c->transport->sleep(c->link, ns);
    else
        tac__bells_sleep(p->bell, p->word, p->n + p->work, ns);
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
    party p;
    gather(&p, c, drive);
    if (!look_again(c, req, drive))
        sleep_until(&p, n - spins - YIELDS, drive, until_ns - now);
    scatter(&p, c);
}
