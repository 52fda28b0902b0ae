/* ddp_trainer.c: the trainer keeps Hugging Face's promises: a skipped step is
 * an attempt but no step; k micro-steps equal one batch; evaluation counts each
 * sample once on any number of ranks, and compute_metrics sees the same on all;
 * callbacks come in order and one rank's wish stops all; own data; a run that
 * is resumed is the run that was never interrupted. Ranks are threads. */
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tac_check.h"
#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/ops.h"
#include "tacit/safetensors.h"
#include "tacit/trainer.h"

enum { MAX_RANKS = 4, EVENTS = 128 };

static char dir[64];

/* ---- one trial ------------------------------------------------------------
 */

typedef struct trial {
    tac_training_args args;
    int ranks, eval_count, train_count;
    const char *resume;
    tac_compute_metrics_fn *compute;
    const tac_model_source *model;
    int own_data;
    tac_trainer_callback callback;
    int has_callback;
    /* What each rank does with its trainer; NULL: train. */
    void (*use)(struct trial *t, tac_trainer *trainer, int rank);
    /* What came of it. */
    tac_train_output out[MAX_RANKS];
    tac_status status[MAX_RANKS];
    tac_eval_output eval[MAX_RANKS];
    tac_metric metrics[TAC_TRAINER_METRICS]; /* rank 0's */
    char events[EVENTS * 4];
    int step_to_stop, stopper;
    float *theta;
    size_t n;
    uint64_t hash[MAX_RANKS];
} trial;

static trial trial_of(int ranks)
{
    trial t;

    memset(&t, 0, sizeof t);
    t.args = (tac_training_args)TAC_TRAINING_ARGS_INIT;
    t.args.options = "model=mlp:12 quiet=true";
    t.args.learning_rate = 1e-2;
    t.args.num_train_epochs = 1;
    t.ranks = ranks;
    t.train_count = 64;
    t.eval_count = 10;
    return t;
}

static tac_dataset *made(size_t count, size_t first)
{
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    tac_dataset *set = NULL;

    sc.count = count;
    sc.first = first;
    sc.h = sc.w = 6;
    sc.classes = 4;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &set));
    return set;
}

