/* The accelerator keeps Accelerate's promises: groups of batches equal one
 * batch, and are averaged once; skipped steps are told; a group that the epoch
 * cuts short steps; an evaluation counts each sample once; learning rates do
 * not depend on the number of ranks; a loaded state goes on to the same bits;
 * local SGD is ddp_train's; calls out of order are named. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "local.h"
#include "tac_check.h"
#include "tacit/accelerator.h"
#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/trainer.h"

enum { MAX_RANKS = 3, MAX_STEPS = 64 };

typedef struct trial {
    tac_accelerator_config config;
    tac_prepare_config parts;
    tac_train_config base;
    int ranks;
    size_t train_count, eval_count;
    double clip;
    uint64_t localsgd; /* every so many steps; 0: not */
    uint64_t save_at;  /* after so many attempts; 0: not */
    int load;          /* from dir, first */
    tac_status (*use)(tac_accelerator *a, struct trial *t);
    int epochs_of_local; /* of the first epochs; then gradients */
    tac_rank_fn *body;   /* NULL: what this file does */
    char dir[64];
    /* Of rank 0. */
    uint64_t hash, steps, attempts, skipped, calls;
    double lr[MAX_STEPS];
    size_t seen, labels_ok;
    double counted;
    float theta[2048]; /* parameters, in the order of the arena */
    size_t n;
} trial;

static trial trial_of(int ranks)
{
    trial t;

    memset(&t, 0, sizeof t);
    CHECK_OK(tac_train_config_defaults(&t.base));
    t.base.model = "mlp:12";
    t.config.struct_size = sizeof t.config;
    t.parts.struct_size = sizeof t.parts;
    t.parts.optimizer = "adamw";
    t.parts.learning_rate = 1e-2;
    t.parts.lr_scheduler = "linear";
    t.parts.batch_size = 8;
    t.parts.num_train_epochs = 2;
    t.ranks = ranks;
    t.train_count = 96;
    t.eval_count = 10;
    return t;
}

static tac_status one_batch(tac_accelerator *a, trial *t)
{
    TAC_TRY(tac_accelerator_accumulate(a));
    TAC_TRY(tac_accelerator_forward(a));
    TAC_TRY(tac_accelerator_backward(a));
    if (t->clip > 0) TAC_TRY(tac_accelerator_clip_grad_norm(a, t->clip));
    TAC_TRY(tac_accelerator_step(a));
    TAC_TRY(tac_accelerator_zero_grad(a));
    if (t->localsgd) TAC_TRY(tac_accelerator_localsgd_step(a));
    return TAC_OK;
}

static void note(tac_accelerator *a, trial *t)
{
    const uint64_t attempts = tac_accelerator_replica(a)->attempts;

    if (!tac_accelerator_is_main_process(a)) return;
    t->attempts = attempts;
    if (attempts > 0 && attempts <= MAX_STEPS)
        t->lr[attempts - 1] = tac_accelerator_lr(a);
    if (tac_accelerator_sync_gradients(a))
        t->skipped += (uint64_t)tac_accelerator_optimizer_step_was_skipped(a);
}

static tac_status epoch(tac_accelerator *a, trial *t, uint64_t e, int *done)
{
    const tac_batch *batch;

    TAC_TRY(tac_accelerator_start_epoch(a, e));
    for (;;) {
        TAC_TRY(tac_accelerator_next(a, &batch));
        if (!batch) return TAC_OK;
        TAC_TRY(one_batch(a, t));
        note(a, t);
        if (t->save_at == 0 || !tac_accelerator_sync_gradients(a) ||
            tac_accelerator_replica(a)->attempts != t->save_at)
            continue;
        *done = 1;
        return tac_accelerator_save_state(a, t->dir);
    }
}

static tac_status local_epoch(tac_accelerator *a, trial *t, uint64_t e,
                              int *done)
{
    const tac_batch *batch;

    (void)done;
    TAC_TRY(tac_accelerator_localsgd_begin(a, 2));
    TAC_TRY(tac_accelerator_start_epoch(a, e));
    for (;;) {
        TAC_TRY(tac_accelerator_next(a, &batch));
        if (!batch) break;
        TAC_TRY(one_batch(a, t));
        TAC_TRY(tac_accelerator_localsgd_step(a));
    }
    return tac_accelerator_localsgd_end(a);
}

