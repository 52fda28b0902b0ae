/* localsgd_resume.c: stopped after any attempt and resumed from what was saved,
 * a run continues bit for bit: parameters, bytes, synchronisations; with deltas
 * under way, residuals, outer state, and rules that remember. And what must not
 * be resumed is refused, on all ranks. */
#include "localsgd_saved.h"

enum { ATTEMPTS = 23 };

typedef struct outcome {
    uint64_t hash, bytes;
    int64_t syncs, dropped;
} outcome;

static double falling(int64_t n)
{
    return 0.3 / (1 + (double)n / 5);
}

/* From the trial's attempt on, up to `until`. */
static void go_on(trial *t, int64_t until)
{
    while (t->attempts < until) {
        const double lr = falling(t->attempts + 1);
        trial_move(t, (float)lr);
        const tac_local_step s = {.lr = lr,
                                  .loss = 3.0 / (double)(t->attempts + t->rank),
                                  .samples =
                                      (double)(1 + (t->rank + t->attempts) % 3),
                                  .skipped = (t->attempts + t->rank) % 5 == 0};
        if (!CHECK_OK(tac_localsgd_step(t->l, &s, NULL))) return;
    }
}

static outcome end_of(trial *t)
{
    CHECK_OK(tac_localsgd_finish(t->l));
    const tac_localsgd_stats s = stats_of(t->l);
    return (outcome){trial_hash(t), s.bytes_wire, s.syncs, s.dropped};
}

static outcome uninterrupted(tac_comm *comm, const tac_localsgd_config *c)
{
    trial t;
    outcome o = {0};
    if (!trial_start(&t, comm, c, 2)) return o;
    go_on(&t, ATTEMPTS);
    o = end_of(&t);
    trial_close(&t);
    return o;
}

static void resumed(tac_comm *comm, const tac_localsgd_config *c, int64_t cut,
                    const outcome *want, const char *what)
{
    trial t, u;
    static saved all[THREADS_MAX];
    saved *s = &all[tac_comm_rank(comm)];
    *s = (saved){0};
    if (!trial_start(&t, comm, c, 2)) return;
    go_on(&t, cut);
    CHECK_OK(tac_localsgd_settle(t.l));
    CHECK_OK(save_state(t.l, s));
    if (!trial_open(&u, comm, c, 0)) return;
    for (int i = 0; i < TRIAL_TENSORS; i++)
        memcpy(u.p[i], t.p[i], trial_counts[i] * sizeof(float));
    u.attempts = t.attempts;
    trial_close(&t);
    CHECK_OK(load_state(u.l, s));
    if (CHECK_OK(tac_localsgd_start(u.l, TAC_START_LOADED))) {
        go_on(&u, ATTEMPTS);
        const outcome got = end_of(&u);
        CHECK_MSG(
            got.hash == want->hash && got.bytes == want->bytes &&
                got.syncs == want->syncs && got.dropped == want->dropped,
            "%s, cut after %lld: parameters %s, bytes %llu and %llu, "
            "synchronisations %lld and %lld",
            what, (long long)cut, got.hash == want->hash ? "equal" : "DIFFER",
            (unsigned long long)got.bytes, (unsigned long long)want->bytes,
            (long long)got.syncs, (long long)want->syncs);
    }
    trial_close(&u);
    saved_free(s);
}

static void every_phase(tac_comm *comm, const tac_localsgd_config *c,
                        const char *what)
{
    const outcome want = uninterrupted(comm, c);
    const int step = TESTS_SLOW ? 4 : 1;
    for (int64_t cut = 1; cut < ATTEMPTS; cut += step)
        resumed(comm, c, cut, &want, what);
}

static void configurations(tac_comm *comm, void *arg)
{
    const int size = tac_comm_size(comm);
    tac_localsgd_config c = preset(comm, "local", 4);
    (void)arg;
    every_phase(comm, &c, "local");
    c = preset(comm, "slowmo", 5);
    c.weighting = TAC_WEIGHT_STEPS;
    c.total = ATTEMPTS;
    every_phase(comm, &c, "slowmo");
    c = preset(comm, "streaming", 6);
    c.fragments = 3;
    c.delay = 4;
    c.codec = "fp4,stochastic";
    c.weighting = TAC_WEIGHT_SAMPLES;
    every_phase(comm, &c, "streaming");
    c = preset(comm, "diloco", 4);
    c.delay = 4;
    c.stale = TAC_STALE_EAGER;
    c.codec = "int8,start=1";
    every_phase(comm, &c, "eager");
    c = preset(comm, "diloco", 3);
    c.outer.kind = TAC_OUTER_ADAM;
    c.codec = "topk:0.2,warmup=2";
    c.schedule.start = 6;
    c.drop_probability = 0.3;
    every_phase(comm, &c, "adam, dropping");
    c = preset(comm, "local", 2);
    c.schedule.kind = TAC_SYNC_QSR;
    c.schedule.alpha = 0.3;
    every_phase(comm, &c, "qsr");
    c.schedule.kind = TAC_SYNC_ADACOMM;
    c.schedule.every = 5;
    every_phase(comm, &c, "adacomm");
    if (size % 2) return;
    c = preset(comm, "diloco", 1);
    c.codec = "int8";
    c.n_levels = 2;
    c.levels[0] = (tac_sync_level){2, 2};
    c.levels[1] = (tac_sync_level){size, 7};
    c.weighting = TAC_WEIGHT_SAMPLES;
    every_phase(comm, &c, "levels");
}