static int forget(const char *path, const struct stat *st, int flag,
                  struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static const char *folder(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", dir, name);
    nftw(path, forget, 8, FTW_DEPTH | FTW_PHYS);
    return path;
}

/* ---- a model and a dataset of one's own -----------------------------------
 */

typedef struct own_net {
    size_t weight[2], bias[2];
} own_net;

static tac_status own_forward(void *impl, tac_tape *t, tac_tensor *x,
                              tac_tensor **logits)
{
    const own_net *n = impl;
    tac_tensor *flat, *hidden;

    TAC_TRY(tac_op_flatten(t, x, &flat));
    TAC_TRY(tac_op_linear(t, flat, tac_tape_param(t, n->weight[0]),
                          tac_tape_param(t, n->bias[0]), TAC_ACT_RELU,
                          &hidden));
    return tac_op_linear(t, hidden, tac_tape_param(t, n->weight[1]),
                         tac_tape_param(t, n->bias[1]), TAC_ACT_NONE, logits);
}

/* As mlp:12 has them. */
static tac_status own_layer(tac_params *params, const char *name, size_t in,
                            size_t out, size_t *weight, size_t *bias)
{
    const size_t shape[2] = {out, in};
    const tac_init init = {TAC_INIT_FAN_IN, (double)in};
    char full[32];

    snprintf(full, sizeof full, "%s.weight", name);
    TAC_TRY(tac_params_add(params, full, 2, shape, init, 0, weight));
    snprintf(full, sizeof full, "%s.bias", name);
    return tac_params_add(params, full, 1, shape, init, 0, bias);
}

static tac_status own_build(void *arg, tac_params *params,
                            const tac_model_config *c, tac_model **out)
{
    static const tac_model_ops ops = {.struct_size = sizeof ops,
                                      .name = "twelve",
                                      .forward = own_forward,
                                      .destroy = free};
    own_net *n = calloc(1, sizeof *n);

    (void)arg;
    TAC_TRY(own_layer(params, "fc1", c->h * c->w * c->c, 12, &n->weight[0],
                      &n->bias[0]));
    TAC_TRY(
        own_layer(params, "fc2", 12, c->classes, &n->weight[1], &n->bias[1]));
    return tac_model_create_from(params, &ops, n, c, out);
}

/* Another dataset behind a description of its own. */
static tac_status own_gather(void *impl, tac_context *ctx, size_t n,
                             const uint32_t *index, float *x, int32_t *y)
{
    return tac_dataset_gather(impl, ctx, n, index, x, y);
}

static void own_destroy(void *impl)
{
    tac_dataset_destroy(impl);
}

static tac_dataset *wrapped(tac_dataset *set)
{
    static const tac_dataset_ops ops = {sizeof ops,  "mine", own_gather,
                                        own_destroy, NULL,   NULL};
    const tac_dataset_info info = tac_dataset_get_info(set);
    tac_dataset *out = NULL;

    CHECK_OK(tac_dataset_create(NULL, &ops, set, &info, &out));
    return out;
}

static void keep(trial *t, tac_trainer *trainer, int rank)
{
    tac_replica *r = tac_trainer_replica(trainer);
    size_t at = 0;

    if (!CHECK(r)) return;
    CHECK_OK(tac_replica_hash(r, &t->hash[rank]));
    if (rank != 0) return;
    memcpy(t->metrics, t->out[0].metrics ? t->out[0].metrics : t->metrics,
           t->out[0].n_metrics * sizeof *t->metrics);
    t->n = tac_params_elements(r->params);
    t->theta = malloc(t->n * sizeof *t->theta);
    for (size_t i = 0; i < tac_params_count(r->params); i++) {
        const size_t count = tac_params_get(r->params, i)->count;

        memcpy(t->theta + at, tac_params_value(r->params, i),
               count * sizeof(float));
        at += count;
    }
}

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    trial *t = arg;
    const int rank = tac_comm_rank(comm);
    tac_dataset *train = made((size_t)t->train_count, 0);
    tac_dataset *eval =
        t->eval_count ? made((size_t)t->eval_count, 5000) : NULL;
    if (t->own_data) train = wrapped(train);
    const tac_trainer_config config = {.struct_size = sizeof config,
                                       .args = &t->args,
                                       .model = t->model,
                                       .train_dataset = train,
                                       .eval_dataset = eval,
                                       .compute_metrics = t->compute,
                                       .metrics_arg = t,
                                       .callbacks = &t->callback,
                                       .n_callbacks = (size_t)t->has_callback};
    tac_trainer *trainer = NULL;
    tac_status s = tac_trainer_create(ctx, comm, &config, &trainer);

    t->status[rank] = s;
    if (s >= 0) {
        if (t->use)
            t->use(t, trainer, rank);
        else
            t->status[rank] =
                tac_trainer_train(trainer, t->resume, &t->out[rank]);
        if (t->status[rank] >= 0) keep(t, trainer, rank);
    }
    tac_trainer_destroy(trainer);
    tac_dataset_destroy(train);
    tac_dataset_destroy(eval);
    return t->status[rank];
}

static int run(trial *t)
{
    tac_launch_config c = TAC_LAUNCH_CONFIG_INIT;

    c.program = "trial";
    c.ranks = t->ranks;
    c.threads = 1;
    c.quiet = 1;
    c.comm.timeout_ms = 30000;
    return tac_launch(&c, body, t);
}

static void done(trial *t)
{
    for (int r = 1; r < t->ranks; r++) CHECK_EQ_U64(t->hash[r], t->hash[0]);
    free(t->theta);
    t->theta = NULL;
}

/* ---- steps ----------------------------------------------------------------
 */

/* The rates are those of steps that were applied. */
static void note_rate(void *arg, tac_trainer *t, const tac_trainer_state *s,
                      tac_trainer_control *c)
{
    trial *mine = arg;

    (void)t, (void)c;
    if (s->rank != 0 || s->attempts != 7) return;
    /* linear: of 7 in all the sixth applied step has 2/7 of the rate */
    CHECK_MSG(fabs(s->learning_rate / mine->args.learning_rate - 2.0 / 7) <
                  1e-6,
              "rate %g", s->learning_rate);
    CHECK_EQ_U64(s->global_step, 6);
}