static tac_status train(tac_accelerator *a, trial *t)
{
    int done = 0;

    if (t->load) TAC_TRY(tac_accelerator_load_state(a, t->dir));
    if (t->localsgd)
        TAC_TRY(tac_accelerator_localsgd_begin(a, (int64_t)t->localsgd));
    for (uint64_t e = tac_accelerator_epoch(a);
         e < tac_accelerator_epochs(a) && !done; e++) {
        if ((int)e < t->epochs_of_local)
            TAC_TRY(local_epoch(a, t, e, &done));
        else
            TAC_TRY(epoch(a, t, e, &done));
    }
    if (t->localsgd) TAC_TRY(tac_accelerator_localsgd_end(a));
    return TAC_OK;
}

static tac_status result(tac_accelerator *a, trial *t)
{
    tac_replica *r = tac_accelerator_replica(a);
    tac_reducer_stats stats;
    uint64_t hash;

    TAC_TRY(tac_replica_verify_equal(r));
    TAC_TRY(tac_accelerator_params_hash(a, &hash));
    if (!tac_accelerator_is_main_process(a)) return TAC_OK;
    t->hash = hash;
    t->n = tac_params_padded(r->params);
    if (t->n > 2048) t->n = 2048;
    memcpy(t->theta, tac_params_values(r->params), t->n * sizeof *t->theta);
    t->steps = tac_accelerator_steps(a);
    tac_reducer_stats_get(r->reducer, &stats);
    t->calls = stats.total.steps;
    return TAC_OK;
}

typedef struct world {
    trial *t;
    tac_dataset *train, *eval;
} world;

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    world *w = arg;
    trial *t = w->t;
    tac_accelerator_config c = t->config;
    tac_prepare_config p = t->parts;
    tac_accelerator *a;

    c.base = &t->base;
    p.train_dataset = w->train;
    p.eval_dataset = w->eval;
    TAC_TRY(tac_accelerator_create(ctx, comm, &c, &a));
    tac_status s = tac_accelerator_prepare(a, &p);
    if (s >= 0) s = t->use ? t->use(a, t) : train(a, t);
    if (s >= 0 && !t->use) s = result(a, t);
    tac_accelerator_destroy(a);
    return s;
}

static int run(trial *t)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    world w = {t, NULL, NULL};

    sc.h = sc.w = 4;
    sc.count = t->train_count;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &w.train));
    sc.first = sc.count;
    sc.count = t->eval_count;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &w.eval));
    lc.ranks = t->ranks;
    lc.threads = 1;
    const int code = tac_launch(&lc, t->body ? t->body : body, &w);

    tac_dataset_destroy(w.train);
    tac_dataset_destroy(w.eval);
    return code;
}

/* ---- groups ---------------------------------------------------------------
 */

/* Sums in another order. */
static void expect_near(const trial *a, const trial *b)
{
    float worst = 0;

    CHECK(a->n == b->n && a->n > 0);
    for (size_t i = 0; i < a->n; i++)
        worst = fmaxf(worst, fabsf(a->theta[i] - b->theta[i]));
    CHECK(worst < 1e-4f);
}

/* 96 samples: 12 batches of 8, so groups of 5 end in one of 2. */
static void groups(void)
{
    trial t = trial_of(2), big = trial_of(2);

    t.clip = 0.5;
    t.config.gradient_accumulation_steps = 4;
    t.parts.batch_size = 2;
    CHECK(run(&t) == 0);
    CHECK(t.steps == 12);
    CHECK(t.calls == 12); /* one average a group */
    big.clip = 0.5;
    CHECK(run(&big) == 0);
    CHECK(big.steps == 12);
    for (int i = 0; i < 12; i++) CHECK(t.lr[i] == big.lr[i]);
    expect_near(&t, &big);

    trial cut = trial_of(2);

    cut.config.gradient_accumulation_steps = 5;
    CHECK(run(&cut) == 0);
    CHECK(cut.steps == 4); /* 6 batches an epoch: a group of 5, one of 1 */
    CHECK(cut.calls == 4);
}

