/* localsgd_failures.c: ranks that disagree, die, are slow, skip steps or run
 * out of data. Disagreement is MISMATCH on all ranks; a death is an error on
 * all within the timeout and leaves parameters as they were; the rest neither
 * deadlocks nor changes the number of synchronisations. */
#include "localsgd_trial.h"
#include "tacit/clock.h"

/* ---- ranks that disagree --------------------------------------------------
 */

static void says(tac_comm *comm, const char *word)
{
    char text[900];
    (void)tac_context_error(tac_comm_context(comm), text, sizeof text);
    CHECK_MSG(strstr(text, word) != NULL, "'%s' is missing in: %s", word, text);
}

static void other_config(tac_comm *comm, void *arg)
{
    trial t;
    const int odd = tac_comm_rank(comm) == tac_comm_size(comm) - 1;
    (void)arg;
    for (int k = 0; k < 5; k++) {
        tac_localsgd_config c = preset(comm, "diloco", 4);
        if (odd && k == 0) c.schedule.every = 5;
        if (odd && k == 1) c.outer.lr = 0.6;
        if (odd && k == 2) c.codec = "int8";
        if (odd && k == 3) c.total = 100;
        if (!trial_open(&t, comm, &c, k == 4 && odd ? 1 : 0)) return;
        if (odd && k == 4)
            CHECK_OK(
                tac_localsgd_add(t.l, &(tac_localsgd_tensor){.name = "more",
                                                             .count = 1,
                                                             .data = t.memory,
                                                             .layer = -1}));
        CHECK_STATUS(tac_localsgd_start(t.l, TAC_START_BROADCAST),
                     TAC_ERR_MISMATCH);
        says(comm, k == 4 ? "other tensors" : "configurations differ");
        trial_close(&t);
    }
    /* the caller's communicator is healthy */
    CHECK_OK(tac_comm_error(comm, NULL, 0));
}

/* One rank can't even begin: all are told, none waits. */
static void bad_argument(tac_comm *comm, void *arg)
{
    trial t;
    const int odd = tac_comm_rank(comm) == 1;
    const tac_localsgd_config c = preset(comm, "local", 4);
    float x = 0;
    (void)arg;
    if (!trial_open(&t, comm, &c, 0)) return;
    /* layers for some parameters only */
    if (odd)
        CHECK_OK(tac_localsgd_add(
            t.l, &(tac_localsgd_tensor){
                     .name = "x", .count = 1, .data = &x, .layer = 3}));
    CHECK_STATUS(tac_localsgd_start(t.l, TAC_START_VERIFY), TAC_ERR_ARG);
    says(comm, "layer");
    if (!odd) says(comm, "rank 1");
    trial_close(&t);
}

static void other_weights(tac_comm *comm, void *arg)
{
    trial t;
    const int odd = tac_comm_rank(comm) == tac_comm_size(comm) - 1;
    const tac_localsgd_config c = preset(comm, "local", 4);
    (void)arg;
    if (!trial_open(&t, comm, &c, 0)) return;
    if (odd) t.p[3][7] += 1;
    CHECK_STATUS(tac_localsgd_start(t.l, TAC_START_VERIFY), TAC_ERR_MISMATCH);
    says(comm, "'d'");
    trial_close(&t);
    if (!trial_open(&t, comm, &c, 0)) return;
    if (odd) t.p[3][7] += 1;
    CHECK_OK(tac_localsgd_start(t.l, TAC_START_BROADCAST));
    CHECK(all_equal(comm, trial_hash(&t)));
    trial_close(&t);
}

/* One rank has made one attempt more. */
static void one_more(tac_comm *comm, void *arg)
{
    trial t;
    const int odd = tac_comm_rank(comm) == 0;
    for (int64_t base = 4; base <= 6; base++) {
        tac_localsgd_config c = preset(comm, "diloco", 4);
        tac_status s = TAC_OK;
        c.delay = *(const int *)arg;
        if (!trial_start(&t, comm, &c, 1)) return;
        for (int64_t n = 0; n < base + odd && s == TAC_OK; n++)
            s = trial_step(&t, 0.1f, NULL);
        if (s == TAC_OK) s = tac_localsgd_finish(t.l);
        CHECK_STATUS(s, TAC_ERR_MISMATCH);
        says(comm, "every rank calls tac_localsgd_step once an attempt");
        /* and so says every later call */
        CHECK_STATUS(
            tac_localsgd_step(t.l, &(tac_local_step){.samples = 1}, NULL),
            TAC_ERR_MISMATCH);
        trial_close(&t);
    }
}

