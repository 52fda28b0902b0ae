/* ddp_misuse.c: what a program may get wrong with the accelerator and the
 * trainer is an error on every rank, and nothing else: arguments that are NULL,
 * values that no table accepts, ranks that were given different things, and
 * functions of the program's own that fail without a word. */
#include <math.h>
#include <unistd.h>

#include "data_files.h"
#include "tac_check.h"
#include "tacit/accelerator.h"
#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/trainer.h"

enum { SAMPLES = 24, EVAL = 6 };

static char dir[64];

static tac_dataset *samples(size_t count)
{
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    tac_dataset *set = NULL;

    sc.count = count;
    sc.h = sc.w = 4;
    sc.classes = 3;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &set));
    return set;
}

/* ---- accelerators ---------------------------------------------------------
 */

/* What rank 1 of two is given otherwise than rank 0, or all are. */
typedef struct acc {
    tac_prepare_config other;
    size_t more_samples, more_eval;
    const char *precision, *spec;
    int everywhere;
    tac_status want;
    tac_status (*use)(tac_accelerator *a, int rank);
} acc;

static void take(int64_t *to, int64_t from)
{
    if (from) *to = from;
}

static tac_status acc_body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const acc *t = arg;
    const int rank = tac_comm_rank(comm);
    const int odd = t->everywhere || rank == 1;
    const tac_model_source model = {.spec = "mlp:5"},
                           other = {.spec = t->spec ? t->spec : "mlp:6"};
    tac_accelerator_config c = {.struct_size = sizeof c};
    tac_prepare_config p = {.struct_size = sizeof p,
                            .model = &model,
                            .batch_size = 4,
                            .learning_rate = 0.01,
                            .num_train_epochs = 1};
    tac_accelerator *a = NULL;
    tac_status s;

    p.train_dataset = samples(SAMPLES + (odd ? t->more_samples : 0));
    p.eval_dataset = samples(EVAL + (odd ? t->more_eval : 0));
    if (odd) {
        c.mixed_precision = t->precision;
        take(&p.batch_size, t->other.batch_size);
        take(&p.max_train_steps, t->other.max_train_steps);
        take(&p.num_warmup_steps, t->other.num_warmup_steps);
        if (t->other.learning_rate != 0)
            p.learning_rate = t->other.learning_rate;
        p.optimizer = t->other.optimizer;
        if (t->other.model || t->spec) p.model = &other;
    }
    s = tac_accelerator_create(ctx, comm, &c, &a);
    if (s >= 0) s = tac_accelerator_prepare(a, &p);
    if (s >= 0 && t->use) s = t->use(a, rank);
    tac_accelerator_destroy(a);
    tac_dataset_destroy(p.train_dataset);
    tac_dataset_destroy(p.eval_dataset);
    CHECK_STATUS(s, t->want);
    return s;
}

static void run_acc(acc t)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;

    lc.ranks = 2;
    lc.threads = 1;
    CHECK_EQ(tac_launch(&lc, acc_body, &t), tac_launch_exit_code(t.want));
}

