/* Precision in data-parallel training, on thread ranks: one global batch gives
 * one answer in every precision, working weights are the rounded parameters on
 * all ranks, every optimizer trains in every precision, recomputation changes
 * no bit, and underflow is counted. */
#include "ddp_trial.h"
#include "tacit/half.h"

/* ---- one batch, one answer --------------------------------------------------
 */

/* R ranks x b samples x k micro-steps against 1 x 64. In f32 rounding alone
 * differs: 1e-6 of the weights. In 16 bits activations are rounded to the same
 * numbers, since a sample's row does not depend on the others, except where
 * another order of summation in f32 comes to lie on the other side of a border
 * between two 16-bit numbers; the same goes for working weights. Then a term of
 * some gradient is off by a unit. So runs may differ by one unit of the format
 * (2^-11 in f16, 2^-8 in bf16) of what training has moved, were every term off
 * in the same direction. A few steps only: later, one ReLU that decides
 * otherwise counts for more. */
static void one_answer(const char *precision, double unit)
{
    static const int worlds[][2] = {{4, 1}, {1, 4}, {2, 2}, {8, 1}};
    trial one = trial_of(precision);

    one.attempts = SANITIZED ? 3 : 10;
    trial_run(&one);
    const double moved = trial_moved(&one);
    const double allowed = unit > 0 ? unit * moved : 1e-6;

    CHECK(moved > 1e-3);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        trial t = trial_of(precision);

        t.attempts = one.attempts;
        t.ranks = worlds[i][0];
        t.config.accumulate = worlds[i][1];
        t.config.batch = 64 / t.ranks / t.config.accumulate;
        trial_run(&t);
        const double d = trial_distance(&one, &t);

        printf("%s, %d ranks x %d micro-steps: relative distance %.2e, "
               "allowed %.2e\n",
               precision, worlds[i][0], worlds[i][1], d, allowed);
        CHECK(d <= allowed);
        trial_free(&t);
    }
    trial_free(&one);
}

/* Working weights are the rounded masters on every rank, to the bit. */
static void check_master(trial *t, tac_replica *r, int rank, int attempt)
{
    const float *theta = tac_params_values(r->params);
    const uint16_t *work = tac_master_weights(r->master);
    size_t wrong = 0;

    (void)rank;
    if (attempt + 1 < t->attempts) return;
    for (size_t i = 0; i < tac_params_padded(r->params); i++)
        wrong += r->low == TAC_F16 ? work[i] != tac_f32_to_f16(theta[i])
                                   : work[i] != tac_f32_to_bf16(theta[i]);
    CHECK_EQ(wrong, 0);
}

static void masters(void)
{
    static const char *const precisions[] = {"fp16", "bf16"};

    for (int i = 0; i < 2; i++) {
        trial t = trial_of(precisions[i]);

        t.ranks = 4;
        t.config.batch = 16;
        t.each = check_master;
        trial_run(&t); /* compares parameters over ranks */
        trial_free(&t);
    }
}

static uint64_t last_work_hash[TRIAL_RANKS];

/* Rounded stochastically: equal on all ranks, and one of the two neighbours. */
static void check_stochastic(trial *t, tac_replica *r, int rank, int attempt)
{
    const float *theta = tac_params_values(r->params);
    const uint16_t *work = tac_master_weights(r->master);
    size_t far = 0, other = 0;
    uint64_t h = 0;

    if (attempt + 1 < t->attempts) return;
    for (size_t i = 0; i < tac_params_padded(r->params); i++) {
        const float w = tac_bf16_to_f32(work[i]);

        far += !(fabsf(w - theta[i]) <= fabsf(theta[i]) * 0x1p-7f);
        other += work[i] != tac_f32_to_bf16(theta[i]);
        h = (h ^ work[i]) * UINT64_C(0x100000001b3);
    }
    CHECK_EQ(far, 0);
    CHECK(other > 0);
    last_work_hash[rank] = h;
}

static void stochastic(void)
{
    trial t = trial_of("bf16");

    t.ranks = 4;
    t.config.batch = 16;
    t.config.rounding = "stochastic";
    t.each = check_stochastic;
    trial_run(&t);
    for (int r = 1; r < 4; r++)
        CHECK_EQ_U64(last_work_hash[r], last_work_hash[0]);
    CHECK(t.loss[t.attempts - 1] < t.loss[0]);
    trial_free(&t);
}

/* ---- all precisions, all optimizers ----------------------------------------
 */