static void test_skipped(void)
{
    for (int ranks = 1; ranks <= 2; ranks++) {
        trial t = trial_of(ranks);

        t.args.options = "model=mlp:12 quiet=true inject-inf=3";
        t.args.fp16 = 1;
        t.args.per_device_train_batch_size = 2;
        t.args.max_steps = 7;
        t.callback =
            (tac_trainer_callback){.arg = &t, .on_step_end = note_rate};
        t.has_callback = 1;
        CHECK_EQ(run(&t), 0);
        CHECK_EQ_U64(t.out[0].attempts, 7);
        CHECK_EQ_U64(t.out[0].global_step, 6);
        CHECK_EQ(t.out[0].summary.samples, 14 * ranks);
        done(&t);
    }
}

static double distance(const trial *a, const trial *b)
{
    double most = 0;

    if (!CHECK(a->theta && b->theta && a->n == b->n)) return INFINITY;
    for (size_t i = 0; i < a->n; i++)
        most = fmax(most, fabs((double)a->theta[i] - (double)b->theta[i]));
    return most;
}

/* 50 samples: the last group is smaller, and steps all the same. */
static void test_accumulation(void)
{
    trial a = trial_of(1), b = trial_of(1), c = trial_of(2);
    trial *all[] = {&a, &b, &c};

    for (int i = 0; i < 3; i++) {
        all[i]->train_count = 50;
        all[i]->args.optim = "sgd";
        all[i]->args.num_train_epochs = 3;
    }
    a.args.per_device_train_batch_size = 12;
    b.args.per_device_train_batch_size = 3;
    b.args.gradient_accumulation_steps = 4;
    c.args.per_device_train_batch_size = 3;
    c.args.gradient_accumulation_steps = 2;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(run(all[i]), 0);
        CHECK_EQ_U64(all[i]->out[0].global_step, 15);
    }
    CHECK_MSG(distance(&a, &b) < 1e-6, "k = 4: %g", distance(&a, &b));
    CHECK_MSG(distance(&a, &c) < 1e-6, "2 ranks: %g", distance(&a, &c));
    for (int i = 0; i < 3; i++) done(all[i]);
}

/* With batches of 12 from 50 samples two are left out, and of groups of three
 * batches the second has one. */
static void test_drop_last_of_group(void)
{
    trial a = trial_of(1), b = trial_of(2);
    trial *all[] = {&a, &b};

    for (int i = 0; i < 2; i++) {
        all[i]->train_count = 50;
        all[i]->args.optim = "sgd";
        all[i]->args.dataloader_drop_last = 1;
        all[i]->args.num_train_epochs = 2;
        all[i]->args.gradient_accumulation_steps = 3;
        all[i]->args.per_device_train_batch_size = i ? 6 : 12;
        CHECK_EQ(run(all[i]), 0);
        CHECK_EQ_U64(all[i]->out[0].global_step, 4);
        CHECK_EQ(all[i]->out[0].summary.samples, 96);
    }
    CHECK_MSG(distance(&a, &b) < 1e-6, "%g", distance(&a, &b));
    CHECK(a.out[0].training_loss < 2);
    for (int i = 0; i < 2; i++) done(all[i]);
}

static void test_drop_last(void)
{
    trial t = trial_of(1);

    t.train_count = 50;
    t.args.dataloader_drop_last = 1;
    t.args.num_train_epochs = 2;
    CHECK_EQ(run(&t), 0);
    CHECK_EQ_U64(t.out[0].global_step, 12);
    CHECK_EQ(t.out[0].summary.samples, 96);
    done(&t);
}

/* ---- evaluation -----------------------------------------------------------
 */

