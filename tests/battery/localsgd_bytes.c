/* localsgd_bytes.c: predicted bytes are the bytes that comm/ counted, exactly,
 * for every method, codec, number of fragments and levels; between
 * synchronisations there are none. */
#include "localsgd_trial.h"

static double halving(void *arg, int64_t attempt)
{
    (void)arg;
    return 0.4 / (double)(1 + attempt / 8);
}

static void compare(tac_comm *comm, const tac_localsgd_config *c,
                    int64_t attempts, const char *what)
{
    trial t;
    tac_localsgd_prediction p = {0};
    if (!trial_start(&t, comm, c, 1)) return;
    for (int64_t n = 1; n <= attempts; n++) {
        trial_move(&t, 0.1f);
        if (!CHECK_OK(tac_localsgd_step(
                t.l,
                &(tac_local_step){
                    .lr = halving(NULL, n), .loss = NAN, .samples = 1},
                NULL)))
            break;
    }
    CHECK_OK(tac_localsgd_finish(t.l));
    CHECK_MSG(all_equal(comm, trial_hash(&t)), "%s: ranks differ at the end",
              what);
    const tac_localsgd_model m = tac_localsgd_model_of(t.l);
    CHECK_OK(tac_localsgd_predict(tac_comm_context(comm), c, &m, t.size,
                                  attempts, halving, NULL, &p));
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK_MSG(s.bytes_wire == p.bytes_wire &&
                  s.bytes_logical == p.bytes_logical && s.syncs == p.syncs,
              "%s, %d ranks, %lld attempts: counted %llu of %llu bytes in %lld "
              "synchronisations, predicted %llu of %llu in %lld",
              what, t.size, (long long)attempts,
              (unsigned long long)s.bytes_wire,
              (unsigned long long)s.bytes_logical, (long long)s.syncs,
              (unsigned long long)p.bytes_wire,
              (unsigned long long)p.bytes_logical, (long long)p.syncs);
    trial_close(&t);
}

/* ---- every combination ----------------------------------------------------
 */

static void each(tac_comm *comm, tac_localsgd_config c, const char *name)
{
    static const char *const codecs[] = {NULL,
                                         "fp16",
                                         "int8,start=2",
                                         "fp4",
                                         "topk:0.1,warmup=3",
                                         "topk:0.1,bits=2,chunk=16,warmup=3"};
    char what[160];
    for (int k = 0; k < 6; k++)
        for (int64_t fragments = 1; fragments <= 4; fragments += 3)
            for (int total = 0; total < 2; total++) {
                /* half of them with eight ranks and with sanitizers */
                if ((TESTS_SLOW || tac_comm_size(comm) == 8) && (k + total) % 2)
                    continue;
                char line[200];
                c.codec = codecs[k];
                c.fragments = fragments;
                c.total = total ? 19 : 0;
                snprintf(what, sizeof what, "%s: %.120s", name,
                         tac_localsgd_describe(&c, line, sizeof line));
                compare(comm, &c, 19, what);
            }
}

static void methods(tac_comm *comm, void *arg)
{
    static const char *const names[] = {"local", "slowmo", "diloco",
                                        "streaming", "oneshot"};
    (void)arg;
    for (int i = 0; i < 5; i++) {
        tac_localsgd_config c = preset(comm, names[i], 4);
        c.strided = i % 2;
        each(comm, c, names[i]);
    }
}

static void rules(tac_comm *comm, void *arg)
{
    tac_localsgd_config c = preset(comm, "local", 2);
    (void)arg;
    c.schedule.kind = TAC_SYNC_QSR;
    c.schedule.alpha = 0.5;
    each(comm, c, "qsr");
    c = preset(comm, "diloco", 3);
    c.schedule.start = 5;
    each(comm, c, "post-local");
    c = preset(comm, "diloco", 4);
    c.delay = 4;
    each(comm, c, "one interval late");
    c.stale = TAC_STALE_EAGER;
    each(comm, c, "eager");
    c = preset(comm, "diloco", 4);
    c.delay = 3;
    c.drop_probability = 0.4;
    c.weighting = TAC_WEIGHT_SAMPLES;
    each(comm, c, "delayed, dropping");
}

static void levels(tac_comm *comm, void *arg)
{
    const int size = tac_comm_size(comm);
    tac_localsgd_config c = preset(comm, "diloco", 1);
    (void)arg;
    if (size % 2) return;
    c.n_levels = 2;
    c.levels[0] = (tac_sync_level){2, 2};
    c.levels[1] = (tac_sync_level){size, 6};
    each(comm, c, "levels");
    c.outer.kind = TAC_OUTER_AVERAGE;
    c.schedule.start = 3;
    each(comm, c, "levels, plain");
    if (size % 4 || size < 8) return;
    c.n_levels = 3;
    c.levels[1] = (tac_sync_level){4, 4};
    c.levels[2] = (tac_sync_level){size, 8};
    each(comm, c, "three levels");
}

/* ---- nothing in between ---------------------------------------------------
 */

static void quiet(tac_comm *comm, void *arg)
{
    trial t;
    const tac_localsgd_config c = preset(comm, "diloco", 5);
    uint64_t last = 0;
    (void)arg;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 1; n <= 20; n++) {
        tac_sync_event e;
        const int due = tac_localsgd_due(t.l);
        CHECK_OK(trial_step(&t, 0.1f, &e));
        const tac_localsgd_stats s = stats_of(t.l);
        CHECK_EQ(e.synced, n % 5 == 0);
        CHECK_EQ(due, e.synced);
        CHECK_EQ((long long)(s.bytes_wire - last),
                 n % 5 == 0 ? 4 * TRIAL_N : 0);
        CHECK_EQ((long long)s.bytes_control,
                 (long long)(s.syncs * sizeof(double) * 15));
        last = s.bytes_wire;
    }
    trial_close(&t);
}

/* tac_localsgd_mean is not counted, and changes nothing. */
static void mean(tac_comm *comm, void *arg)
{
    trial t;
    float out[TRIAL_N];
    const tac_localsgd_config c = preset(comm, "local", 4);
    (void)arg;
    if (!trial_start(&t, comm, &c, 3)) return;
    CHECK_EQ((long long)tac_localsgd_elements(t.l), TRIAL_N);
    trial_run(&t, 3, 0.1f);
    const uint64_t h = trial_hash(&t);
    CHECK_OK(tac_localsgd_mean(t.l, out));
    CHECK_EQ_U64(trial_hash(&t), h);
    CHECK_EQ((long long)stats_of(t.l).bytes_wire, 0);
    CHECK(all_equal(comm, tac_hash_bytes(TAC_HASH_INIT, out, sizeof out)));
    trial_close(&t);
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        if (TESTS_SLOW && ranks[i] == 8) continue;
        with_threads(ranks[i], NULL, methods, NULL);
        with_threads(ranks[i], NULL, rules, NULL);
        with_threads(ranks[i], NULL, levels, NULL);
        with_threads(ranks[i], NULL, quiet, NULL);
        with_threads(ranks[i], NULL, mean, NULL);
    }
    return tac_check_summary();
}