static void all_pairs(void)
{
    static const char *const precisions[] = {"fp32", "fp16", "bf16"};
    static const char *const optimizers[] = {"sgd", "adamw", "adafactor",
                                             "adamw8bit"};

    for (int p = 0; p < 3; p++)
        for (int o = 0; o < 4; o++) {
            trial t = trial_of(precisions[p]);

            t.ranks = 2;
            t.config.batch = 32;
            t.config.optimizer = optimizers[o];
            t.config.weight_decay = 0.01;
            t.config.schedule = "cosine";
            t.attempts = SANITIZED ? 4 : 16;
            trial_run(&t);
            for (int i = 0; i < t.attempts; i++) CHECK(isfinite(t.loss[i]));
            CHECK_MSG(t.loss[t.attempts - 1] < t.loss[0], "%s %s: %g, %g",
                      precisions[p], optimizers[o], t.loss[0],
                      t.loss[t.attempts - 1]);
            CHECK_EQ_U64(t.applied[0], (unsigned)t.attempts);
            trial_free(&t);
        }
}

/* Blocks that are run again give the same bits, dropout included. */
static void recompute(void)
{
    static const char *const precisions[] = {"fp32", "fp16", "bf16"};
    static const char *const models[] = {"mlp:61,33,20", "cnn"};

    for (int m = 0; m < (SANITIZED ? 1 : 2); m++)
        for (int p = 0; p < 3; p++) {
            trial kept = trial_of(precisions[p]);

            kept.config.model = models[m];
            kept.config.dropout = 0.3;
            kept.config.accumulate = 2;
            kept.config.batch = 8;
            kept.ranks = 2;
            kept.attempts = m == 0 && !SANITIZED ? 12 : 2;
            trial again = kept;

            again.config.recompute = "block";
            trial_run(&kept);
            trial_run(&again);
            CHECK_EQ_U64(again.hash[0], kept.hash[0]);
            for (int i = 0; i < kept.attempts; i++)
                CHECK_EQ_F64(again.loss[i], kept.loss[i]);
            CHECK(again.high_water != kept.high_water);
            trial_free(&kept);
            trial_free(&again);
        }
}

/* ---- underflow -------------------------------------------------------------
 */

static void check_underflow(trial *t, tac_replica *r, int rank, int attempt)
{
    const tac_underflow *u = r->underflow;
    double lost = 0, kept = 0;

    CHECK((u != NULL) == (rank == 0));
    if (!u || attempt + 1 < t->attempts) return;
    CHECK_EQ(tac_underflow_rows(u), tac_params_count(r->params));
    for (size_t i = 0; i < tac_underflow_rows(u); i++) {
        const tac_underflow_row *row = tac_underflow_get(u, i);
        const tac_underflow_shares one = tac_underflow_at(row, 1);
        const tac_underflow_shares scaled = tac_underflow_at(row, 65536);

        CHECK_EQ_STR(row->name, tac_params_get(r->params, i)->name);
        CHECK_EQ_U64(row->count, tac_params_get(r->params, i)->count *
                                     (unsigned)(t->attempts / 3));
        CHECK(scaled.zero <= one.zero && scaled.subnormal <= one.subnormal);
        lost += one.zero + one.subnormal;
        kept += scaled.zero + scaled.subnormal;
    }
    CHECK(lost > kept);
}

static uint64_t bins_of_fc1[TAC_UNDERFLOW_BINS];

static void keep_bins(trial *t, tac_replica *r, int rank, int attempt)
{
    if (rank == 0 && attempt + 1 == t->attempts)
        memcpy(bins_of_fc1, tac_underflow_get(r->underflow, 0)->bins,
               sizeof bins_of_fc1);
}

/* What is counted are gradients without the scale that they carry: in bf16,
 * which has the room for both, the same counts at every scale. */
static void underflow_ignores_the_scale(void)
{
    static const char *const scales[] = {"none", "65536", "dynamic"};
    uint64_t first[TAC_UNDERFLOW_BINS];

    for (int i = 0; i < 3; i++) {
        trial t = trial_of("bf16");

        t.config.underflow_every = 2;
        t.config.loss_scale = scales[i];
        t.config.growth_interval = 3;
        t.each = keep_bins;
        trial_run(&t);
        if (i == 0) memcpy(first, bins_of_fc1, sizeof first);
        CHECK_EQ_MEM(bins_of_fc1, first, sizeof first);
        trial_free(&t);
    }
    CHECK(first[-10 - TAC_UNDERFLOW_MIN] > 0);
}

static void underflow(void)
{
    static const char *const precisions[] = {"fp32", "fp16", "bf16"};

    for (int p = 0; p < 3; p++) {
        trial t = trial_of(precisions[p]);

        t.ranks = 2;
        t.config.batch = 32;
        t.config.underflow_every = 3;
        t.each = check_underflow;
        trial_run(&t);
        trial_free(&t);
    }
}

int main(void)
{
    one_answer("fp32", 0);
    one_answer("fp16", 0x1p-11);
    one_answer("bf16", 0x1p-8);
    masters();
    stochastic();
    all_pairs();
    recompute();
    underflow();
    underflow_ignores_the_scale();
    return tac_check_summary();
}