/* ---- refused --------------------------------------------------------------
 */

/* Loads s into a new object of configuration c. */
static tac_status load_into(tac_comm *comm, const tac_localsgd_config *c,
                            saved *s)
{
    trial u;
    if (!trial_open(&u, comm, c, 0)) return TAC_ERR_INTERNAL;
    if (s) CHECK_OK(load_state(u.l, s));
    const tac_status st = tac_localsgd_start(u.l, TAC_START_LOADED);
    trial_close(&u);
    return st;
}

static void refused(tac_comm *comm, void *arg)
{
    static saved all[2][THREADS_MAX];
    trial t;
    tac_localsgd_config c = preset(comm, "diloco", 4), other = c;
    const int me = tac_comm_rank(comm);
    saved *early = &all[0][me], *later = &all[1][me];
    (void)arg;
    *early = *later = (saved){0};
    if (!trial_start(&t, comm, &c, 2)) return;
    go_on(&t, 5);
    CHECK_OK(save_state(t.l, early));
    go_on(&t, 6);
    CHECK_OK(save_state(t.l, later));
    trial_close(&t);
    CHECK_OK(load_into(comm, &c, early));
    /* two checkpoints mixed */
    CHECK_STATUS(load_into(comm, &c, me == 0 ? later : early),
                 tac_comm_size(comm) > 1 ? TAC_ERR_MISMATCH : TAC_OK);
    /* one rank without */
    CHECK_STATUS(load_into(comm, &c, me == 0 ? NULL : early), TAC_ERR_STATE);
    other.outer.lr = 0.5;
    CHECK_STATUS(load_into(comm, &other, early), TAC_ERR_MISMATCH);
    other = c;
    other.total = 100;
    CHECK_OK(load_into(comm, &other, early));
    saved_free(early);
    saved_free(later);
}

/* A run that was at its end, where an interval ended, too, is given a later
 * one: it goes on as if it had had that from the beginning. */
static void extended(tac_comm *comm, void *arg)
{
    trial t, u;
    saved s = {0};
    tac_localsgd_config c = preset(comm, "local", 4);
    (void)arg;
    c.total = 16;
    if (!trial_start(&t, comm, &c, 2)) return;
    go_on(&t, 16);
    const outcome want = end_of(&t);
    trial_close(&t);
    c.total = 8;
    if (!trial_start(&t, comm, &c, 2)) return;
    go_on(&t, 8);
    CHECK_OK(save_state(t.l, &s));
    c.total = 16;
    if (!trial_open(&u, comm, &c, 0)) return;
    for (int i = 0; i < TRIAL_TENSORS; i++)
        memcpy(u.p[i], t.p[i], trial_counts[i] * sizeof(float));
    u.attempts = t.attempts;
    trial_close(&t);
    CHECK_OK(load_state(u.l, &s));
    if (CHECK_OK(tac_localsgd_start(u.l, TAC_START_LOADED))) {
        go_on(&u, 16);
        const outcome got = end_of(&u);
        CHECK_EQ_U64(got.hash, want.hash);
        CHECK_EQ_U64(got.bytes, want.bytes);
        CHECK_EQ(got.syncs, want.syncs);
    }
    trial_close(&u);
    saved_free(&s);
}

/* A walk with a delta under way says what to do. */
static void unsettled(tac_comm *comm, void *arg)
{
    trial t;
    saved s = {0};
    char text[400];
    tac_localsgd_config c = preset(comm, "diloco", 4);
    (void)arg;
    c.delay = 3;
    if (!trial_start(&t, comm, &c, 2)) return;
    go_on(&t, 4);
    CHECK_STATUS(save_state(t.l, &s), TAC_ERR_STATE);
    (void)tac_context_error(tac_comm_context(comm), text, sizeof text);
    CHECK(strstr(text, "tac_localsgd_settle") != NULL);
    CHECK_OK(tac_localsgd_settle(t.l));
    CHECK_OK(save_state(t.l, &s));
    trial_close(&t);
    saved_free(&s);
}

int main(void)
{
    with_threads(1, NULL, configurations, NULL);
    with_threads(2, NULL, configurations, NULL);
    with_threads(3, NULL, configurations, NULL);
    with_threads(1, NULL, refused, NULL);
    with_threads(4, NULL, refused, NULL);
    with_threads(2, NULL, unsettled, NULL);
    with_threads(2, NULL, extended, NULL);
    return tac_check_summary();
}
