/* Steps that the scaler skips, on thread ranks: an inf of one rank is a skipped
 * step of all, what is skipped counts where it should, scales change no bit
 * that they should not, and too many in a row end the run. */
#include "ddp_trial.h"

/* Seven attempts of which one is skipped: six steps; the rate has advanced six
 * times, and has the values of six steps; the data has advanced seven. */
static void seven_attempts(void)
{
    trial t = trial_of("fp16"), six = trial_of("fp16");

    t.ranks = six.ranks = 2;
    t.config.batch = six.config.batch = 2;
    t.config.schedule = six.config.schedule = "linear";
    t.config.warmup_steps = six.config.warmup_steps = 2;
    t.attempts = six.attempts = 7;
    t.config.inject_inf = "3:1";
    trial_run(&t);
    trial_run(&six);
    for (int r = 0; r < 2; r++) {
        CHECK_EQ_U64(t.applied[r], 6);
        CHECK_EQ_U64(t.report[r].updates, 7);
        CHECK_EQ_U64(t.report[r].skipped, 1);
        CHECK_EQ_U64(t.report[r].consecutive, 0);
        CHECK_EQ_F64(t.report[r].scale, 32768);
        CHECK_OK(t.polled[r]);
    }
    CHECK_EQ_U64(six.applied[0], 7);
    CHECK_EQ_U64(t.position, six.position);
    for (int i = 0; i < 7; i++) {
        CHECK_EQ_F64(t.lr[i], six.lr[i < 2 ? i : i - 1]);
        CHECK(isfinite(t.loss[i]));
    }
    CHECK_EQ_F64(t.lr[2], t.lr[1]);
    CHECK(t.lr[4] != t.lr[3]);
    /* The same samples at the same attempts, and until then the same bits. */
    for (int i = 0; i < 3; i++) CHECK_EQ_F64(t.loss[i], six.loss[i]);
    CHECK(t.hash[0] != six.hash[0]);
    trial_free(&t);
    trial_free(&six);
}

/* The step's parameters stay to the bit. */
static uint64_t hash_after[TRIAL_ATTEMPTS];

static void keep_hash(trial *t, tac_replica *r, int rank, int attempt)
{
    uint64_t h = 0;

    (void)t;
    CHECK_OK(tac_replica_hash(r, &h));
    if (rank == 0) hash_after[attempt] = h;
}

/* Eight ranks, one inf on one of them: all skip that step once, the scale
 * halves once, training goes on. With every optimizer. */
static void one_inf_of_eight(void)
{
    static const char *const optimizers[] = {"sgd", "adamw", "adafactor",
                                             "adamw8bit"};

    for (int o = 0; o < 4; o++) {
        trial t = trial_of("fp16");

        t.ranks = 8;
        t.config.batch = 8;
        t.config.optimizer = optimizers[o];
        t.config.clip_norm = o == 0 ? 0.5 : 0;
        t.config.inject_inf = "5:3";
        t.attempts = SANITIZED ? 8 : 20;
        t.each = keep_hash;
        trial_run(&t);
        for (int r = 0; r < 8; r++) {
            CHECK_EQ_U64(t.report[r].skipped, 1);
            CHECK_EQ_F64(t.report[r].scale, 32768);
            CHECK_EQ_U64(t.applied[r], (unsigned)t.attempts - 1);
        }
        CHECK_EQ_U64(hash_after[4], hash_after[3]);
        CHECK(hash_after[5] != hash_after[4]);
        CHECK(hash_after[3] != hash_after[2]);
        CHECK(t.loss[t.attempts - 1] < t.loss[0]);
        trial_free(&t);
    }
}

/* Without loss scaling nothing is skipped, and the inf reaches the weights. */
static void unscaled_inf_diverges(void)
{
    trial t = trial_of("fp32");

    t.ranks = 2;
    t.config.batch = 32;
    t.config.inject_inf = "2";
    t.attempts = 4;
    trial_run(&t);
    CHECK_EQ_U64(t.report[0].skipped, 0);
    CHECK(isfinite(t.loss[1]) && !isfinite(t.loss[3]));
    CHECK_EQ_F64(t.nonfinite[3], 0);
    trial_free(&t);
}

/* bf16 has f32's exponents, so a scale that is a power of two changes no bit:
 * gradients are divided by what their own backward was multiplied with, while
 * the scale grows every second step and falls at an inf. */