/* ---- a rank that dies -----------------------------------------------------
 */

typedef struct death {
    int delay, level;
    const char *codec;
} death;

static tac_localsgd_config config_of(tac_comm *comm, const death *d)
{
    tac_localsgd_config c = preset(comm, "diloco", 3);
    c.delay = d->delay;
    c.codec = d->codec;
    if (d->level) {
        c.n_levels = 2;
        c.levels[0] = (tac_sync_level){2, 2};
        c.levels[1] = (tac_sync_level){tac_comm_size(comm), 6};
    }
    return c;
}

static void dies(tac_comm *comm, void *arg)
{
    const death *d = arg;
    trial t;
    const tac_localsgd_config c = config_of(comm, d);
    const double began = tac_clock_s();
    tac_status s = TAC_OK;
    uint64_t before = 0;
    if (!trial_start(&t, comm, &c, 1)) return;
    while (s == TAC_OK && t.attempts < 30) {
        if (t.rank == 1 && t.attempts == 7) break; /* it is gone */
        trial_move(&t, 0.1f);
        before = trial_hash(&t);
        s = tac_localsgd_step(
            t.l, &(tac_local_step){.lr = 0.1, .loss = NAN, .samples = 1}, NULL);
    }
    if (t.rank != 1) {
        CHECK_MSG(s == TAC_ERR_PEER || s == TAC_ERR_TIMEOUT ||
                      s == TAC_ERR_ABORTED,
                  "a peer's death is %s", tac_status_name(s));
        CHECK_EQ_U64(trial_hash(&t), before);
        CHECK_STATUS(tac_localsgd_finish(t.l), s);
    }
    CHECK(tac_clock_s() - began < 4);
    trial_close(&t);
}

/* ---- ranks that are not alike ---------------------------------------------
 */

static void unlike(tac_comm *comm, void *arg)
{
    trial t;
    const int me = tac_comm_rank(comm);
    tac_localsgd_config c = preset(comm, arg, 4);
    c.weighting = TAC_WEIGHT_SAMPLES;
    if (strcmp(arg, "streaming") == 0) c.fragments = 2;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 1; n <= 22; n++) {
        const int skipped = me == 1 && n % 3 == 0; /* an overflow */
        const int dry = me == 0 && n > 15;         /* no more batches */
        if (me == t.size - 1 && n % 8 == 0) tac_clock_sleep_ns(20000000);
        if (!skipped && !dry) trial_move(&t, 0.1f);
        CHECK_OK(tac_localsgd_step(t.l,
                                   &(tac_local_step){.lr = 0.1,
                                                     .loss = NAN,
                                                     .samples = !dry,
                                                     .skipped = skipped || dry},
                                   NULL));
    }
    CHECK_OK(tac_localsgd_finish(t.l));
    CHECK(all_equal(comm, trial_hash(&t)));
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK(all_equal(comm, (uint64_t)s.syncs));
    CHECK_EQ((long long)s.attempts, 22);
    CHECK_EQ((long long)s.skipped, (me == 1 ? 7 : 0) + (me == 0 ? 7 : 0));
    trial_close(&t);
}

/* Nobody has anything: the average is an even one, not NaN. */
static void all_dry(tac_comm *comm, void *arg)
{
    trial t;
    tac_localsgd_config c = preset(comm, "local", 1);
    (void)arg;
    c.weighting = TAC_WEIGHT_SAMPLES;
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_move(&t, 0.1f);
    CHECK_OK(tac_localsgd_step(t.l, &(tac_local_step){.skipped = 1}, NULL));
    for (size_t j = 0; j < trial_counts[3]; j++) CHECK(isfinite(t.p[3][j]));
    CHECK(all_equal(comm, trial_hash(&t)));
    trial_close(&t);
}

