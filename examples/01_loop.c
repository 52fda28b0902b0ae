/* 01_loop.c: the first level of interface: a loop of your own, a call for each
 * step. 01_loop [--ranks N] [--threads N], or mpirun -np N 01_loop. The CNN on
 * Fashion-MNIST in fp16 with the settings of 02_accelerator.c and 03_trainer.c,
 * and to the same bits. STEPS in the environment: how many. */
#include <stdio.h>
#include <stdlib.h>

#include "tacit/autocast.h"
#include "tacit/data.h"
#include "tacit/data_parallel.h"
#include "tacit/launch.h"
#include "tacit/model.h"
#include "tacit/ops.h"

enum { BATCH = 32, SEED = 42 };

typedef struct training {
    tac_device *device;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
    tac_data_parallel *dp;
    tac_optimizer *optimizer;
    tac_scaler *scaler;
    tac_loader *loader; /* the wrap's */
} training;

/* Outputs and loss of a batch, in the region of autocast. */
static tac_status forward(training *t, const tac_batch *b, tac_xent *loss)
{
    const size_t shape[] = {b->count, 28, 28, 1};
    tac_autocast region;
    tac_tensor *inputs, *targets, *outputs;

    TAC_TRY(tac_autocast_begin(t->tape, TAC_F16, NULL, &region));
    TAC_TRY(
        tac_tape_input(t->tape, "inputs", TAC_F32, 4, shape, b->x, 0, &inputs));
    TAC_TRY(tac_tape_input(t->tape, "targets", TAC_I32, 1, shape, b->y, 0,
                           &targets));
    TAC_TRY(tac_model_forward(t->model, t->tape, inputs, &outputs));
    TAC_TRY(tac_op_softmax_cross_entropy(t->tape, outputs, targets, loss));
    return tac_autocast_end(&region);
}

static tac_status train(training *t, uint64_t ranks, uint64_t steps)
{
    uint64_t step = 0;
    const tac_batch *batch;
    tac_xent loss;

    for (uint64_t epoch = 0; step < steps; epoch++) {
        TAC_TRY(tac_loader_start_epoch(t->loader, epoch));
        for (; step < steps; step++) {
            /* Inputs and targets. */
            TAC_TRY(tac_loader_next(t->loader, &batch));
            if (!batch) break;
            /* Zero the gradients: those of this step take their place. */
            TAC_TRY(tac_tape_begin(
                t->tape, &(tac_tape_step){0, step, batch->position[0], ranks}));
            /* Outputs and loss, in the region of autocast. */
            TAC_TRY(forward(t, batch, &loss));
            /* Scale the loss, and backward; ranks average gradients. */
            TAC_TRY(tac_data_parallel_backward(
                t->dp, loss.loss, (double)batch->step_count, t->scaler, 1));
            TAC_TRY(tac_scaler_check(t->scaler, t->optimizer, NULL));
            TAC_TRY(tac_optimizer_clip(t->optimizer, 1.0, NULL));
            /* The scaler steps the optimizer. */
            TAC_TRY(tac_scaler_step(t->scaler, t->optimizer, NULL));
            /* The scaler's update. */
            TAC_TRY(tac_scaler_update(t->scaler, NULL));
        }
    }
    return TAC_OK;
}

/* The model, equal on all ranks; what trains it; its data. */
static tac_status build(training *t, tac_context *ctx, tac_comm *comm,
                        tac_dataset *set, uint64_t steps)
{
    const tac_schedule linear = {TAC_SCHEDULE_LINEAR, 1e-3, 0, 0, steps};
    const tac_batch shapes = {.count = BATCH};
    tac_optimizer_config adamw = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_tape_config tape = TAC_TAPE_CONFIG_INIT;
    tac_xent loss;

    tape.seed = SEED;
    adamw.weight_decay = 0;
    TAC_TRY(tac_device_open(ctx, "cpu", NULL, &t->device));
    TAC_TRY(tac_params_create(t->device, TAC_F32, &t->params));
    TAC_TRY(tac_model_create(t->params, "cnn", NULL, &t->model));
    TAC_TRY(tac_tape_create(t->params, &tape, &t->tape));
    TAC_TRY(tac_tape_begin(t->tape, &(tac_tape_step){.flags = TAC_TAPE_DRY}));
    TAC_TRY(forward(t, &shapes, &loss));
    TAC_TRY(
        tac_data_parallel_create(comm, t->tape, loss.loss, SEED, NULL, &t->dp));
    TAC_TRY(tac_optimizer_create(t->params, &adamw, &t->optimizer));
    TAC_TRY(tac_optimizer_set_schedule(t->optimizer, &linear));
    TAC_TRY(tac_data_parallel_loader(t->dp, set, BATCH, 1, SEED, &t->loader));
    return tac_scaler_create(t->device, NULL, &t->scaler); /* a scaler */
}

static void destroy(training *t)
{
    tac_scaler_destroy(t->scaler);
    tac_optimizer_destroy(t->optimizer);
    tac_data_parallel_destroy(t->dp);
    tac_tape_destroy(t->tape);
    tac_model_destroy(t->model);
    tac_params_destroy(t->params);
    tac_device_close(t->device);
}

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const tac_data *data = arg;
    const char *text = getenv("STEPS");
    const uint64_t steps = text ? strtoull(text, NULL, 10) : 100;
    training t = {.device = NULL};
    uint64_t hash = 0;
    tac_status s = build(&t, ctx, comm, data->train, steps);

    if (s >= 0) s = train(&t, (uint64_t)tac_comm_size(comm), steps);
    if (s >= 0) s = tac_data_parallel_hash(t.params, &hash);
    if (s >= 0 && tac_comm_rank(comm) == 0)
        printf("params_hash %016llx\n", (unsigned long long)hash);
    destroy(&t);
    return s;
}

int main(int argc, char **argv)
{
    tac_launch_config launch = TAC_LAUNCH_CONFIG_INIT;
    tac_data data = {NULL, NULL, NULL};
    int code = 2;

    launch.usage = "Trains the CNN on Fashion-MNIST in a loop of its own.";
    tac_launch_argv(&argc, argv, &launch);
    if (tac_data_open(NULL, "fashion-mnist", NULL, &data) >= 0)
        code = tac_launch(&launch, body, &data);
    tac_data_close(&data);
    return code;
}
