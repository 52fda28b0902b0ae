/* localsgd_regroup.c: ranks leave between attempts, in the middle of a
 * synchronisation, and by a SIGKILL; the others go on. Compared with the same
 * thing done by hand in f64. (Ranks that join: localsgd_joins.c.) */
#include <signal.h>
#include <unistd.h>

#include "comm_fork.h"
#include "localsgd_regroup.h"

/* The rank of those that go on: `gone` is left out. */
static int new_rank(int rank, int gone)
{
    return rank - (rank > gone);
}

/* ---- a rank leaves between attempts ---------------------------------------
 */

typedef struct departure {
    meeting m;
    const char *method, *codec;
    int64_t fragments, at; /* the attempt after which it is gone */
    int gone;
} departure;

static void check_by_hand(const departure *d, const trial *t,
                          const tac_localsgd_config *c, int64_t attempts)
{
    static by_hand hands[HAND_RANKS];
    by_hand *h = &hands[t->rank];
    hand_open(h, c->outer, t->size);
    hand_attempts(h, d->at);
    h->here[d->gone] = 0;
    hand_attempts(h, attempts);
    hand_sync(h, 0, TRIAL_N, 0.1);
    hand_compare(h, t->rank, t, d->method);
}

/* Attempts until one fails. */
static void run_until_it_fails(trial *t)
{
    tac_status s = TAC_OK;
    while (s == TAC_OK && t->attempts < 40) s = one_step(t);
    CHECK_MSG(s == TAC_ERR_PEER || s == TAC_ERR_TIMEOUT || s == TAC_ERR_ABORTED,
              "a rank that is gone is %s", tac_status_name(s));
    CHECK_STATUS(tac_localsgd_settle(t->l), s);
}

static void leaves(tac_comm *comm, void *arg)
{
    departure *d = arg;
    enum { LAST = 18 };
    trial t;
    tac_regroup r;
    tac_localsgd_config c = preset(comm, d->method, EVERY);
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    c.codec = d->codec;
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_run(&t, d->at, rate);
    pthread_barrier_wait(&d->m.barrier);
    if (me == d->gone) {
        tac_comm_abort(comm, "enough");
        trial_close(&t);
        return;
    }
    run_until_it_fails(&t);
    tac_comm *next =
        meeting_join(&d->m, tac_comm_context(comm), new_rank(me, d->gone));
    if (CHECK_OK(tac_localsgd_regroup(t.l, next, &r))) {
        CHECK_EQ(r.ranks, size - 1);
        CHECK_EQ(r.joined, 0);
        CHECK_EQ((long long)r.forward, 0);
        CHECK_EQ((long long)r.adopted, 0);
        CHECK_EQ((long long)r.attempts, (long long)t.attempts);
        CHECK_EQ((long long)r.retried, t.attempts % EVERY == 0);
        trial_run(&t, LAST - t.attempts, rate);
        CHECK_OK(tac_localsgd_finish(t.l));
        CHECK(all_equal(next, trial_hash(&t)));
        CHECK_EQ((long long)stats_of(t.l).attempts, LAST);
        CHECK_EQ((long long)stats_of(t.l).syncs, LAST / EVERY + 1);
        if (!d->codec) check_by_hand(d, &t, &c, LAST);
    }
    trial_close(&t);
    tac_comm_destroy(next);
}

/* ---- and in the middle of a synchronisation -------------------------------
 */

/* An outer optimizer (Nesterov) that knows which fragment it is at. */
typedef struct bomb {
    meeting m;
    int gone;
    uint64_t step; /* at which it goes off, in the fragment of `n` elements */
    size_t n;
} bomb;

typedef struct fuse {
    bomb *b;
    tac_comm *comm;
    int armed;
} fuse;

static void explode(void *arg, size_t n, uint64_t step, double inner_lr,
                    float *anchor, const float *delta, float *const *state)
{
    const fuse *f = arg;
    float *u = state[0];
    (void)inner_lr;
    for (size_t i = 0; i < n; i++) {
        u[i] = 0.9f * u[i] + delta[i];
        anchor[i] -= 0.7f * (delta[i] + 0.9f * u[i]);
    }
    if (!f->armed || n != f->b->n || step != f->b->step) return;
    pthread_barrier_wait(&f->b->m.barrier); /* all have this average */
    if (tac_comm_rank(f->comm) != f->b->gone) return;
    tac_comm_abort(f->comm, "in the middle");
    usleep(100000); /* the others wait for it in vain */
}