/* A late rank gives up the rest of its interval. */
static void late(tac_comm *comm, void *arg)
{
    trial t;
    int given_up = 0;
    tac_localsgd_config c = preset(comm, "local", 50);
    (void)arg;
    c.late = TAC_LATE_DROP;
    c.deadline_s = 0.2;
    c.weighting = TAC_WEIGHT_STEPS;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 1, is_late = 0; n <= 50; n++) {
        tac_sync_event e;
        const int mine = t.rank == 0;
        if (!is_late) trial_move(&t, 0.1f);
        if (!is_late && mine) tac_clock_sleep_ns(30000000);
        given_up += is_late;
        CHECK_OK(tac_localsgd_step(t.l,
                                   &(tac_local_step){.lr = 0.1,
                                                     .loss = NAN,
                                                     .samples = !is_late,
                                                     .skipped = is_late},
                                   &e));
        is_late = mine && e.late;
    }
    CHECK(t.rank == 0 ? given_up > 30 : given_up == 0);
    CHECK(all_equal(comm, trial_hash(&t)));
    trial_close(&t);
}

/* ---- the order of calls ---------------------------------------------------
 */

static void order(tac_comm *comm, void *arg)
{
    trial t;
    float out[TRIAL_N];
    tac_local_step s = {.lr = 0.1, .loss = NAN, .samples = 1};
    tac_localsgd_config c = preset(comm, "local", 4);
    (void)arg;
    c.total = 3;
    tac_localsgd_destroy(NULL);
    if (!trial_open(&t, comm, &c, 1)) return;
    CHECK_STATUS(tac_localsgd_step(t.l, &s, NULL), TAC_ERR_STATE);
    CHECK_STATUS(tac_localsgd_finish(t.l), TAC_ERR_STATE);
    CHECK_STATUS(tac_localsgd_mean(t.l, out), TAC_ERR_STATE);
    CHECK_OK(tac_localsgd_start(t.l, TAC_START_VERIFY));
    CHECK_STATUS(tac_localsgd_start(t.l, TAC_START_VERIFY), TAC_ERR_STATE);
    CHECK_STATUS(tac_localsgd_add(t.l, &(tac_localsgd_tensor){.name = "z"}),
                 TAC_ERR_STATE);
    s.samples = NAN;
    CHECK_STATUS(tac_localsgd_step(t.l, &s, NULL), TAC_ERR_ARG);
    s.samples = 1;
    for (int n = 0; n < 3; n++) CHECK_OK(tac_localsgd_step(t.l, &s, NULL));
    CHECK_STATUS(tac_localsgd_step(t.l, &s, NULL), TAC_ERR_STATE);
    says(comm, "total");
    CHECK_OK(tac_localsgd_finish(t.l));
    CHECK_STATUS(tac_localsgd_finish(t.l), TAC_ERR_STATE);
    CHECK_STATUS(tac_localsgd_step(t.l, &s, NULL), TAC_ERR_STATE);
    trial_close(&t);
}

int main(void)
{
    static const death deaths[] = {
        {0, 0, NULL}, {0, 0, "int8"}, {2, 0, NULL}, {3, 0, "fp4"}, {0, 1, NULL},
    };
    int delays[] = {0, 2, 4};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    for (int ranks = 2; ranks <= 5; ranks += 3) {
        with_threads(ranks, NULL, other_config, NULL);
        with_threads(ranks, NULL, other_weights, NULL);
        with_threads(ranks, NULL, bad_argument, NULL);
        for (int i = 0; i < 3; i++)
            with_threads(ranks, NULL, one_more, &delays[i]);
        with_threads(ranks, NULL, unlike, (void *)(uintptr_t) "local");
        with_threads(ranks, NULL, unlike, (void *)(uintptr_t) "diloco");
        with_threads(ranks, NULL, unlike, (void *)(uintptr_t) "streaming");
        with_threads(ranks, NULL, all_dry, NULL);
    }
    config.timeout_ms = 1500;
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        with_threads(4, &config, dies, (void *)(uintptr_t)&deaths[i]);
    with_threads(3, NULL, late, NULL);
    with_threads(1, NULL, order, NULL);
    with_threads(3, NULL, order, NULL);
    return tac_check_summary();
}