static void scales_change_no_bit(void)
{
    static const char *const scales[] = {"1", "dynamic", "1024"};
    uint64_t hash[3];

    for (int i = 0; i < 3; i++) {
        trial t = trial_of("bf16");

        t.ranks = 2;
        t.config.batch = 32;
        t.config.loss_scale = scales[i];
        t.config.growth_interval = 2;
        t.config.clip_norm = 0.7;
        t.config.inject_inf = "4";
        trial_run(&t);
        CHECK_EQ_U64(t.report[0].skipped, 1);
        if (i == 1) /* 3 steps, the inf, the others */
            CHECK_EQ_F64(t.report[0].scale,
                         65536 * 2 * 0.5 * ldexp(1, (t.attempts - 4) / 2));
        else
            CHECK_EQ_F64(t.report[0].scale, atof(scales[i]));
        hash[i] = t.hash[0];
        trial_free(&t);
    }
    CHECK_EQ_U64(hash[1], hash[0]);
    CHECK_EQ_U64(hash[2], hash[0]);
}

/* Too large a first scale: gradients overflow in f16 by themselves until it has
 * halved often enough. No loss is to blame, and none is hidden. */
static void finds_its_scale(void)
{
    trial t = trial_of("fp16");

    t.ranks = 2;
    t.config.batch = 32;
    t.config.init_scale = t.config.max_scale = 0x1p40;
    t.attempts = 40;
    trial_run(&t);
    CHECK(t.report[0].skipped > 5);
    CHECK_EQ_F64(t.report[0].scale, ldexp(1, 40 - (int)t.report[0].skipped));
    CHECK_EQ_U64(t.applied[0], 40 - t.report[0].skipped);
    CHECK(t.loss[39] < t.loss[0]);
    for (int i = 0; i < 40; i++) CHECK_EQ_F64(t.count[i], 64);
    trial_free(&t);
}

/* Weights that make the activations of attempt 4 overflow in f16, and go back
 * to what they were after it. */
static void blow_up(trial *t, tac_replica *r, int rank, int attempt)
{
    float *theta = tac_params_values(r->params);
    const float factor = attempt == 2 ? 0x1p20f : attempt == 3 ? 0x1p-20f : 1;

    (void)t;
    (void)rank;
    if (attempt == 3) CHECK_EQ_U64(r->scaling.skipped, 1);
    if (factor == 1) return;
    for (size_t i = 0; i < tac_params_padded(r->params); i++)
        theta[i] *= factor;
    CHECK_OK(tac_replica_refresh(r));
}

/* A loss that is not finite in a skipped step is no divergence: it is counted,
 * is part of no mean, and training goes on. */
static void losses_of_skipped_steps(void)
{
    trial t = trial_of("fp16"), calm;

    t.ranks = 2;
    t.config.accumulate = 2;
    t.config.batch = 16;
    t.attempts = 10;
    calm = t;
    calm.config.inject_inf = "4";
    t.each = blow_up;
    trial_run(&t);
    trial_run(&calm);
    for (int i = 0; i < t.attempts; i++) {
        CHECK_EQ_F64(t.nonfinite[i], i == 3 ? 64 : 0);
        CHECK_EQ_F64(t.count[i], i == 3 ? 0 : 64);
        if (i != 3) CHECK_EQ_F64(t.loss[i], calm.loss[i]);
    }
    CHECK_EQ_U64(t.report[0].skipped, 1);
    CHECK_EQ_U64(t.hash[0], calm.hash[0]);
    CHECK_OK(t.polled[0]);
    trial_free(&t);
    trial_free(&calm);
}

/* A hundred in a row: the verdict names step, rank, tensor, scale. */
static void gives_up(void)
{
    trial t = trial_of("fp16");

    t.ranks = 4;
    t.config.batch = 4;
    t.config.inject_inf = "4-120:2";
    t.attempts = 110;
    trial_run(&t);
    for (int r = 0; r < 4; r++) {
        CHECK(t.polled[r] == TAC_ERR_DIVERGED);
        CHECK_EQ(t.origin[r], r == 2);
        CHECK_EQ_U64(t.report[r].skipped, 107);
        CHECK_EQ_F64(t.report[r].scale, 1);
        CHECK_EQ_U64(t.applied[r], 3);
        char who[40];

        snprintf(who, sizeof who, "rank %d, step 103: 100 steps", r);
        CHECK(strstr(t.why[r], who));
        CHECK(strstr(t.why[r], r == 2 ? ": the gradient" : ": the averaged"));
        CHECK(strstr(t.why[r], "gradient of fc3."));
        CHECK(strstr(t.why[r], "(element 0)"));
        CHECK(strstr(t.why[r], "loss scale of 1"));
    }
    trial_free(&t);
    t = trial_of("fp16");
    t.config.inject_inf = "1-50";
    t.config.max_skips = 0;
    t.attempts = 50;
    trial_run(&t);
    CHECK_OK(t.polled[0]);
    trial_free(&t);
}

int main(void)
{
    seven_attempts();
    one_inf_of_eight();
    unscaled_inf_diverges();
    scales_change_no_bit();
    finds_its_scale();
    losses_of_skipped_steps();
    gives_up();
    return tac_check_summary();
}