static void rates(void)
{
    trial one = trial_of(1), two = trial_of(2);

    one.parts.max_train_steps = two.parts.max_train_steps = 10;
    CHECK(run(&one) == 0);
    CHECK(run(&two) == 0);
    CHECK(one.steps == 10);
    CHECK(two.steps == 10);
    for (int i = 0; i < 10; i++) {
        CHECK(one.lr[i] == two.lr[i]);
        CHECK(fabs(one.lr[i] - 1e-2 * (10 - i) / 10) < 1e-12);
    }
}

static void skips(void)
{
    trial t = trial_of(2);

    t.config.mixed_precision = "fp16";
    t.base.inject_inf = "3-4:1";
    CHECK(run(&t) == 0);
    CHECK(t.attempts == 12);
    CHECK(t.skipped == 2);
    CHECK(t.steps == 10);
    CHECK(t.lr[4] == t.lr[1] * 0.8 || fabs(t.lr[4] - 1e-2 * 10 / 12) < 1e-12);
}

/* ---- evaluation -----------------------------------------------------------
 */

static tac_status evaluate(tac_accelerator *a, trial *t)
{
    const tac_batch *b;
    const void *rows;
    size_t n, seen = 0, ok = 0;
    tac_metrics m;

    TAC_TRY(tac_accelerator_eval_start(a));
    for (;;) {
        float logits[8 * 10];

        TAC_TRY(tac_accelerator_eval_next(a, &b));
        if (!b) break;
        TAC_TRY(tac_accelerator_forward(a));
        TAC_TRY(tac_accelerator_logits(a, logits));
        TAC_TRY(tac_accelerator_gather_for_metrics(
            a, b->index, sizeof *b->index, &rows, &n));
        for (size_t i = 0; i < n; i++, seen++)
            ok += ((const uint32_t *)rows)[i] == seen;
    }
    TAC_TRY(tac_accelerator_evaluate(a, &m));
    if (!tac_accelerator_is_main_process(a)) return TAC_OK;
    t->seen = seen;
    t->labels_ok = ok;
    t->counted = m.count;
    return TAC_OK;
}

static void each_sample_once(void)
{
    for (int64_t batch = 1; batch <= 8; batch += 2) {
        trial t = trial_of(3);

        t.parts.eval_batch_size = batch;
        t.use = evaluate;
        CHECK(run(&t) == 0);
        CHECK(t.seen == 10);
        CHECK(t.labels_ok == 10); /* and in their order */
        CHECK(t.counted == 10);
    }
}

/* ---- state ----------------------------------------------------------------
 */

static void saved(trial t, uint64_t at)
{
    trial whole = t, first = t, second = t;
    char command[128];

    CHECK(run(&whole) == 0);
    snprintf(first.dir, sizeof first.dir, "/tmp/tac_accelerator_%ld",
             (long)getpid());
    memcpy(second.dir, first.dir, sizeof first.dir);
    first.save_at = at;
    CHECK(run(&first) == 0);
    CHECK(first.hash != whole.hash);
    second.load = 1;
    CHECK(run(&second) == 0);
    CHECK(second.hash == whole.hash);
    CHECK(second.steps == whole.steps);
    second.parts.seed = 7; /* other settings are refused */
    CHECK(run(&second) == 2);
    snprintf(command, sizeof command, "rm -rf %s", first.dir);
    CHECK(system(command) == 0);
}

static void states(void)
{
    trial t = trial_of(2);

    t.config.mixed_precision = "fp16";
    t.config.gradient_accumulation_steps = 2;
    t.base.inject_inf = "2:0";
    t.parts.optimizer = "adamw8bit";
    t.parts.batch_size = 4;
    t.clip = 1;
    saved(t, 4);
    t.base.compress = "topk:0.1,min=1";
    t.parts.optimizer = "adamw";
    saved(t, 6); /* at the end of an epoch */
}

/* ---- local SGD ------------------------------------------------------------
 */

/* ddp_train's own local mode, through the trainer. */
static tac_status by_trainer(tac_context *ctx, tac_comm *comm, void *arg)
{
    world *w = arg;
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    const tac_trainer_config config = {
        .struct_size = sizeof config, .args = &args, .train_dataset = w->train};
    tac_train_output o;
    tac_trainer *trainer;

    args.options = "model=mlp:12 quiet=true sync=local sync-every=4";
    args.learning_rate = 1e-2;
    args.num_train_epochs = 2;
    args.max_grad_norm = 0;
    args.per_device_train_batch_size = 8;
    TAC_TRY(tac_trainer_create(ctx, comm, &config, &trainer));
    const tac_status s = tac_trainer_train(trainer, NULL, &o);

    if (s >= 0 && tac_comm_rank(comm) == 0) w->t->hash = o.params_hash;
    tac_trainer_destroy(trainer);
    return s;
}