static tac_status nulls(tac_accelerator *a, int rank)
{
    const void *p;
    double x;
    size_t n;

    (void)rank;
    CHECK_OK(tac_accelerator_start_epoch(a, 0));
    CHECK_STATUS(tac_accelerator_next(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_evaluate(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_params_hash(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_take_metrics(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_save_state(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_load_state(a, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_gather(a, NULL, 8, &p), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_gather(a, &x, 8, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_reduce(a, NULL, 1, 0), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_log(a, NULL, 1), TAC_ERR_ARG);
    CHECK_STATUS(tac_accelerator_prepare(a, NULL), TAC_ERR_ARG);
    CHECK_OK(tac_accelerator_eval_start(a));
    CHECK_STATUS(tac_accelerator_eval_next(a, NULL), TAC_ERR_ARG);
    CHECK_OK(tac_accelerator_eval_next(a, (const tac_batch **)&p));
    /* An evaluation inside a batch would take its records away. */
    CHECK_STATUS(tac_accelerator_evaluate(a, &(tac_metrics){0}), TAC_ERR_STATE);
    CHECK_STATUS(tac_accelerator_gather_for_metrics(a, NULL, 8, &p, &n),
                 TAC_ERR_ARG);
    CHECK_STATUS(
        tac_accelerator_gather_for_metrics(a, &x, SIZE_MAX / 2, &p, &n),
        TAC_ERR_ARG);
    return TAC_OK;
}

static tac_status leave_state(tac_accelerator *a, int rank)
{
    (void)rank;
    return tac_accelerator_save_state(a, dir);
}

static tac_status take_state(tac_accelerator *a, int rank)
{
    (void)rank;
    return tac_accelerator_load_state(a, dir);
}

#define OTHER(...)                                       \
    (acc)                                                \
    {                                                    \
        .other = {__VA_ARGS__}, .want = TAC_ERR_MISMATCH \
    }
#define NOBODY(...)                                                     \
    (acc)                                                               \
    {                                                                   \
        .other = {__VA_ARGS__}, .everywhere = 1, .want = TAC_ERR_CONFIG \
    }

static void accelerators(void)
{
    const tac_model_source some = {.spec = ""};

    run_acc((acc){.use = nulls, .want = TAC_OK});
    run_acc(OTHER(.batch_size = 3));
    run_acc(OTHER(.learning_rate = 0.02));
    run_acc(OTHER(.model = &some));
    run_acc((acc){.precision = "bf16", .want = TAC_ERR_MISMATCH});
    run_acc((acc){.more_samples = 1, .want = TAC_ERR_MISMATCH});
    run_acc((acc){.more_eval = 1, .want = TAC_ERR_MISMATCH});
    run_acc(NOBODY(.learning_rate = NAN));
    run_acc(NOBODY(.learning_rate = -1));
    run_acc(NOBODY(.batch_size = -1));
    run_acc(NOBODY(.batch_size = INT64_MAX));
    run_acc(NOBODY(.max_train_steps = INT64_MAX));
    run_acc(NOBODY(.num_warmup_steps = -1));
    run_acc(NOBODY(.optimizer = "adm"));
    /* Refused before anything of it is allocated. */
    run_acc((acc){
        .spec = "mlp:400000,400000", .everywhere = 1, .want = TAC_ERR_CONFIG});
    /* Another dataset would deal other samples from there on. */
    run_acc((acc){.use = leave_state, .want = TAC_OK});
    run_acc((acc){.use = take_state, .want = TAC_OK});
    run_acc((acc){.use = take_state,
                  .everywhere = 1,
                  .more_samples = 1,
                  .want = TAC_ERR_MISMATCH});
}

/* ---- trainers -------------------------------------------------------------
 */

typedef struct trial {
    tac_compute_metrics_fn *compute;
    tac_model_source model;
    size_t more_samples;   /* of rank 1 */
    int only_one_computes; /* rank 0 */
    int nulls;
    tac_status want;
} trial;

static tac_status ask_for_nothing(tac_trainer *t)
{
    CHECK_STATUS(tac_trainer_save_model(t, NULL), TAC_ERR_ARG);
    CHECK_STATUS(tac_trainer_save_model(t, ""), TAC_ERR_ARG);
    CHECK_STATUS(tac_trainer_predict(t, NULL, NULL, NULL), TAC_ERR_ARG);
    return tac_trainer_evaluate(t, NULL, NULL);
}

static tac_status trainer_body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const trial *t = arg;
    const int rank = tac_comm_rank(comm);
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    tac_trainer_config c = {.struct_size = sizeof c, .args = &args};
    tac_trainer *trainer = NULL;
    tac_status s;

    args.options = "model=mlp:5 quiet=true";
    args.num_train_epochs = 1;
    args.per_device_train_batch_size = 4;
    args.save_strategy = "no";
    c.train_dataset = samples(SAMPLES + (rank ? t->more_samples : 0));
    c.eval_dataset = samples(EVAL);
    if (!t->only_one_computes || rank == 0) c.compute_metrics = t->compute;
    if (t->model.build) c.model = &t->model;
    s = tac_trainer_create(ctx, comm, &c, &trainer);
    if (s >= 0)
        s = t->nulls ? ask_for_nothing(trainer)
                     : tac_trainer_evaluate(trainer, NULL, NULL);
    tac_trainer_destroy(trainer);
    tac_dataset_destroy(c.train_dataset);
    tac_dataset_destroy(c.eval_dataset);
    CHECK_STATUS(s, t->want);
    return s;
}

static void run_trainer(trial t)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;

    lc.ranks = 2;
    lc.threads = 1;
    CHECK_EQ(tac_launch(&lc, trainer_body, &t), tac_launch_exit_code(t.want));
}

static tac_status twins(void *arg, tac_context *ctx,
                        const tac_eval_prediction *p, tac_metric *out,
                        size_t *n)
{
    (void)arg, (void)ctx, (void)p;
    out[0] = (tac_metric){"f1", 1};
    out[1] = (tac_metric){"f1", 2};
    *n = 2;
    return TAC_OK;
}

static tac_status wordless(void *arg, tac_context *ctx,
                           const tac_eval_prediction *p, tac_metric *out,
                           size_t *n)
{
    (void)arg, (void)ctx, (void)p, (void)out, (void)n;
    return TAC_ERR_DATA;
}

static tac_status build_nothing(void *arg, tac_params *params,
                                const tac_model_config *c, tac_model **out)
{
    (void)arg, (void)params, (void)c, (void)out;
    return TAC_ERR_DATA;
}

static void trainers(void)
{
    run_trainer((trial){.nulls = 1, .want = TAC_OK});
    run_trainer((trial){.compute = twins, .want = TAC_ERR_ARG});
    run_trainer((trial){.compute = wordless, .want = TAC_ERR_DATA});
    run_trainer((trial){
        .compute = twins, .only_one_computes = 1, .want = TAC_ERR_MISMATCH});
    run_trainer((trial){.more_samples = 1, .want = TAC_ERR_MISMATCH});
    run_trainer(
        (trial){.model = {"none", build_nothing, NULL}, .want = TAC_ERR_DATA});
}

/* Of what all of this prints, each failure is told once. */
static void told_once(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    int errors = 0, wordless_ones = 0;

    while (f && fgets(line, sizeof line, f)) {
        errors += strstr(line, "error: ") != NULL;
        wordless_ones += strstr(line, "error: rank 0 failed: bad data") != NULL;
    }
    if (f) fclose(f);
    CHECK_EQ(wordless_ones, 2);
    CHECK_MSG(errors >= 19, "%d errors", errors);
}

int main(void)
{
    char path[128];
    const int terminal = dup(STDERR_FILENO);

    data_make_dir(dir);
    snprintf(path, sizeof path, "%s/stderr", dir);
    CHECK(freopen(path, "w", stderr) != NULL);
    accelerators();
    trainers();
    fflush(stderr);
    CHECK(dup2(terminal, STDERR_FILENO) >= 0);
    told_once(path);
    data_remove_dir(dir);
    return tac_check_summary();
}
