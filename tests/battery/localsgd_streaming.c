/* localsgd_streaming.c: fragments, delay, alpha, stale deltas and levels
 * against runs that are simple and against simulations of all ranks. */
#include "localsgd_trial.h"

/* ---- fragments are independent runs ---------------------------------------
 */

/* Tensor i is layer i; strided fragments of 3: {0, 3}, {1, 4}, {2, 5}. */
typedef struct shifted {
    int64_t first, then, seen;
} shifted;

static int64_t next_shifted(void *arg, const tac_sync_view *view)
{
    const shifted *s = arg;
    return view->attempts == 0 ? s->first : s->then;
}

/* Only the tensors of one fragment are registered. */
static void run_fragment(tac_comm *comm, tac_localsgd_config c, int64_t p,
                         int64_t attempts, trial *t)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    const int64_t h = c.schedule.every;
    shifted s = {p ? p * h / c.fragments : h, h, 0};
    const int64_t fragments = c.fragments;
    c.fragments = 0;
    c.schedule.kind = TAC_SYNC_CUSTOM;
    c.schedule.next = next_shifted;
    c.schedule.arg = &s;
    *t = (trial){
        .comm = comm, .rank = tac_comm_rank(comm), .size = tac_comm_size(comm)};
    trial_memory(t, 1);
    CHECK_OK(tac_localsgd_create(comm, &c, &t->l));
    for (int i = (int)p; i < TRIAL_TENSORS; i += (int)fragments)
        CHECK_OK(tac_localsgd_add(
            t->l, &(tac_localsgd_tensor){.name = names[i],
                                         .count = trial_counts[i],
                                         .data = t->p[i],
                                         .layer = -1}));
    CHECK_OK(tac_localsgd_start(t->l, TAC_START_VERIFY));
    trial_run(t, attempts, 0.1f);
}

static void one_by_one(tac_comm *comm, const tac_localsgd_config *c,
                       int64_t attempts)
{
    trial all, one;
    if (!trial_start(&all, comm, c, 0)) return;
    trial_run(&all, attempts, 0.1f);
    for (int64_t p = 0; p < c->fragments; p++) {
        run_fragment(comm, *c, p, attempts, &one);
        for (int i = (int)p; i < TRIAL_TENSORS; i += (int)c->fragments)
            CHECK_EQ_MEM(all.p[i], one.p[i], trial_counts[i] * sizeof(float));
        trial_close(&one);
    }
    trial_close(&all);
}

static void fragments(tac_comm *comm, void *arg)
{
    (void)arg;
    for (int64_t h = 5; h <= 7; h++)
        for (int64_t tau = 0; tau <= 3; tau += 3)
            for (int64_t p = 2; p <= 3; p++) {
                tac_localsgd_config c = preset(comm, "streaming", h);
                c.fragments = p;
                c.delay = tau;
                one_by_one(comm, &c, 23);
            }
}

/* ---- degenerate cases -----------------------------------------------------
 */

static uint64_t hash_of(tac_comm *comm, const tac_localsgd_config *c, int gap,
                        int64_t attempts)
{
    trial t;
    if (!trial_start(&t, comm, c, gap)) return 0;
    trial_run(&t, attempts, 0.1f);
    const uint64_t h = trial_hash(&t);
    trial_close(&t);
    return h;
}

static void degenerate(tac_comm *comm, void *arg)
{
    trial alone;
    tac_localsgd_config vanilla = preset(comm, "diloco", 4);
    tac_localsgd_config c = preset(comm, "streaming", 4);
    (void)arg;
    /* tau = 0 and alpha = 0 is vanilla; where tensors lie changes nothing */
    const uint64_t want = hash_of(comm, &vanilla, 1, 10);
    c.outer = vanilla.outer;
    c.delay = 0;
    c.alpha = 0;
    c.fragments = 1;
    CHECK_EQ_U64(hash_of(comm, &c, 0, 10), want);
    CHECK_EQ_U64(hash_of(comm, &c, 7, 10), want);
    /* alpha = 1 is no communication */
    trial_memory(&alone, 1);
    alone.rank = tac_comm_rank(comm);
    alone.attempts = 0;
    for (int n = 0; n < 10; n++) trial_move(&alone, 0.1f);
    for (int64_t tau = 0; tau <= 4; tau += 2)
        for (int64_t p = 1; p <= 3; p += 2) {
            c = preset(comm, "streaming", 4);
            c.alpha = 1;
            c.delay = tau;
            c.fragments = p;
            CHECK_EQ_U64(hash_of(comm, &c, 1, 10), trial_hash(&alone));
        }
    free(alone.memory);
}

/* ---- a simulation of all ranks --------------------------------------------
 */

enum { SIM_N = 19, SIM_RANKS = 8 };

typedef struct sim {
    int size;
    double x[SIM_RANKS][SIM_N], anchor[SIM_RANKS][SIM_N], u[SIM_RANKS][SIM_N];
    double own[SIM_RANKS][SIM_N], flying[SIM_N];
    int sent; /* attempt; -1: nothing is under way */
} sim;