/* Layers 0, 1, 2 are fragments: tensors a, b, c; d; e, f. With H = 3 all are
 * due at different attempts, but at the end together. */
static const int64_t layers[] = {0, 0, 0, 1, 2, 2};

static int bomb_start(trial *t, tac_comm *comm, fuse *f, tac_localsgd_config *c)
{
    *c = preset(comm, "local", EVERY);
    c->outer = (tac_outer){.kind = TAC_OUTER_CUSTOM,
                           .lr = 0.7,
                           .momentum = 0.9,
                           .fn = explode,
                           .arg = f,
                           .state_per_element = 1};
    c->fragments = 3;
    c->total = 7; /* fragments at 4 (0), 5 (1), 6 (2); the end at 7 */
    *t = (trial){
        .comm = comm, .rank = tac_comm_rank(comm), .size = tac_comm_size(comm)};
    trial_memory(t, 1);
    if (!CHECK_OK(tac_localsgd_create(comm, c, &t->l))) return 0;
    trial_add(t, layers);
    return CHECK_OK(tac_localsgd_start(t->l, TAC_START_VERIFY));
}

/* Fragment p: elements from..to of the flat model. */
static const size_t begins[] = {0, 18, 318, TRIAL_N};

static void bomb_by_hand(const bomb *b, const trial *t,
                         const tac_localsgd_config *c, int whole)
{
    static by_hand hands[HAND_RANKS];
    by_hand *h = &hands[t->rank];
    hand_open(h, c->outer, t->size);
    for (int n = 1; n <= 7; n++) {
        hand_move(h, 0.1);
        for (int p = 0; p < 3; p++) {
            /* b + floor(p H / P), 0 being H: 4; 1 and 5; 2 and 6 */
            const int due = p == 0 ? n == 4 : n == p || n == p + 4;
            if (!due && n != 7) continue;
            if (n == 7 && p > whole) h->here[b->gone] = 0;
            hand_sync(h, begins[p], begins[p + 1], 0.1);
        }
    }
    hand_compare(h, t->rank, t, "in the middle");
}

static void in_the_middle(tac_comm *comm, void *arg)
{
    bomb *b = arg;
    fuse f = {b, comm, 1};
    trial t;
    tac_localsgd_config c;
    tac_regroup r;
    tac_status s = TAC_OK;
    const int me = tac_comm_rank(comm), whole = b->n == 18 ? 0 : 1;
    if (!bomb_start(&t, comm, &f, &c)) return;
    for (int n = 0; n < 7 && s == TAC_OK; n++) s = one_step(&t);
    CHECK_STATUS(s, TAC_ERR_ABORTED);
    CHECK_EQ((long long)t.attempts, 7);
    if (me == b->gone) {
        trial_close(&t);
        return;
    }
    tac_comm *next =
        meeting_join(&b->m, tac_comm_context(comm), new_rank(me, b->gone));
    f.armed = 0;
    if (CHECK_OK(tac_localsgd_regroup(t.l, next, &r))) {
        CHECK_EQ((long long)r.attempts, 7);
        CHECK_EQ((long long)r.retried, 2 - whole);
        CHECK_EQ((long long)stats_of(t.l).syncs, 5 + 1);
        CHECK(all_equal(next, trial_hash(&t)));
        CHECK(tac_localsgd_is_clean(t.l));
        bomb_by_hand(b, &t, &c, whole);
        CHECK_OK(tac_localsgd_finish(t.l));
    }
    trial_close(&t);
    tac_comm_destroy(next);
}

/* ---- processes that are killed --------------------------------------------
 */

enum { BIG = 1 << 18, VICTIM = 1 };

typedef struct killing {
    board *second;
    unsigned delay_us;
    int64_t delay;
    const char *codec;
} killing;

static void *die_soon(void *arg)
{
    usleep(((const killing *)arg)->delay_us);
    kill(getpid(), SIGKILL);
    return NULL;
}

static tac_status big_step(tac_localsgd *l, float *x, int rank, int64_t n)
{
    for (size_t i = 0; i < BIG; i++)
        x[i] +=
            1e-3f *
            (float)(int)((i * 7 + (size_t)n * 13 + (size_t)rank * 31) % 17 - 8);
    return tac_localsgd_step(
        l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, NULL);
}