static size_t best_of(const float *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* Also the sum of i * logit, which knows the order of the samples. */
static tac_status measure(void *arg, tac_context *ctx,
                          const tac_eval_prediction *p, tac_metric *out,
                          size_t *n)
{
    const trial *t = arg;
    double hits = 0, order = 0;

    CHECK_EQ(tac_context_rank(ctx), 0);
    CHECK_EQ_U64(p->n, (size_t)t->eval_count);
    CHECK_EQ_U64(p->classes, 4);
    for (size_t i = 0; i < p->n; i++) {
        CHECK_EQ(p->labels[i], (int)((5000 + i) % 4));
        hits += best_of(p->logits + i * 4, 4) == (size_t)p->labels[i];
        order += (double)(i + 1) * p->logits[i * 4];
    }
    strcpy(out[0].name, "accuracy");
    out[0].value = hits / (double)p->n;
    strcpy(out[1].name, "order");
    out[1].value = order;
    *n = 2;
    return TAC_OK;
}

static tac_status measure_badly(void *arg, tac_context *ctx,
                                const tac_eval_prediction *p, tac_metric *out,
                                size_t *n)
{
    (void)arg, (void)p, (void)out, (void)n;
    return tac_fail(ctx, TAC_ERR_DATA, "this can't be measured");
}

static void evaluate_only(trial *t, tac_trainer *trainer, int rank)
{
    tac_eval_prediction p;
    tac_eval_output again;

    t->status[rank] = tac_trainer_evaluate(trainer, NULL, &t->eval[rank]);
    if (t->status[rank] < 0) return;
    CHECK_EQ_U64(t->eval[rank].samples, (size_t)t->eval_count);
    CHECK_OK(tac_trainer_predict(trainer, NULL, &p, &again));
    CHECK_EQ_U64(p.n, (size_t)t->eval_count);
    CHECK(again.loss == t->eval[rank].loss);
    if (rank == 0 && again.n_metrics)
        memcpy(t->metrics, again.metrics,
               again.n_metrics * sizeof *again.metrics);
    t->eval[rank].metrics = NULL;
}

/* Every rank has the same, and as many ranks change nothing but the order of
 * a sum. */
static void test_evaluate(void)
{
    static const int counts[] = {1, 2, 10, 11};

    for (size_t i = 0; i < 4; i++) {
        trial one = trial_of(1), three = trial_of(3);

        one.eval_count = three.eval_count = counts[i];
        one.use = three.use = evaluate_only;
        one.compute = three.compute = measure;
        three.args.per_device_eval_batch_size = 2;
        CHECK_EQ(run(&one), 0);
        CHECK_EQ(run(&three), 0);
        CHECK(fabs(one.eval[0].loss - three.eval[0].loss) < 1e-6);
        CHECK(one.eval[0].accuracy == three.eval[0].accuracy);
        CHECK_MSG(fabs(one.metrics[1].value - three.metrics[1].value) < 1e-6,
                  "%g %g", one.metrics[1].value, three.metrics[1].value);
        CHECK(three.eval[2].loss == three.eval[0].loss);
        CHECK_EQ_U64(one.hash[0], three.hash[0]);
        done(&one);
        done(&three);
    }
}

static void test_measure_fails(void)
{
    trial t = trial_of(3);

    t.compute = measure_badly;
    t.args.eval_strategy = "epoch";
    fflush(stderr);
    CHECK_EQ(run(&t), 2);
    for (int r = 0; r < 3; r++) CHECK_EQ(t.status[r], TAC_ERR_DATA);
}

/* Evaluating before training changes nothing. */
static void evaluate_and_train(trial *t, tac_trainer *trainer, int rank)
{
    CHECK_OK(tac_trainer_evaluate(trainer, NULL, &t->eval[rank]));
    t->status[rank] = tac_trainer_train(trainer, NULL, &t->out[rank]);
    CHECK_EQ(tac_trainer_train(trainer, NULL, NULL), TAC_ERR_STATE);
}

static void test_order_of_calls(void)
{
    trial a = trial_of(2), b = trial_of(2);

    b.use = evaluate_and_train;
    CHECK_EQ(run(&a), 0);
    run(&b);
    CHECK_EQ(b.status[0], TAC_OK);
    CHECK_EQ_U64(a.hash[0], b.hash[0]);
    done(&a);
    done(&b);
}

/* Training again goes on from the last checkpoint, where nothing is left to do;
 * the model that is written is the one that was trained. */
static void train_twice(trial *t, tac_trainer *trainer, int rank)
{
    tac_safetensors *f = NULL;
    char path[160];
    uint64_t first;

    t->status[rank] = tac_trainer_train(trainer, NULL, &t->out[rank]);
    first = t->out[rank].params_hash;
    CHECK_OK(tac_trainer_train(trainer, "auto", &t->out[rank]));
    CHECK_EQ_U64(t->out[rank].params_hash, first);
    CHECK_EQ_U64(t->out[rank].attempts, 4);
    snprintf(path, sizeof path, "%s/export", dir);
    CHECK_OK(tac_trainer_save_model(trainer, path));
    if (rank != 0) return;
    strcat(path, "/model.safetensors");
    if (CHECK_OK(tac_safetensors_open(NULL, path, &f))) {
        const tac_replica *r = tac_trainer_replica(trainer);
        const tac_safetensors_item *w = tac_safetensors_find(f, "fc1.bias");

        CHECK(w && w->bytes == 12 * sizeof(float));
        CHECK(w && !memcmp(w->data, tac_params_value(r->params, 1), w->bytes));
    }
    tac_safetensors_close(f);
}

static void test_again(void)
{
    trial t = trial_of(2);
    char path[128];

    t.args.output_dir = folder("again", path);
    t.use = train_twice;
    CHECK_EQ(run(&t), 0);
    done(&t);
}

/* What one's own model and data compute, the library's compute too. */
static void test_own(void)
{
    const tac_model_source source = {.spec = "twelve", .build = own_build};
    trial a = trial_of(2), b = trial_of(2);
    char path[128];

    a.args.fp16 = b.args.fp16 = 1;
    b.model = &source;
    b.own_data = 1;
    b.args.output_dir = folder("own", path);
    CHECK_EQ(run(&a), 0);
    CHECK_EQ(run(&b), 0);
    CHECK_EQ_U64(a.hash[0], b.hash[0]);
    done(&a);
    done(&b);
}

/* ---- callbacks ------------------------------------------------------------
 */

static void note(trial *t, const tac_trainer_state *s, const char *what)
{
    if (s->rank == 0) strncat(t->events, what, sizeof t->events - 1);
}

#define NOTES(name, letter)                                                 \
    static void name(void *arg, tac_trainer *t, const tac_trainer_state *s, \
                     tac_trainer_control *c)                                \
    {                                                                       \
        trial *mine = arg;                                                  \
        (void)t;                                                            \
        note(mine, s, letter);                                              \
        if (mine->stopper >= 0 && s->rank == mine->stopper &&               \
            *letter == ')' && s->attempts == (uint64_t)mine->step_to_stop)  \
            c->should_stop = 1;                                             \
    }
NOTES(train_begin, "T")
NOTES(epoch_begin, "E")
NOTES(step_begin, "(")
NOTES(step_end, ")")
NOTES(epoch_end, "e")
NOTES(logs, "l")
NOTES(evaluates, "v")
NOTES(saves, "s")
NOTES(train_end, "t")

static void listen(trial *t)
{
    t->callback = (tac_trainer_callback){
        t,         train_begin, epoch_begin, step_begin, step_end,
        epoch_end, logs,        evaluates,   saves,      train_end};
    t->has_callback = 1;
    t->stopper = -1;
}

/* 24 samples, 3 steps an epoch. */
static void test_callbacks(void)
{
    trial t = trial_of(1);
    char path[128];

    listen(&t);
    t.train_count = 24;
    t.args.num_train_epochs = 2;
    t.args.logging_steps = 2;
    t.args.eval_strategy = "epoch";
    t.args.save_strategy = "epoch";
    t.args.output_dir = folder("callbacks", path);
    CHECK_EQ(run(&t), 0);
    CHECK_MSG(!strcmp(t.events, "TE()()l()elvsE()l()()elvst"), "%s", t.events);
    done(&t);
}

static void test_stop(void)
{
    trial t = trial_of(3);

    listen(&t);
    t.train_count = 96;
    t.args.num_train_epochs = 5;
    t.stopper = 2;
    t.step_to_stop = 6;
    CHECK_EQ(run(&t), 0);
    for (int r = 0; r < 3; r++) CHECK_EQ_U64(t.out[r].attempts, 6);
    CHECK_MSG(!strcmp(t.events, "TE()()()()elE()()elt"), "%s", t.events);
    done(&t);
}

/* ---- resuming -------------------------------------------------------------
 */

static void test_resume(void)
{
    static trial whole, first, second;
    char path[128];

    whole = trial_of(2);
    whole.args.fp16 = 1;
    whole.args.num_train_epochs = 3;
    whole.args.options = "model=mlp:12 quiet=true dropout=0.1";
    whole.args.eval_strategy = "epoch";
    whole.compute = measure;
    first = second = whole;
    CHECK_EQ(run(&whole), 0);

    /* Stopped in the middle of the second epoch. */
    first.args.output_dir = folder("resume", path);
    first.args.save_steps = 2;
    listen(&first);
    first.stopper = 1;
    first.step_to_stop = 6;
    CHECK_EQ(run(&first), 0);
    CHECK_EQ_U64(first.out[0].attempts, 6);
    second.args.output_dir = path;
    second.resume = "auto";
    CHECK_EQ(run(&second), 0);
    CHECK_EQ_U64(second.out[0].attempts, 12);
    CHECK_EQ_U64(second.out[0].params_hash, whole.out[0].params_hash);
    CHECK(second.out[0].eval_loss == whole.out[0].eval_loss);
    CHECK(second.metrics[1].value == whole.metrics[1].value);
    done(&whole);
    done(&first);
    done(&second);
}

static void test_best(void)
{
    trial t = trial_of(1);
    char path[128];

    t.args.num_train_epochs = 4;
    t.args.output_dir = folder("best", path);
    t.args.eval_strategy = "epoch";
    t.args.save_strategy = "best";
    t.args.save_total_limit = 1;
    t.args.load_best_model_at_end = 1;
    t.args.metric_for_best_model = "eval_order";
    t.compute = measure;
    CHECK_EQ(run(&t), 0);
    CHECK_MSG(t.out[0].best_metric >= t.metrics[1].value - 1e-9 &&
                  t.out[0].best_metric <= t.metrics[1].value + 1e-9,
              "best %g, loaded %g", t.out[0].best_metric, t.metrics[1].value);
    done(&t);
}

static double falling;

/* Each evaluation is worse than the one before. */
static tac_status fall(void *arg, tac_context *ctx,
                       const tac_eval_prediction *p, tac_metric *out, size_t *n)
{
    (void)arg, (void)ctx, (void)p;
    strcpy(out[0].name, "falls");
    out[0].value = falling--;
    *n = 1;
    return TAC_OK;
}

/* What was best before a run was resumed is what has to be beaten. */
static void test_best_resumed(void)
{
    trial t = trial_of(2);
    char path[128], ours[200];

    falling = 10;
    t.args.num_train_epochs = 2;
    t.args.output_dir = folder("best_resumed", path);
    t.args.eval_strategy = "epoch";
    t.args.save_strategy = "best";
    t.args.metric_for_best_model = "eval_falls";
    t.compute = fall;
    CHECK_EQ(run(&t), 0);
    CHECK_EQ_F64(t.out[1].best_metric, 10);
    done(&t);
    t.args.num_train_epochs = 4;
    t.resume = "auto";
    CHECK_EQ(run(&t), 0);
    CHECK_EQ_F64(t.out[1].best_metric, 10);
    snprintf(ours, sizeof ours, "%s/checkpoints/step-%08d", path, 8);
    CHECK_MSG(access(ours, F_OK) != 0, "%s is no better", ours);
    done(&t);
}

/* ---- mistakes -------------------------------------------------------------
 */

static void test_mistakes(void)
{
    trial t = trial_of(2);

    t.args.options = "model=mlp:12 ranks=3";
    CHECK_EQ(run(&t), 2);
    CHECK_EQ(t.status[1], TAC_ERR_CONFIG);
    t = trial_of(2);
    t.args.optim = "adamw_troch";
    CHECK_EQ(run(&t), 2);
    CHECK_EQ(t.status[0], TAC_ERR_CONFIG);
    t = trial_of(2);
    t.eval_count = 0;
    t.use = evaluate_only;
    CHECK_EQ(run(&t), 1);
    CHECK_EQ(t.status[0], TAC_ERR_STATE);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/tacit-trainer-XXXXXX");
    if (!CHECK(mkdtemp(dir))) return tac_check_summary();
    test_skipped();
    test_accumulation();
    test_drop_last();
    test_drop_last_of_group();
    test_evaluate();
    test_measure_fails();
    test_order_of_calls();
    test_again();
    test_own();
    test_callbacks();
    test_stop();
    test_resume();
    test_best();
    test_best_resumed();
    test_mistakes();
    nftw(dir, forget, 8, FTW_DEPTH | FTW_PHYS);
    return tac_check_summary();
}