static double pull(int r, int n, size_t i, double x)
{
    return 0.1 * (x - (double)trial_random(8, r, 0, i) +
                  0.1 * (double)trial_random(9, r, n, i));
}

static void sim_move(sim *s, int n)
{
    for (int r = 0; r < s->size; r++)
        for (size_t i = 0; i < SIM_N; i++)
            s->x[r][i] -= pull(r, n, i, s->x[r][i]);
}

static void sim_mean_delta(const sim *s, double *d)
{
    for (size_t i = 0; i < SIM_N; i++) {
        d[i] = 0;
        for (int r = 0; r < s->size; r++)
            d[i] += (s->anchor[r][i] - s->x[r][i]) / s->size;
    }
}

/* Nesterov 0.7, 0.9 on rank r's anchor. */
static void sim_outer(sim *s, int r, const double *d)
{
    for (size_t i = 0; i < SIM_N; i++) {
        s->u[r][i] = 0.9 * s->u[r][i] + d[i];
        s->anchor[r][i] -= 0.7 * (d[i] + 0.9 * s->u[r][i]);
    }
}

static void sim_land(sim *s, int r, double alpha)
{
    for (size_t i = 0; i < SIM_N; i++)
        s->x[r][i] = alpha * s->x[r][i] + (1 - alpha) * s->anchor[r][i];
}

static void sim_delayed(sim *s, int n, int every, int tau, double alpha)
{
    if (s->sent >= 0 && n - s->sent == tau) {
        for (int r = 0; r < s->size; r++) {
            sim_outer(s, r, s->flying);
            sim_land(s, r, alpha);
        }
        s->sent = -1;
    }
    if (n % every) return;
    sim_mean_delta(s, s->flying);
    s->sent = n;
}

/* One interval late (eager or not), arXiv:2502.12996. */
static void sim_late(sim *s, int n, int every, int eager)
{
    double fresh[SIM_N], own[SIM_RANKS][SIM_N], g[SIM_N];
    if (n % every) return;
    sim_mean_delta(s, fresh);
    for (int r = 0; r < s->size; r++)
        for (size_t i = 0; i < SIM_N; i++)
            own[r][i] = (s->anchor[r][i] - s->x[r][i]) / s->size;
    for (int r = 0; r < s->size; r++) {
        for (size_t i = 0; i < SIM_N; i++)
            g[i] = s->flying[i] + (eager ? own[r][i] - s->own[r][i] : 0);
        if (eager || s->sent >= 0) sim_outer(s, r, g);
        sim_land(s, r, 0);
    }
    memcpy(s->own, own, sizeof own);
    memcpy(s->flying, fresh, sizeof fresh);
    s->sent = n;
}

static void against_sim(tac_comm *comm, int every, int tau, double alpha,
                        int eager)
{
    static sim sims[SIM_RANKS];
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    sim *s = &sims[me];
    float x[SIM_N] = {0};
    tac_localsgd *l = NULL;
    double worst = 0;
    tac_localsgd_config c = preset(comm, "diloco", every);
    c.delay = tau;
    c.alpha = alpha;
    c.stale = eager ? TAC_STALE_EAGER : TAC_STALE_DELAYED;
    *s = (sim){.size = size, .sent = -1};
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    CHECK_OK(tac_localsgd_add(
        l, &(tac_localsgd_tensor){
               .name = "x", .count = SIM_N, .data = x, .layer = -1}));
    CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
    for (int n = 1; n <= 30; n++) {
        tac_sync_event e;
        sim_move(s, n);
        if (tau == every)
            sim_late(s, n, every, eager);
        else
            sim_delayed(s, n, every, tau, alpha);
        for (size_t i = 0; i < SIM_N; i++)
            x[i] -= (float)pull(me, n, i, (double)x[i]);
        CHECK_OK(tac_localsgd_step(
            l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, &e));
        CHECK_EQ(e.synced, n % every == 0);
        for (size_t i = 0; i < SIM_N; i++)
            worst = fmax(worst, fabs((double)x[i] - s->x[me][i]));
    }
    CHECK_MSG(worst < 2e-5, "H %d, delay %d, alpha %g, eager %d: off by %g",
              every, tau, alpha, eager, worst);
    CHECK_OK(tac_localsgd_finish(l));
    CHECK(all_equal(comm, tac_hash_bytes(TAC_HASH_INIT, x, sizeof x)));
    tac_localsgd_destroy(l);
}

static void simulated(tac_comm *comm, void *arg)
{
    (void)arg;
    against_sim(comm, 5, 1, 0, 0);
    against_sim(comm, 5, 4, 0.3, 0);
    against_sim(comm, 5, 5, 0, 0);
    against_sim(comm, 5, 5, 0, 1);
    against_sim(comm, 1, 1, 0, 1);
}

/* ---- levels ---------------------------------------------------------------
 */

