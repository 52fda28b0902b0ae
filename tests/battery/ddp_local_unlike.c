/* Ranks that are not alike: one that skips a step alone, one that is slow, one
 * that runs out of samples, one whose loss is no number. Nobody waits for ever,
 * all average equally often, and all end with the same parameters. */
#include "ddp_story.h"

#include "ddp_trial.h"
#include "tacit/clock.h"

static char json[160];

/* ---- through ddp_train ----------------------------------------------------
 */

#define COMMON                                                       \
    "--quiet --threads 1 --ranks 4 --data synth:300 --model mlp:12 " \
    "--batch 8 --steps 16 --log-every 1 "

static int run(const char *options, char line[8192])
{
    char more[256];
    FILE *f;

    snprintf(more, sizeof more, "--json %s", json);
    line[0] = '\0';
    remove(json);
    const int rc = story_run(options, more, 0);
    f = fopen(json, "r");
    if (f && !fgets(line, 8192, f)) line[0] = '\0';
    if (f) fclose(f);
    return rc;
}

static void expect(const char *line, const char *key, const char *want,
                   const char *options)
{
    char value[128];

    story_value(line, key, value);
    CHECK_MSG(!strcmp(value, want), "%s is %s, expected %s: %s", key, value,
              want, options);
}

/* The same run without the inf has as many averages and bytes. */
static void skips_alone(const char *mode)
{
    char options[512], with[8192], without[8192], value[128];

    snprintf(options, sizeof options,
             COMMON "--loss-scale dynamic --sync %s --inject-inf 5-6:2", mode);
    if (!CHECK_EQ(run(options, with), 0)) return;
    snprintf(options, sizeof options, COMMON "--loss-scale dynamic --sync %s",
             mode);
    if (!CHECK_EQ(run(options, without), 0)) return;
    expect(with, "attempts", "16", mode);
    expect(with, "skipped_steps", "2", mode);
    expect(without, "skipped_steps", "0", mode);
    story_value(without, "syncs", value);
    expect(with, "syncs", value, mode);
    story_value(without, "bytes_sync_wire", value);
    expect(with, "bytes_sync_wire", value, mode);
}

/* Every mode twice: the same bits. */
static void same_again(const char *mode)
{
    char options[512], a[8192], b[8192], value[128];

    snprintf(options, sizeof options, COMMON "--sync %s", mode);
    if (!CHECK_EQ(run(options, a), 0) || !CHECK_EQ(run(options, b), 0)) return;
    story_value(a, "params_hash", value);
    CHECK(value[0]);
    expect(b, "params_hash", value, mode);
    story_value(a, "eval_loss", value);
    expect(b, "eval_loss", value, mode);
    story_value(a, "local_loss", value);
    expect(b, "local_loss", value, mode);
}

/* A rate at which it can't but diverge: exit code 3 on all ranks. */
static void diverges(const char *mode)
{
    char options[512], line[8192];

    snprintf(options, sizeof options,
             COMMON "--optimizer sgd --lr 1e5 --sync %s", mode);
    CHECK_MSG(run(options, line) == 3, "%s", mode);
}

/* One rank's gradients alone are bad, for longer than is allowed. */
static void gives_up(const char *mode)
{
    char options[512], line[8192];

    snprintf(options, sizeof options,
             COMMON "--loss-scale dynamic --max-skips 4 --inject-inf 3-16:1 "
                    "--sync %s",
             mode);
    CHECK_MSG(run(options, line) == 3, "%s", mode);
}

/* ---- through the replica --------------------------------------------------
 */

static int64_t syncs[TRIAL_RANKS], dropped[TRIAL_RANKS];

static void keep(trial *t, tac_replica *r, int rank, int attempt)
{
    tac_localsgd_stats s;

    (void)t;
    (void)attempt;
    dropped[rank] = (int64_t)r->dropped;
    if (!r->local->lsgd) return;
    tac_localsgd_stats_get(r->local->lsgd, &s);
    syncs[rank] = s.syncs;
}

static void keep_slowly(trial *t, tac_replica *r, int rank, int attempt)
{
    keep(t, r, rank, attempt);
    if (rank == 1) tac_clock_sleep_ns(4000000);
}

static trial unlike(const char *sync)
{
    trial t = trial_of("fp32");

    t.config.sync = sync;
    t.config.sync_every = 5;
    t.config.batch = 16;
    t.ranks = 4;
    t.each = keep;
    return t;
}

static void all_synced(int ranks, int64_t want)
{
    for (int r = 0; r < ranks; r++) CHECK_EQ(syncs[r], want);
}

static int64_t expected_syncs(const trial *t)
{
    return t->attempts / 5 + (t->attempts % 5 != 0);
}

static void slow(const char *sync)
{
    trial t = unlike(sync);

    t.each = keep_slowly;
    trial_run(&t);
    if (strcmp(sync, "streaming")) all_synced(4, expected_syncs(&t));
    for (int r = 1; r < 4; r++) CHECK_EQ(syncs[r], syncs[0]);
    trial_free(&t);
}

/* Rank 1 is late in every interval and drops what is left of it. */
static void drops(void)
{
    trial t = unlike("local");

    t.config.late = "drop:0.002";
    t.config.sync_every = 5;
    t.each = keep_slowly;
    trial_run(&t);
    all_synced(4, expected_syncs(&t));
    CHECK_MSG(dropped[1] > 0, "nothing was dropped in %d attempts", t.attempts);
    trial_free(&t);
}

/* The last step of an epoch has two samples for four ranks. */
static void runs_out(const char *sync, int64_t worker_size)
{
    trial t = unlike(sync);

    t.samples = 64 * 2 + 2;
    t.attempts = 9;
    t.config.worker_size = worker_size;
    trial_run(&t);
    for (int r = 1; r < 4; r++)
        if (r % worker_size == 0) CHECK_EQ(syncs[r], syncs[0]);
    /* Three epochs of three steps. */
    CHECK_EQ(dropped[0], 0);
    CHECK_EQ(dropped[2], 3);
    CHECK_EQ(dropped[3], 3);
    trial_free(&t);
}

int main(void)
{
    static const char *const modes[] = {
        "local --sync-every 4",
        "slowmo --sync-every 4 --weighting steps",
        "diloco --sync-every 4 --worker-size 2",
        "streaming --sync-every 4 --sync-delay 2",
        "post-local --sync-every 4",
        "oneshot",
        "diloco --sync-every 4 --compress int8,stochastic"};
    int fd;

    snprintf(json, sizeof json, "%s/tacit-unlike-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    fd = mkstemp(json);
    if (!CHECK(fd >= 0)) return tac_check_summary();
    close(fd);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        same_again(modes[i]);
        skips_alone(modes[i]);
    }
    diverges(modes[0]);
    diverges(modes[3]);
    gives_up(modes[0]);
    gives_up(modes[2]);
    slow("local");
    slow("streaming");
    drops();
    runs_out("local", 1);
    runs_out("diloco", 2);
    remove(json);
    return tac_check_summary();
}
