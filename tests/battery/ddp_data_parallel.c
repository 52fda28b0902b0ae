/* The wrap for loops of one's own: two half batches that are added up on each
 * of two ranks give the gradient of the whole batch on one; ranks begin equal;
 * too many loaders are refused. A wrap that makes the model itself gives the
 * same bits, and says what is wrong with its configuration. */
#include <math.h>
#include <string.h>

#include "tac_check.h"
#include "tacit/data.h"
#include "tacit/data_parallel.h"
#include "tacit/launch.h"
#include "tacit/model.h"
#include "tacit/ops.h"

enum { SAMPLES = 8, MOST = 1024 };

typedef struct trial {
    int parts; /* of a rank's samples */
    tac_dataset *set;
    size_t n;
    float grads[MOST]; /* of rank 0 */
    uint64_t hash[2];
} trial;

static tac_status forward(tac_tape *tape, tac_model *m, const tac_batch *b,
                          tac_xent *loss)
{
    const size_t shape[] = {b->count, 4, 4, 1};
    tac_tensor *x, *y, *logits;

    TAC_TRY(tac_tape_input(tape, "x", TAC_F32, 4, shape, b->x, 0, &x));
    TAC_TRY(tac_tape_input(tape, "y", TAC_I32, 1, shape, b->y, 0, &y));
    TAC_TRY(tac_model_forward(m, tape, x, &logits));
    return tac_op_softmax_cross_entropy(tape, logits, y, loss);
}

static tac_status step(trial *t, tac_data_parallel *dp, tac_tape *tape,
                       tac_model *m, tac_loader *loader)
{
    const tac_batch *b;
    tac_xent loss;

    TAC_TRY(tac_loader_start_epoch(loader, 0));
    for (int i = 0; i < t->parts; i++) {
        const tac_tape_step now = {.flags = i ? TAC_TAPE_ACCUMULATE : 0};

        TAC_TRY(tac_loader_next(loader, &b));
        TAC_TRY(tac_tape_begin(tape, &now));
        TAC_TRY(forward(tape, m, b, &loss));
        TAC_TRY(tac_data_parallel_backward(dp, loss.loss, SAMPLES, NULL,
                                           i == t->parts - 1));
    }
    return TAC_OK;
}

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    trial *t = arg;
    const int rank = tac_comm_rank(comm);
    const size_t batch = (size_t)(SAMPLES / tac_comm_size(comm) / t->parts);
    const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
    const tac_batch shapes = {.count = batch};
    tac_model_config mc = TAC_MODEL_CONFIG_INIT;
    tac_device *device;
    tac_params *params;
    tac_model *m;
    tac_tape *tape;
    tac_data_parallel *dp;
    tac_loader *loader;
    tac_xent loss;

    mc.h = mc.w = 4;
    TAC_TRY(tac_device_open(ctx, "cpu", NULL, &device));
    TAC_TRY(tac_params_create(device, TAC_F32, &params));
    TAC_TRY(tac_model_create(params, "mlp:12", &mc, &m));
    TAC_TRY(tac_tape_create(params, NULL, &tape));
    TAC_TRY(tac_tape_begin(tape, &dry));
    TAC_TRY(forward(tape, m, &shapes, &loss));
    TAC_TRY(tac_data_parallel_create(comm, tape, loss.loss, 3, NULL, &dp));
    TAC_TRY(tac_data_parallel_hash(params, &t->hash[rank]));
    TAC_TRY(tac_data_parallel_loader(dp, t->set, batch, 0, 0, &loader));
    CHECK(tac_data_parallel_forward(dp, &shapes, &loss) == TAC_ERR_STATE);
    TAC_TRY(step(t, dp, tape, m, loader));
    if (rank == 0) {
        t->n = tac_params_padded(params);
        CHECK(t->n <= MOST);
        memcpy(t->grads, tac_params_grads(params), t->n * sizeof(float));
    }
    for (int i = 1; i < TAC_DATA_PARALLEL_LOADERS; i++)
        TAC_TRY(tac_data_parallel_loader(dp, t->set, 1, 1, 0, &loader));
    CHECK(tac_data_parallel_loader(dp, t->set, 1, 1, 0, &loader) ==
          TAC_ERR_ARG);
    tac_data_parallel_destroy(dp);
    tac_tape_destroy(tape);
    tac_model_destroy(m);
    tac_params_destroy(params);
    tac_device_close(device);
    return TAC_OK;
}

/* The same with tac_data_parallel_open. */
static tac_status open_body(tac_context *ctx, tac_comm *comm, void *arg)
{
    trial *t = arg;
    const int rank = tac_comm_rank(comm);
    const size_t batch = (size_t)(SAMPLES / tac_comm_size(comm) / t->parts);
    tac_data_parallel_config c = TAC_DATA_PARALLEL_CONFIG_INIT;
    tac_data_parallel *dp;
    tac_loader *loader;
    const tac_batch *b;
    tac_xent loss;

    (void)ctx;
    c.model = &(tac_model_source){.spec = "mlp:12"};
    c.batch = batch;
    c.seed = 3;
    TAC_TRY(tac_data_parallel_open(comm, &c, t->set, &dp));
    tac_params *params = tac_data_parallel_params(dp);
    TAC_TRY(tac_data_parallel_hash(params, &t->hash[rank]));
    TAC_TRY(tac_data_parallel_loader(dp, t->set, batch, 0, 0, &loader));
    TAC_TRY(tac_loader_start_epoch(loader, 0));
    for (int i = 0; i < t->parts; i++) {
        const tac_tape_step now = {.flags = i ? TAC_TAPE_ACCUMULATE : 0};

        TAC_TRY(tac_loader_next(loader, &b));
        TAC_TRY(tac_tape_begin(tac_data_parallel_tape(dp), &now));
        TAC_TRY(tac_data_parallel_forward(dp, b, &loss));
        TAC_TRY(tac_data_parallel_backward(dp, loss.loss, SAMPLES, NULL,
                                           i == t->parts - 1));
    }
    if (rank == 0) {
        t->n = tac_params_padded(params);
        memcpy(t->grads, tac_params_grads(params), t->n * sizeof(float));
    }
    tac_data_parallel_destroy(dp);
    return TAC_OK;
}

