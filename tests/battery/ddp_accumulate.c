/* Groups of micro-steps: accumulation is one large batch, also with clipping,
 * ragged ends and samples that don't divide; learning rates do not depend on
 * the number of ranks. */
#include "ddp_trial.h"

/* f32: rounding alone. Else `units` of the format, of what training moved. */
static double allowed(const char *precision, const trial *t, double units)
{
    if (!strcmp(precision, "fp32")) return 1e-6;
    return units * (strcmp(precision, "fp16") ? 0x1p-8 : 0x1p-11) *
           trial_moved(t);
}

/* The norm is taken and clipped once a group, of the whole group's gradient,
 * unscaled: the same as with the large batch, and clipping is at work. */
static void accumulate_and_clip(const char *precision)
{
    trial big = trial_of(precision), parts;

    big.config.clip_norm = 0.3;
    big.attempts = 8;
    parts = big;
    parts.config.accumulate = 4;
    parts.config.batch = 16;
    trial_run(&big);
    trial_run(&parts);
    for (int i = 0; i < big.attempts; i++) {
        CHECK(big.norm[i] > 0.3);
        CHECK_NEAR(parts.norm[i] / big.norm[i], 1, 1e-4);
    }
    const double d = trial_distance(&big, &parts);

    printf("%s, 4 micro-steps and clipping: relative distance %.2e\n",
           precision, d);
    CHECK(d <= allowed(precision, &big, 1));
    CHECK_EQ_U64(parts.applied[0], 8);
    trial_free(&big);
    trial_free(&parts);
}

/* The threshold does not depend on the scale: in bf16, whose exponents are
 * f32's, not one bit does. */
static void clip_ignores_the_scale(void)
{
    uint64_t hash[2];

    for (int i = 0; i < 2; i++) {
        trial t = trial_of("bf16");

        t.config.loss_scale = i ? "65536" : "none";
        t.config.clip_norm = 0.3;
        t.config.accumulate = 2;
        t.config.batch = 32;
        trial_run(&t);
        CHECK(t.norm[0] > 0.3);
        hash[i] = t.hash[0];
        trial_free(&t);
    }
    CHECK_EQ_U64(hash[1], hash[0]);
}

/* 101 samples over 3 ranks, micro-steps of 8, 3 a group: an epoch is a group of
 * 72 and one of 29, in whose last micro-step some ranks have padding alone.
 * Against one rank with batches of 72 and 29: each sample has the same weight
 * in its group, whatever its micro-step. A mean of means would be off by
 * percents. In 16 bits every term is rounded differently here, since 3/72 is
 * not 1/72 times a power of two, and the sum of terms that cancel is off by
 * more than a unit of itself. */
static void ragged(const char *precision)
{
    trial parts = trial_of(precision), big;

    parts.samples = 101;
    parts.attempts = 6;
    big = parts;
    parts.ranks = 3;
    parts.config.batch = 8;
    parts.config.accumulate = 3;
    big.config.batch = 72;
    trial_run(&parts);
    trial_run(&big);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ_F64(parts.count[i], i % 2 ? 29 : 72);
        CHECK_EQ_F64(big.count[i], i % 2 ? 29 : 72);
        CHECK_NEAR(parts.loss[i], big.loss[i], 1e-3);
    }
    const double d = trial_distance(&big, &parts);

    printf("%s, ragged groups: relative distance %.2e\n", precision, d);
    CHECK(d <= allowed(precision, &big, 8));
    CHECK_EQ_U64(parts.applied[0], 6); /* partial groups step, too */
    trial_free(&parts);
    trial_free(&big);
}

/* 9 samples for 8 ranks: in the second micro-step 7 of 8 ranks have padding
 * alone. Their gradient is 0, not NaN, and nothing is skipped. (At a scale of
 * 65536 it would be: the one sample counts 8 times the mean of 8 ranks.) */
static void padding_alone(const char *precision)
{
    trial t = trial_of(precision);

    t.samples = 9;
    t.ranks = 8;
    t.config.batch = 1;
    t.config.init_scale = 1024;
    t.attempts = 6;
    trial_run(&t);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ_F64(t.count[i], i % 2 ? 1 : 8);
        CHECK(isfinite(t.loss[i]));
    }
    CHECK_EQ_U64(t.report[0].skipped, 0);
    CHECK_EQ_U64(t.applied[0], 6);
    trial_free(&t);
}

static double applied_lr[TRIAL_RANKS][TRIAL_ATTEMPTS];

/* What the device used, not what the host believes. */
static void read_lr(trial *t, tac_replica *r, int rank, int attempt)
{
    tac_step_scalars s;

    (void)t;
    CHECK_OK(tac_optimizer_read(r->optimizer, &s, NULL));
    applied_lr[rank][attempt] = (double)s.lr;
    CHECK_NEAR(s.lr / tac_replica_lr(r), 1, 1e-6);
}

/* One step of the schedule a step, whatever the ranks and micro-steps. */
static void rates_are_the_worlds(void)
{
    static const int worlds[][2] = {{1, 1}, {4, 1}, {8, 1}, {2, 4}};
    double first[TRIAL_ATTEMPTS];

    for (int w = 0; w < 4; w++) {
        trial t = trial_of("fp32");

        t.ranks = worlds[w][0];
        t.config.accumulate = worlds[w][1];
        t.config.batch = 64 / t.ranks / t.config.accumulate;
        t.config.schedule = "cosine";
        t.config.warmup_steps = 3;
        t.attempts = 12;
        t.each = read_lr;
        trial_run(&t);
        for (int i = 0; i < 12; i++) {
            if (w == 0) first[i] = t.lr[i];
            CHECK_EQ_F64(t.lr[i], first[i]);
            for (int r = 0; r < t.ranks; r++)
                CHECK_EQ_F64(applied_lr[r][i], applied_lr[0][i]);
        }
        trial_free(&t);
    }
    CHECK_NEAR(first[0], 0.03 / 3, 1e-12);
    CHECK_NEAR(first[2], 0.03, 1e-12);
    CHECK(first[11] < 0.003 && first[11] > 0);
}

int main(void)
{
    accumulate_and_clip("fp32");
    accumulate_and_clip("fp16");
    accumulate_and_clip("bf16");
    clip_ignores_the_scale();
    ragged("fp32");
    ragged("fp16");
    ragged("bf16");
    padding_alone("fp32");
    padding_alone("fp16");
    rates_are_the_worlds();
    return tac_check_summary();
}
