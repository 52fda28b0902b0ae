/* localsgd_regroup.h: ranks that leave and join, for tests of
 * tac_localsgd_regroup.
 *
 * A meeting is where threads find each other for another communicator. */
#ifndef LOCALSGD_REGROUP_H
#define LOCALSGD_REGROUP_H

#include "localsgd_trial.h"

enum { EVERY = 4 };
static const float rate = 0.1f; /* of trial_move, f64 0.1 by hand */

static inline tac_status one_step(trial *t)
{
    trial_move(t, rate);
    return tac_localsgd_step(
        t->l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, NULL);
}

/* What the threads of one test share. */
typedef struct meeting {
    tac_thread_group *group;   /* of the ranks that go on */
    pthread_barrier_t barrier; /* of the first ranks */
} meeting;

static inline void meeting_open(meeting *m, int first, int next)
{
    CHECK(pthread_barrier_init(&m->barrier, NULL, (unsigned)first) == 0);
    CHECK_OK(tac_thread_group_create(next, &m->group));
}

static inline void meeting_close(meeting *m)
{
    pthread_barrier_destroy(&m->barrier);
    tac_thread_group_destroy(m->group);
}

/* The communicator of those that go on, as rank `rank` of it. */
static inline tac_comm *meeting_join(meeting *m, tac_context *ctx, int rank)
{
    tac_comm *comm = NULL;
    CHECK_OK(tac_comm_create_threads(ctx, m->group, rank, NULL, &comm));
    return comm;
}

/* One item of a state, copied. */
typedef struct item_copy {
    const char *name;
    float *to;
    size_t room, count;
} item_copy;

static inline tac_status copy_item(void *arg, const tac_state_item *item)
{
    item_copy *c = arg;
    if (strcmp(item->name, c->name) != 0) return TAC_OK;
    c->count = tac_state_item_count(item);
    if (c->count <= c->room)
        memcpy(c->to, item->data, c->count * sizeof *c->to);
    return TAC_OK;
}

/* Elements of the item "localsgd.NAME", 0 if there is none. */
static inline size_t item_of(tac_localsgd *l, const char *name, float *to,
                             size_t room)
{
    char full[80];
    item_copy c = {full, to, room, 0};
    const tac_state_visitor v = {copy_item, &c, NULL};
    snprintf(full, sizeof full, "localsgd.%s", name);
    CHECK_OK(tac_localsgd_walk(l, &v));
    return c.count;
}

/* Parameters one after the other. */
static inline void trial_flat(const trial *t, float *out)
{
    for (int i = 0; i < TRIAL_TENSORS; i++) {
        memcpy(out, t->p[i], trial_counts[i] * sizeof *out);
        out += trial_counts[i];
    }
}

/* ---- the same by hand, in f64 ---------------------------------------------
 */

enum { HAND_RANKS = 6 };

typedef struct by_hand {
    tac_outer outer;
    int64_t attempts;
    int here[HAND_RANKS];
    double x[HAND_RANKS][TRIAL_N], a[TRIAL_N], u[TRIAL_N];
} by_hand;

static inline void hand_open(by_hand *h, tac_outer outer, int ranks)
{
    memset(h, 0, sizeof *h);
    h->outer = outer;
    for (size_t i = 0; i < TRIAL_N; i++) {
        h->a[i] = (double)trial_random(7, 0, 0, i);
        for (int r = 0; r < ranks; r++) h->x[r][i] = h->a[i];
    }
    for (int r = 0; r < ranks; r++) h->here[r] = 1;
}

/* One attempt of every rank (trial_move). */
static inline void hand_move(by_hand *h, double lr)
{
    h->attempts++;
    for (int r = 0; r < HAND_RANKS; r++)
        for (size_t i = 0; i < TRIAL_N && h->here[r]; i++) {
            const double target = (double)trial_random(8, r, 0, i);
            const double noise = (double)trial_random(9, r, h->attempts, i);
            h->x[r][i] -= lr * (h->x[r][i] - target + 0.1 * noise);
        }
}

/* Elements from..to of all that are here. */
static inline void hand_sync(by_hand *h, size_t from, size_t to, double lr)
{
    for (size_t i = from; i < to; i++) {
        const tac_outer *o = &h->outer;
        double d = 0, n = 0;
        for (int r = 0; r < HAND_RANKS; r++)
            if (h->here[r]) d += h->a[i] - h->x[r][i], n++;
        d /= n;
        if (o->kind == TAC_OUTER_NESTEROV || o->kind == TAC_OUTER_CUSTOM) {
            h->u[i] = o->momentum * h->u[i] + d;
            h->a[i] -= o->lr * (d + o->momentum * h->u[i]);
        } else if (o->kind == TAC_OUTER_SLOWMO) {
            h->u[i] = o->momentum * h->u[i] + d / lr;
            h->a[i] -= o->lr * lr * h->u[i];
        } else {
            h->a[i] -= d;
        }
        for (int r = 0; r < HAND_RANKS; r++) h->x[r][i] = h->a[i];
    }
}

/* Up to that attempt; every fourth averages all. */
static inline void hand_attempts(by_hand *h, int64_t to)
{
    while (h->attempts < to) {
        hand_move(h, 0.1);
        if (h->attempts % EVERY == 0) hand_sync(h, 0, TRIAL_N, 0.1);
    }
}

static inline void hand_compare(const by_hand *h, int rank, const trial *t,
                                const char *what)
{
    float x[TRIAL_N];
    double worst = 0;
    trial_flat(t, x);
    for (size_t i = 0; i < TRIAL_N; i++)
        worst = fmax(worst, fabs(h->x[rank][i] - (double)x[i]));
    CHECK_MSG(worst < 2e-5, "%s: rank %d is off by %g after %lld attempts",
              what, rank, worst, (long long)h->attempts);
}

#endif