static void local(void)
{
    trial t = trial_of(2), plain = trial_of(2);

    t.localsgd = 4;
    CHECK(run(&t) == 0);
    CHECK(t.steps == 12);
    CHECK(t.calls == 0); /* no gradient was averaged */
    CHECK(run(&plain) == 0);
    CHECK(plain.hash != t.hash);
    plain.body = by_trainer;
    CHECK(run(&plain) == 0);
    CHECK(plain.hash == t.hash);
    /* The second rank has only padding in the last step of an epoch. */
    t.train_count = plain.train_count = 97;
    CHECK(run(&t) == 0);
    CHECK(run(&plain) == 0);
    CHECK(plain.hash == t.hash);
    t.train_count = 96;
    /* Twice, and averages of gradients in between, with ranks equal at the
     * end (result() looks). */
    t.localsgd = 0;
    t.epochs_of_local = 1;
    CHECK(run(&t) == 0);
    CHECK(t.steps == 12);
    CHECK(t.calls == 6);
}

/* ---- order of calls -------------------------------------------------------
 */

static tac_status out_of_order(tac_accelerator *a, trial *t)
{
    const tac_batch *b;

    (void)t;
    CHECK(tac_accelerator_forward(a) == TAC_ERR_STATE);
    TAC_TRY(tac_accelerator_start_epoch(a, 0));
    TAC_TRY(tac_accelerator_next(a, &b));
    CHECK(tac_accelerator_backward(a) == TAC_ERR_STATE);
    TAC_TRY(tac_accelerator_forward(a));
    CHECK(tac_accelerator_step(a) == TAC_ERR_STATE);
    TAC_TRY(tac_accelerator_backward(a));
    CHECK(tac_accelerator_zero_grad(a) == TAC_ERR_STATE);
    CHECK(tac_accelerator_save_state(a, "/nowhere") == TAC_ERR_STATE);
    TAC_TRY(tac_accelerator_step(a));
    CHECK(tac_accelerator_next(a, &b) == TAC_ERR_STATE);
    return tac_accelerator_zero_grad(a);
}

/* Two batches by hand are a group, each with its own mean: twice the gradient
 * of a group's, in which sgd with half the rate makes the same step. */
static tac_status by_hand(tac_accelerator *a, trial *t)
{
    const tac_batch *b;

    TAC_TRY(tac_accelerator_start_epoch(a, 0));
    for (int i = 0; i < 4; i++) {
        TAC_TRY(tac_accelerator_next(a, &b));
        if (i % 2 == 0) TAC_TRY(tac_accelerator_no_sync(a));
        CHECK(tac_accelerator_sync_gradients(a) == (i % 2 == 1));
        TAC_TRY(tac_accelerator_forward(a));
        TAC_TRY(tac_accelerator_backward(a));
        TAC_TRY(tac_accelerator_step(a));
        TAC_TRY(tac_accelerator_zero_grad(a));
    }
    return result(a, t);
}

static void no_sync(void)
{
    trial hand = trial_of(2), group = trial_of(2);

    hand.parts.optimizer = group.parts.optimizer = "sgd";
    hand.parts.lr_scheduler = group.parts.lr_scheduler = "constant";
    hand.parts.learning_rate = 0.05;
    hand.use = by_hand;
    CHECK(run(&hand) == 0);
    CHECK(hand.steps == 2);
    CHECK(hand.calls == 2);
    group.parts.learning_rate = 0.1;
    group.parts.max_train_steps = 2;
    group.config.gradient_accumulation_steps = 2;
    CHECK(run(&group) == 0);
    expect_near(&hand, &group);
}

static void order(void)
{
    trial t = trial_of(1);

    t.use = out_of_order;
    CHECK(run(&t) == 0);
}

int main(void)
{
    groups();
    rates();
    skips();
    each_sample_once();
    states();
    local();
    no_sync();
    order();
    return tac_check_summary();
}
