/* Local modes against what they must be equal to: averaged gradients, one rank
 * alone, themselves. Parameters are compared, not losses. */
#include "ddp_trial.h"

/* Plain sgd, for which averages of parameters are averages of gradients. */
static trial plain(const char *sync, int ranks)
{
    trial t = trial_of("fp32");

    t.config.sync = sync;
    t.config.momentum = 0;
    t.config.lr = 0.05;
    t.config.batch = 64 / ranks;
    t.ranks = ranks;
    return t;
}

/* Runs it and returns how far it ended from `want`, relatively. */
static double distance(trial *t, const trial *want)
{
    trial_run(t);
    const double d = trial_distance(want, t);
    trial_free(t);
    return d;
}

/* ---- H = 1 is averaging gradients ----------------------------------------
 */

static void every_attempt_is_grad(int ranks)
{
    trial grad = plain("grad", ranks), local = plain("local", ranks);
    trial post = plain("post-local", ranks), sgd = plain("local", ranks);

    trial_run(&grad);
    local.config.sync_every = 1;
    CHECK(distance(&local, &grad) < 1e-6);
    post.config.sync_start = post.attempts;
    CHECK(distance(&post, &grad) < 1e-6);
    /* An outer step of 1 is averaging, by way of the anchor. */
    sgd.config.sync_every = 1;
    sgd.config.outer = "sgd";
    CHECK(distance(&sgd, &grad) < 1e-6);
    /* With momentum, which stays local, it is not the same, but near. */
    trial_free(&grad);
}

/* 64 * 24 + 22 samples: at the end of an epoch ranks have 6, 6, 5 and 5, and
 * what they contribute has to be weighted. */
static void uneven(void)
{
    trial grad = plain("grad", 4), local = plain("local", 4), even;

    grad.samples = local.samples = SANITIZED ? 64 * 2 + 22 : 64 * 8 + 22;
    trial_run(&grad);
    local.config.sync_every = 1;
    even = local;
    local.config.weighting = "samples";
    CHECK(distance(&local, &grad) < 1e-6);
    CHECK(distance(&even, &grad) > 1e-6);
    trial_free(&grad);
}

/* ---- one worker is averaging gradients ------------------------------------
 */

/* Bitwise: gradients are averaged by the same calls, and the average of one
 * worker's parameters is what they are. */
static void one_worker_is_grad(void)
{
    trial grad = trial_of("fp32");

    grad.ranks = 4;
    grad.config.batch = 16;
    grad.config.optimizer = "adamw";
    trial_run(&grad);
    for (int every = 1; every <= 7; every += 6) {
        trial t = grad;

        t.theta = NULL;
        t.config.sync = "local";
        t.config.sync_every = every;
        t.config.worker_size = 4;
        trial_run(&t);
        CHECK_EQ_U64(t.hash[0], grad.hash[0]);
        trial_free(&t);
    }
    trial_free(&grad);
}

/* Two workers of two ranks, each step averaged: gradients again. */
static void workers_of_two(void)
{
    trial grad = plain("grad", 4), local = plain("local", 4);

    trial_run(&grad);
    local.config.sync_every = 1;
    local.config.worker_size = 2;
    CHECK(distance(&local, &grad) < 1e-6);
    trial_free(&grad);
}

/* ---- the same data everywhere --------------------------------------------
 */

/* 2 or 4 equal numbers have that number as their mean, to the bit: as many
 * ranks as you like go the way of one. */
static void alike(const char *sync, int64_t every, const char *precision)
{
    trial one = trial_of(precision), t;

    one.config.sync = sync;
    one.config.sync_every = every;
    one.config.momentum = 0.9;
    one.config.batch = 16;
    one.alike = 1;
    t = one;
    trial_run(&one);
    t.ranks = 4;
    trial_run(&t);
    CHECK_MSG(t.hash[0] == one.hash[0], "%s, H = %lld, %s", sync,
              (long long)every, precision);
    trial_free(&one);
    trial_free(&t);
}

/* And plain averages of equal replicas change nothing at all. */
static void alike_is_alone(void)
{
    trial alone = trial_of("fp32"), t;

    alone.config.batch = 16;
    alone.alike = 1;
    t = alone;
    trial_run(&alone);
    t.ranks = 2;
    t.config.sync = "local";
    t.config.sync_every = 3;
    trial_run(&t);
    CHECK_EQ_U64(t.hash[0], alone.hash[0]);
    trial_free(&alone);
    trial_free(&t);
}

/* ---- working weights ------------------------------------------------------
 */

/* After each attempt 16-bit weights are those of the parameters, whether these
 * came from the optimizer or from an average. */
static void weights_follow(trial *t, tac_replica *r, int rank, int attempt)
{
    const size_t n = tac_params_padded(r->params);
    uint16_t *before = malloc(n * sizeof *before);

    (void)rank;
    (void)attempt;
    if (!CHECK(before) || !CHECK(r->master)) return;
    memcpy(before, tac_master_weights(r->master), n * sizeof *before);
    CHECK_OK(tac_master_refresh(r->master, NULL));
    CHECK_MSG(
        !memcmp(before, tac_master_weights(r->master), n * sizeof *before),
        "%s: working weights are not the parameters'", t->config.sync);
    free(before);
}

static void working_weights(const char *sync, int64_t worker_size)
{
    trial t = trial_of("bf16");

    t.config.sync = sync;
    t.config.sync_every = 3;
    t.config.worker_size = worker_size;
    t.config.batch = 16;
    t.ranks = 4;
    t.each = weights_follow;
    trial_run(&t);
    trial_free(&t);
}

/* ---- losses ---------------------------------------------------------------
 */

/* AdaComm looks at the loss of each attempt. With losses that fall it averages
 * less often than with a fixed interval, and all ranks have the same idea. */
static int64_t syncs;

static void count_syncs(trial *t, tac_replica *r, int rank, int attempt)
{
    tac_localsgd_stats s;

    if (rank != 0 || attempt + 1 < t->attempts) return;
    tac_localsgd_stats_get(r->local->lsgd, &s);
    syncs = s.syncs;
}

static void adacomm(void)
{
    trial t = trial_of("fp32");

    t.config.sync = "local";
    t.config.sync_every = 4;
    t.config.sync_schedule = "adacomm";
    t.config.momentum = 0.9;
    t.config.batch = 16;
    t.ranks = 4;
    t.attempts = 60;
    t.each = count_syncs;
    trial_run(&t);
    /* ceil(4 sqrt(loss / loss_0)) is at most 4, and the loss falls. */
    CHECK_MSG(t.loss[t.attempts - 1] < 0.5 * t.loss[0], "loss %g to %g",
              t.loss[0], t.loss[t.attempts - 1]);
    CHECK_MSG(syncs > t.attempts / 4 + 1, "%lld", (long long)syncs);
    trial_free(&t);
}

int main(void)
{
    every_attempt_is_grad(2);
    every_attempt_is_grad(3);
    uneven();
    one_worker_is_grad();
    workers_of_two();
    alike("local", 1, "fp32");
    alike("local", 5, "bf16");
    alike("slowmo", 4, "fp32");
    alike("diloco", 5, "fp32");
    alike("streaming", 4, "fp32");
    alike("oneshot", 0, "fp32");
    alike_is_alone();
    working_weights("local", 1);
    working_weights("diloco", 2);
    working_weights("streaming", 1);
    adacomm();
    return tac_check_summary();
}