static tac_status fails_on_one(void *arg, tac_params *params,
                               const tac_model_config *c, tac_model **out)
{
    const int *rank = arg;

    return *rank == 1 ? TAC_ERR_DATA
                      : tac_model_create(params, "mlp:12", c, out);
}

/* Gradients that are numbers, and not all 0. */
static tac_status step_once(tac_data_parallel *dp, tac_dataset *set)
{
    tac_params *params = tac_data_parallel_params(dp);
    const float *grads = tac_params_grads(params);
    tac_loader *loader;
    const tac_batch *b;
    tac_xent loss;
    double sum = 0;

    TAC_TRY(tac_data_parallel_loader(dp, set, 4, 0, 0, &loader));
    TAC_TRY(tac_loader_start_epoch(loader, 0));
    TAC_TRY(tac_loader_next(loader, &b));
    TAC_TRY(tac_tape_begin(tac_data_parallel_tape(dp), NULL));
    TAC_TRY(tac_data_parallel_forward(dp, b, &loss));
    TAC_TRY(tac_data_parallel_backward(dp, loss.loss, SAMPLES, NULL, 1));
    for (size_t i = 0; i < tac_params_padded(params); i++)
        sum += fabs((double)grads[i]);
    CHECK(isfinite(sum) && sum > 0.01);
    return TAC_OK;
}

/* Each mistake is told, and leaves nothing behind. */
static tac_status mistakes(tac_context *ctx, tac_comm *comm, void *arg)
{
    trial *t = arg;
    tac_data_parallel_config c = TAC_DATA_PARALLEL_CONFIG_INIT;
    tac_data_parallel *dp = NULL;

    (void)ctx;
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_ARG);
    c.model = &(tac_model_source){.spec = "mlp:12"};
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_ARG);
    c.batch = 4;
    CHECK(tac_data_parallel_open(comm, &c, NULL, &dp) == TAC_ERR_ARG);
    CHECK(tac_data_parallel_open(comm, NULL, t->set, &dp) == TAC_ERR_ARG);
    /* A build that fails on one rank alone fails on all. */
    const int rank = tac_comm_rank(comm);
    c.model = &(tac_model_source){.build = fails_on_one, .arg = (void *)&rank};
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_DATA);
    c.model = &(tac_model_source){.spec = "mlp:12"};
    c.autocast = TAC_I32;
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_ARG);
    c.autocast = TAC_F32;
    c.dropout = 1;
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_ARG);
    c.dropout = 0;
    c.model = &(tac_model_source){.spec = "mpl"};
    CHECK(tac_data_parallel_open(comm, &c, t->set, &dp) == TAC_ERR_CONFIG);
    CHECK(dp == NULL);
    /* All that is optional, at once; and the arguments of forward. */
    c.model = &(tac_model_source){.spec = "mlp:12"};
    c.autocast = TAC_BF16;
    c.recompute = 1;
    c.dropout = 0.5f;
    TAC_TRY(tac_data_parallel_open(comm, &c, t->set, &dp));
    CHECK(tac_data_parallel_forward(dp, NULL, &(tac_xent){0}) == TAC_ERR_ARG);
    CHECK(tac_data_parallel_forward(dp, &(tac_batch){.count = 4}, NULL) ==
          TAC_ERR_ARG);
    TAC_TRY(step_once(dp, t->set));
    tac_data_parallel_destroy(dp);
    return TAC_OK;
}

static trial run(tac_dataset *set, int ranks, int parts, tac_rank_fn *on_rank)
{
    tac_launch_config lc = TAC_LAUNCH_CONFIG_INIT;
    trial t = {.parts = parts, .set = set};

    lc.ranks = ranks;
    lc.threads = 1;
    CHECK(tac_launch(&lc, on_rank, &t) == 0);
    return t;
}

int main(void)
{
    tac_synth_config sc = TAC_SYNTH_CONFIG_INIT;
    tac_dataset *set;
    float worst = 0, largest = 0;

    sc.h = sc.w = 4;
    sc.count = SAMPLES;
    CHECK_OK(tac_dataset_synth(NULL, &sc, &set));
    const trial whole = run(set, 1, 1, body), parts = run(set, 2, 2, body),
                opened = run(set, 2, 2, open_body);

    CHECK(whole.n == parts.n && whole.n > 0);
    for (size_t i = 0; i < whole.n; i++) {
        worst = fmaxf(worst, fabsf(whole.grads[i] - parts.grads[i]));
        largest = fmaxf(largest, fabsf(whole.grads[i]));
    }
    CHECK(largest > 1e-3f);
    CHECK(worst < 1e-6f);
    CHECK(whole.hash[0] == parts.hash[0]);
    CHECK(parts.hash[0] == parts.hash[1]);
    CHECK(opened.n == parts.n);
    CHECK(memcmp(opened.grads, parts.grads, parts.n * sizeof(float)) == 0);
    CHECK(memcmp(opened.hash, parts.hash, sizeof parts.hash) == 0);
    run(set, 2, 1, mistakes);
    tac_dataset_destroy(set);
    return tac_check_summary();
}
