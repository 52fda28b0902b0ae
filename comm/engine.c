/* engine.c: what drives the communicators of one context.
 *
 * Whoever waits for one communicator also steps the others, so that ranks may
 * wait for two communicators in different orders. With progress = THREAD one
 * thread a context drives the communicators that asked for it. A communicator
 * that is being stepped is pinned, so that it can't go away meanwhile; the
 * engine's lock is never held during a step. */
#include <limits.h>
#include <stdlib.h>

#include "comm_impl.h"
#include "tacit/clock.h"

struct tac__engine {
    tac_context *ctx;
    pthread_mutex_t lock;
    pthread_cond_t unpinned;
    tac_comm *list; /* newest first */
    uint64_t next_id;
    _Atomic int active;
    pthread_mutex_t life; /* threaded, thread */
    int threaded;         /* communicators that want the thread */
    pthread_t thread;
    _Atomic int stop;
    tac__bell work;
};

static const char slot_key;

static void *make(tac_context *ctx, void *arg)
{
    (void)arg;
    tac__engine *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->ctx = ctx;
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->life, NULL);
    pthread_cond_init(&e->unpinned, NULL);
    return e;
}

static void destroy(void *value)
{
    tac__engine *e = value;
    pthread_cond_destroy(&e->unpinned);
    pthread_mutex_destroy(&e->life);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

tac__engine *tac__engine_of(tac_context *ctx)
{
    return tac_context_slot(ctx, &slot_key, make, destroy, NULL);
}

static tac_comm *older_than(const tac__engine *e, uint64_t id)
{
    tac_comm *c = e->list;
    while (c && c->engine_id >= id) c = c->engine_next;
    return c;
}

/* Calls fn on each communicator that is listed when its turn comes; returns
 * whether any call returned nonzero. */
typedef int visit_fn(tac_comm *c, void *arg);
static int for_each(tac__engine *e, visit_fn *fn, void *arg)
{
    int any = 0;
    uint64_t id = UINT64_MAX;
    pthread_mutex_lock(&e->lock);
    for (tac_comm *c; (c = older_than(e, id)) != NULL;) {
        id = c->engine_id;
        c->pins++;
        pthread_mutex_unlock(&e->lock);
        any |= fn(c, arg);
        pthread_mutex_lock(&e->lock);
        if (--c->pins == 0) pthread_cond_broadcast(&e->unpinned);
    }
    pthread_mutex_unlock(&e->lock);
    return any;
}

static int step_unless(tac_comm *c, void *except)
{
    return c != except && !c->outer_rank && tac__comm_step(c);
}

/* ---- parents ---------------------------------------------------------------
 *
 * Whoever gives up aborts the communicator that it knows; ranks may wait in
 * others that were split off it, in which that rank is not, or not yet. So a
 * parent is listened to also while it has nothing to do, and its failure is its
 * children's. */

void tac__engine_adopt(tac__engine *e, tac_comm *parent, tac_comm *child)
{
    pthread_mutex_lock(&e->lock);
    child->parent = parent;
    parent->children++;
    pthread_mutex_unlock(&e->lock);
}

/* Caller holds the engine's lock. */
static void leave_family(tac__engine *e, tac_comm *c)
{
    if (c->parent) c->parent->children--;
    for (tac_comm *k = e->list; k && c->children > 0; k = k->engine_next)
        if (k->parent == c) k->parent = NULL;
    c->parent = NULL;
    c->children = 0;
}

/* The failure of one that c comes from, if that has failed first. */
static tac_status ancestors_failure(tac__engine *e, const tac_comm *c,
                                    char *text, size_t bytes, int *has_children)
{
    tac_status s = TAC_OK;
    pthread_mutex_lock(&e->lock);
    if (tac__comm_status(c) == TAC_OK)
        for (const tac_comm *p = c->parent; p && s == TAC_OK; p = p->parent)
            s = tac_comm_error(p, text, bytes);
    *has_children = c->children > 0;
    pthread_mutex_unlock(&e->lock);
    return s;
}

/* 1 if c has children. */
static int inherit(tac__engine *e, tac_comm *c)
{
    char text[TAC__ERROR];
    int parent = 0;
    const tac_status s = ancestors_failure(e, c, text, sizeof text, &parent);
    if (s < 0) tac__comm_inherit(c, s, text);
    return parent;
}

static int inherit_each(tac_comm *c, void *arg)
{
    return inherit(arg, c) && 0;
}

void tac__engine_inherit(tac__engine *e, tac_comm *c)
{
    if (c)
        inherit(e, c);
    else
        for_each(e, inherit_each, e);
}

static void look_after(tac__engine *e, tac_comm *c)
{
    if (!inherit(e, c)) return;
    if (pthread_mutex_trylock(&c->lock) != 0) return;
    if (!c->head && tac__comm_status(c) == TAC_OK) tac__comm_listen(c);
    pthread_mutex_unlock(&c->lock);
}

static int watch(tac_comm *c, void *arg)
{
    look_after(arg, c);
    tac__watch(c);
    return 0;
}

int tac__engine_step(tac__engine *e, tac_comm *except)
{
    if (except && tac__engine_active(e) <= 1) return 0;
    return for_each(e, step_unless, except);
}

void tac__engine_watch(tac__engine *e)
{
    for_each(e, watch, e);
}

int tac__engine_active(tac__engine *e)
{
    return atomic_load(&e->active);
}

int tac__engine_pin_busy(tac__engine *e, const tac_comm *except, tac_comm **out,
                         int most)
{
    int n = 0;
    pthread_mutex_lock(&e->lock);
    for (tac_comm *c = e->list; c && n < most; c = c->engine_next) {
        if (c == except || !atomic_load(&c->busy)) continue;
        c->pins++;
        out[n++] = c;
    }
    pthread_mutex_unlock(&e->lock);
    return n;
}

void tac__engine_unpin(tac__engine *e, tac_comm *const *pinned, int n)
{
    if (n == 0) return;
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < n; i++) pinned[i]->pins--;
    pthread_cond_broadcast(&e->unpinned);
    pthread_mutex_unlock(&e->lock);
}