static void levels(tac_comm *comm, void *arg)
{
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    const char *codec = arg;
    double x[SIM_RANKS] = {0}, anchor = 0;
    float y = 0;
    tac_localsgd *l = NULL;
    tac_localsgd_config c = preset(comm, "local", 1);
    c.codec = codec;
    c.n_levels = 2;
    c.levels[0] = (tac_sync_level){2, 2};
    c.levels[1] = (tac_sync_level){size, 6};
    CHECK_OK(tac_localsgd_create(comm, &c, &l));
    CHECK_OK(tac_localsgd_add(
        l, &(tac_localsgd_tensor){
               .name = "y", .count = 1, .data = &y, .layer = -1}));
    CHECK_OK(tac_localsgd_start(l, TAC_START_VERIFY));
    for (int n = 1; n <= 18; n++) {
        tac_sync_event e;
        double mean = 0;
        for (int r = 0; r < size; r++) x[r] -= pull(r, n, 0, x[r]);
        for (int r = 0; r < size; r++) mean += x[r] / size;
        for (int r = 0; r < size; r += 2)
            if (n % 2 == 0)
                x[r] = x[r + 1] = n % 6 ? (x[r] + x[r + 1]) / 2 : mean;
        if (n % 6 == 0) anchor = mean;
        y -= (float)pull(me, n, 0, (double)y);
        CHECK_OK(tac_localsgd_step(
            l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, &e));
        CHECK_EQ(e.synced, n % 2 == 0);
        CHECK_EQ(e.level, n % 6 == 0);
        CHECK_NEAR(y, x[me], codec ? 2e-3 : 1e-5);
    }
    CHECK_NEAR(y, anchor, codec ? 2e-3 : 1e-5);
    const tac_localsgd_stats s = stats_of(l);
    CHECK_EQ((long long)s.syncs, 9);
    CHECK_EQ((long long)s.syncs_level[0], 6);
    CHECK_EQ((long long)s.syncs_level[1], 3);
    tac_localsgd_destroy(l);
}

/* The caller's own collectives between, with deltas under way, are neither
 * disturbed nor waited for: H from 1 to 3 (pytorch#60891). */
static void beside_the_caller(tac_comm *comm, void *arg)
{
    (void)arg;
    for (int64_t h = 1; h <= 3; h++) {
        trial t;
        tac_localsgd_config c = preset(comm, "streaming", h);
        c.fragments = 2;
        const uint64_t want = hash_of(comm, &c, 1, 12);
        if (!trial_start(&t, comm, &c, 1)) return;
        for (int n = 0; n < 12; n++) {
            float g[3] = {1, 2, (float)t.rank}, sum[3];
            tac_req *req = NULL;
            CHECK_OK(
                tac_allreduce(comm, g, sum, 3, TAC_F32, TAC_SUM, NULL, &req));
            CHECK_OK(trial_step(&t, 0.1f, NULL));
            CHECK_OK(tac_wait(req, 0));
            CHECK_EQ_F64(sum[1], 2.0 * t.size);
        }
        CHECK_EQ_U64(trial_hash(&t), want);
        trial_close(&t);
    }
}

/* ---- dropped deltas -------------------------------------------------------
 */

/* A rank whose delta was left out goes on from its own parameters; the others
 * have the anchor. All dropped: nothing happens. */
static void dropping(tac_comm *comm, void *arg)
{
    trial t;
    uint64_t all[THREADS_MAX];
    int own = 0, common = 0;
    tac_localsgd_config c = preset(comm, "diloco", 2);
    (void)arg;
    c.drop_probability = 0.5;
    c.seed = 3;
    c.total = 41;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 1; n <= 40; n++) {
        CHECK_OK(trial_step(&t, 0.1f, NULL));
        if (n % 2) continue;
        gather_u64(comm, trial_hash(&t), all);
        int shared = 0; /* how many ranks have the most frequent hash */
        for (int r = 0; r < t.size; r++) {
            int same = 0;
            for (int k = 0; k < t.size; k++) same += all[k] == all[r];
            shared = same > shared ? same : shared;
        }
        common += shared;
        own += t.size - shared;
    }
    CHECK_OK(trial_step(&t, 0.1f, NULL));
    CHECK(all_equal(comm, trial_hash(&t)));
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK(s.dropped > 20 * t.size / 4 && s.dropped < 20 * t.size * 3 / 4);
    CHECK(own > 0 && common > 0);
    CHECK(all_equal(comm, (uint64_t)s.dropped));
    trial_close(&t);
    c.drop_probability = 1;
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_run(&t, 40, 0.1f);
    CHECK(!all_equal(comm, trial_hash(&t)) || t.size == 1);
    CHECK_EQ((long long)stats_of(t.l).dropped, 20 * t.size);
    CHECK_EQ_F64(stats_of(t.l).delta_norm, 0);
    trial_close(&t);
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        with_threads(ranks[i], NULL, fragments, NULL);
        with_threads(ranks[i], NULL, degenerate, NULL);
        with_threads(ranks[i], NULL, simulated, NULL);
        with_threads(ranks[i], NULL, beside_the_caller, NULL);
    }
    with_threads(2, NULL, levels, NULL);
    with_threads(4, NULL, levels, NULL);
    with_threads(8, NULL, levels, NULL);
    with_threads(4, NULL, levels, (void *)(uintptr_t) "fp16");
    with_threads(4, NULL, dropping, NULL);
    with_threads(8, NULL, dropping, NULL);
    return tac_check_summary();
}
