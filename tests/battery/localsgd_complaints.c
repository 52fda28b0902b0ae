/* localsgd_complaints.c: what users of other systems ran into, where no other
 * battery has it (docs/localsgd.md lists all). */
#include "localsgd_trial.h"
#include "tacit/clock.h"

/* accelerate: the clock ticked once a micro-batch, so that accumulation made
 * intervals shorter and averaged in the middle of a window. */
static void accumulation(tac_comm *comm, void *arg)
{
    trial t;
    const tac_localsgd_config c = preset(comm, "local", 3);
    (void)arg;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 1; n <= 9; n++) {
        tac_sync_event e;
        for (int micro = 0; micro < 4; micro++) tac_localsgd_micro_step(t.l);
        CHECK_OK(trial_step(&t, 0.1f, &e));
        CHECK_EQ(e.synced, n % 3 == 0);
        CHECK_EQ((long long)e.interval, e.synced ? 3 : 0);
    }
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK_EQ((long long)s.attempts, 9);
    CHECK_EQ((long long)s.micro_steps, 36);
    CHECK_EQ((long long)s.syncs, 3);
    trial_close(&t);
}

static uint64_t final_hash(tac_comm *comm, const tac_localsgd_config *c,
                           int64_t attempts)
{
    trial t;
    if (!trial_start(&t, comm, c, 1)) return 0;
    trial_run(&t, attempts, 0.1f);
    CHECK_OK(tac_localsgd_finish(t.l));
    const uint64_t h = trial_hash(&t);
    trial_close(&t);
    return h;
}

/* pytorch#73285, #61204: warm-up has one owner, and is averaging in every
 * attempt, bit by bit, whatever comes afterwards; pytorch#74157: an interval of
 * one is that, too. */
static void warm_up(tac_comm *comm, void *arg)
{
    tac_localsgd_config every = preset(comm, "local", 1);
    tac_localsgd_config c = preset(comm, "streaming", 4);
    const uint64_t want = final_hash(comm, &every, 8);
    (void)arg;
    c.schedule.start = 8;
    c.fragments = 2;
    c.codec = "fp4";
    CHECK_EQ_U64(final_hash(comm, &c, 8), want);
    c.schedule.start = 100;
    CHECK_EQ_U64(final_hash(comm, &c, 8), want);
    every.schedule.every = 4;
    CHECK(final_hash(comm, &every, 8) != want || tac_comm_size(comm) == 1);
}

/* torchft#171: a worker may be a data-parallel group. Ranks with the same place
 * in their workers form the communicator; each keeps the same replica. */
static void workers(tac_comm *comm, void *arg)
{
    trial t;
    tac_comm *cross = NULL;
    const int me = tac_comm_rank(comm), in_worker = 2;
    (void)arg;
    CHECK_OK(tac_comm_split(comm, me % in_worker, me, &cross));
    const tac_localsgd_config c = preset(cross, "diloco", 3);
    if (trial_start(&t, cross, &c, 1)) {
        trial_run(&t, 9, 0.1f); /* noise of the worker's number */
        CHECK(all_equal(comm, trial_hash(&t)));
    }
    trial_close(&t);
    tac_comm_destroy(cross);
}

/* torchft#205: fragments that are reduced in different orders deadlock. Ranks
 * here are early and late by turns. */
static void skewed(tac_comm *comm, void *arg)
{
    trial t;
    tac_localsgd_config c = preset(comm, "streaming", 3);
    (void)arg;
    c.fragments = 6;
    c.delay = 2;
    if (!trial_start(&t, comm, &c, 1)) return;
    for (int n = 0; n < 24; n++) {
        const tac_rng_key key = {4, TAC_STREAM_USER + (uint32_t)t.rank, 0};
        tac_clock_sleep_ns(tac_rng_below(&key, (uint64_t)n, 3000000));
        CHECK_OK(trial_step(&t, 0.1f, NULL));
    }
    CHECK_OK(tac_localsgd_finish(t.l));
    CHECK(all_equal(comm, trial_hash(&t)));
    trial_close(&t);
}

/* hivemind#515, torchft#39: who is missing is said, within the deadline. */
static void missing(tac_comm *comm, void *arg)
{
    trial t;
    char text[600];
    const tac_localsgd_config c = preset(comm, "local", 2);
    (void)arg;
    if (!trial_start(&t, comm, &c, 1)) return;
    const double began = tac_clock_s();
    if (t.rank == 2) {
        trial_run(&t, 1, 0.1f);
        tac_clock_sleep_ns(1200000000); /* stopped in a debugger, say */
    } else {
        CHECK_OK(trial_step(&t, 0.1f, NULL));
        CHECK_STATUS(trial_step(&t, 0.1f, NULL), TAC_ERR_TIMEOUT);
        (void)tac_context_error(tac_comm_context(comm), text, sizeof text);
        CHECK_MSG(strstr(text, "2") != NULL, "names nobody: %s", text);
        CHECK(tac_clock_s() - began < 1.1);
    }
    trial_close(&t);
}

/* pytorch#59699: how far apart replicas are can be seen. */
static void distance(tac_comm *comm, void *arg)
{
    trial t;
    const tac_localsgd_config c = preset(comm, "diloco", 5);
    (void)arg;
    if (!trial_start(&t, comm, &c, 1)) return;
    CHECK(isnan(stats_of(t.l).consensus_distance));
    trial_run(&t, 10, 0.1f);
    const tac_localsgd_stats s = stats_of(t.l);
    CHECK(s.delta_norm > 0);
    if (t.size > 1) {
        CHECK(s.consensus_distance > 0);
        CHECK(s.cosine > 0 && s.cosine < 1);
    } else {
        CHECK_EQ_F64(s.consensus_distance, 0);
        CHECK_NEAR(s.cosine, 1, 1e-6);
    }
    CHECK(s.sync_s > 0 && s.wait_s >= 0 && s.wait_s <= s.sync_s + 1);
    trial_close(&t);
}

int main(void)
{
    tac_comm_config quick = TAC_COMM_CONFIG_INIT;
    static const int ranks[] = {1, 2, 4};
    for (int i = 0; i < 3; i++) {
        with_threads(ranks[i], NULL, accumulation, NULL);
        with_threads(ranks[i], NULL, warm_up, NULL);
        with_threads(ranks[i], NULL, distance, NULL);
    }
    with_threads(4, NULL, workers, NULL);
    with_threads(8, NULL, workers, NULL);
    with_threads(4, NULL, skewed, NULL);
    quick.timeout_ms = 600;
    with_threads(4, &quick, missing, NULL);
    return tac_check_summary();
}