/* All survivors have the same anchor, whatever each had completed (regroup
 * compares), and go on. */
static void killed(tac_comm *comm, void *arg)
{
    killing *k = arg;
    pthread_t other;
    float *x = calloc(BIG, sizeof *x);
    tac_localsgd *l = NULL;
    tac_regroup r = {0};
    tac_status s = TAC_OK;
    int64_t n = 0;
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    tac_localsgd_config c = preset(comm, "diloco", 2);
    c.codec = k->codec;
    c.delay = k->delay;
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    CHECK_OK(tac_localsgd_add(
        l, &(tac_localsgd_tensor){
               .name = "x", .count = BIG, .data = x, .layer = -1}));
    CHECK_OK(tac_localsgd_start(l, TAC_START_BROADCAST));
    if (me == VICTIM) CHECK(pthread_create(&other, NULL, die_soon, k) == 0);
    while (s == TAC_OK && n < 100000) s = big_step(l, x, me, ++n);
    CHECK_STATUS(s, TAC_ERR_PEER);
    fork_rank f = {
        .board = k->second, .rank = new_rank(me, VICTIM), .size = size - 1};
    const tac_oob oob = {sizeof oob, fork_start, fork_test, fork_cancel, &f};
    tac_context *ctx = rank_context(f.rank, f.size);
    tac_comm *next = NULL;
    CHECK_OK(tac_comm_create_oob(ctx, f.rank, f.size, &oob, NULL, &next));
    CHECK_OK(tac_localsgd_regroup(l, next, &r));
    CHECK_EQ(r.ranks, size - 1);
    CHECK(r.forward >= 0 && r.forward <= 2 && r.adopted <= 1);
    n = r.attempts;
    for (int more = 0; more < 5; more++) CHECK_OK(big_step(l, x, me, ++n));
    CHECK_OK(tac_localsgd_finish(l));
    CHECK(all_equal(next, tac_hash_bytes(TAC_HASH_INIT, x, BIG * sizeof *x)));
    tac_localsgd_destroy(l);
    tac_comm_destroy(next);
    tac_context_destroy(ctx);
    free(x);
}

/* ---- all of it ------------------------------------------------------------
 */

static void all_departures(void)
{
    static const char *const methods[] = {"local", "slowmo", "diloco"};
    static const char *const codecs[] = {NULL, NULL, NULL, "int8",
                                         "topk:0.2,bits=2,chunk=16"};
    for (int k = 0; k < 5; k++)
        for (int64_t at = 5; at <= 8; at++) {
            departure d = {.method = methods[k % 3],
                           .codec = codecs[k],
                           .at = at,
                           .gone = (int)at % 4};
            meeting_open(&d.m, 4, 3);
            with_threads(4, NULL, leaves, &d);
            meeting_close(&d.m);
        }
}

static void all_bombs(void)
{
    static const size_t sizes[] = {18, 300};
    for (int k = 0; k < 2; k++) {
        /* fragment 0 had its turn at 4; fragment 1 at 1 and 5 */
        bomb b = {.gone = 2, .step = k ? 3 : 2, .n = sizes[k]};
        meeting_open(&b.m, 4, 3);
        with_threads(4, NULL, in_the_middle, &b);
        meeting_close(&b.m);
    }
}

/* (A codec whose call failed leaves its messages to the communicator, which a
 * leak checker can't know.) */
static void all_kills(board *b, board *second)
{
    static const char *const codecs[] = {NULL, "int8", NULL, NULL};
    const int times = TESTS_SLOW ? 2 : 4;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    const fork_end end = {VICTIM, SIGKILL};
    config.timeout_ms = 4000;
    for (int i = 0; i < times; i++) {
        killing k = {.second = second,
                     .delay_us = 20000 + (unsigned)i * 1700,
                     .codec = TESTS_SLOW ? NULL : codecs[i % 4],
                     .delay = i % 3};
        memset(second, 0, sizeof *second);
        with_processes(4, &config, killed, &k, b, &end);
    }
}

int main(void)
{
    board *b = board_create(), *second = board_create();
    all_departures();
    all_bombs();
    if (b && second) all_kills(b, second);
    return tac_check_summary();
}