void tac__engine_activity(tac__engine *e, int change)
{
    atomic_fetch_add(&e->active, change);
}

tac__bell *tac__engine_bell(tac__engine *e)
{
    return &e->work;
}

void tac__engine_notify(tac__engine *e)
{
    tac__bell_bump(&e->work);
}

/* ---- the progress thread ---------------------------------------------------
 */

typedef struct round {
    int moved;
    tac_comm *busy; /* one with unfinished requests */
} round;

static int step_threaded(tac_comm *c, void *arg)
{
    round *r = arg;
    if (c->config.progress != TAC_PROGRESS_THREAD) return 0;
    if (tac__comm_step(c)) r->moved = 1;
    pthread_mutex_lock(&c->lock);
    if (c->busy) r->busy = c;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static int rest_on(tac_comm *c, void *arg)
{
    round *r = ((void **)arg)[0];
    tac__rest *rest = ((void **)arg)[1];
    if (c == r->busy)
        tac__comm_rest(c, rest, NULL, 1, tac_clock_ns() + 50000000u);
    return 0;
}

static void *run(void *arg)
{
    tac__engine *e = arg;
    tac__rest rest = {0};
    while (!atomic_load(&e->stop)) {
        const uint32_t word = atomic_load(&e->work.word);
        round r = {0, NULL};
        for_each(e, step_threaded, &r);
        if (r.moved) {
            rest.n = 0;
        } else if (r.busy) {
            for_each(e, rest_on, (void *[]){&r, &rest});
        } else {
            atomic_fetch_add(&e->work.sleepers, 1);
            if (!atomic_load(&e->stop))
                tac__bell_sleep(&e->work, word, 1000000000u);
            atomic_fetch_sub(&e->work.sleepers, 1);
        }
    }
    return NULL;
}

static tac_status thread_join_in(tac__engine *e)
{
    tac_status s = TAC_OK;
    pthread_mutex_lock(&e->life);
    if (e->threaded == 0) {
        atomic_store(&e->stop, 0);
        if (pthread_create(&e->thread, NULL, run, e) != 0)
            s = tac_fail(e->ctx, TAC_ERR_NOMEM, "no thread for communication");
    }
    if (s == TAC_OK) e->threaded++;
    pthread_mutex_unlock(&e->life);
    return s;
}

static void thread_leave(tac__engine *e)
{
    pthread_mutex_lock(&e->life);
    if (--e->threaded == 0) {
        atomic_store(&e->stop, 1);
        tac__bell_bump(&e->work);
        pthread_join(e->thread, NULL);
    }
    pthread_mutex_unlock(&e->life);
}

tac_status tac__engine_add(tac__engine *e, tac_comm *c)
{
    if (c->config.progress == TAC_PROGRESS_THREAD) TAC_TRY(thread_join_in(e));
    pthread_mutex_lock(&e->lock);
    c->engine_id = e->next_id++;
    c->engine_next = e->list;
    e->list = c;
    c->listed = 1;
    pthread_mutex_unlock(&e->lock);
    return TAC_OK;
}

void tac__engine_remove(tac__engine *e, tac_comm *c)
{
    pthread_mutex_lock(&e->lock);
    for (tac_comm **p = &e->list; *p; p = &(*p)->engine_next)
        if (*p == c) {
            *p = c->engine_next;
            break;
        }
    leave_family(e, c);
    while (c->pins > 0) pthread_cond_wait(&e->unpinned, &e->lock);
    pthread_mutex_unlock(&e->lock);
    if (c->config.progress == TAC_PROGRESS_THREAD) thread_leave(e);
}
