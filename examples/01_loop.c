/* 01_loop.c: the first level of interface: a loop of your own, a call for each
 * step. 01_loop [--ranks N] [--threads N], or mpirun -np N 01_loop. The CNN on
 * Fashion-MNIST in fp16 with the settings of 02_accelerator.c and 03_trainer.c,
 * and to the same bits. STEPS in the environment: how many. */
#include <stdio.h>
#include <stdlib.h>

#include "tacit/tacit.h"

enum { BATCH = 32, SEED = 42 };

static tac_status train(tac_data_parallel *dp, tac_loader *loader,
                        tac_optimizer *optimizer, tac_scaler *scaler,
                        tac_tape_step step, uint64_t steps)
{
    const tac_batch *batch;
    tac_xent loss;

    for (uint64_t epoch = 0; step.step < steps; epoch++) {
        TAC_TRY(tac_loader_start_epoch(loader, epoch));
        for (; step.step < steps; step.step++) {
            /* Inputs and targets. */
            TAC_TRY(tac_loader_next(loader, &batch));
            if (!batch) break;
            step.first_sample = batch->position[0];
            /* Zero the gradients: those of this step take their place. */
            TAC_TRY(tac_tape_begin(tac_data_parallel_tape(dp), &step));
            /* Outputs and loss, in the region of autocast. */
            TAC_TRY(tac_data_parallel_forward(dp, batch, &loss));
            /* Scale the loss, and backward; ranks average gradients. */
            TAC_TRY(tac_data_parallel_backward(
                dp, loss.loss, (double)batch->step_count, scaler, 1));
            TAC_TRY(tac_scaler_check(scaler, optimizer, NULL));
            TAC_TRY(tac_optimizer_clip(optimizer, 1.0, NULL));
            /* The scaler steps the optimizer. */
            TAC_TRY(tac_scaler_step(scaler, optimizer, NULL));
            /* The scaler's update. */
            TAC_TRY(tac_scaler_update(scaler, NULL));
        }
    }
    return TAC_OK;
}

static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const tac_data *data = arg;
    const char *text = getenv("STEPS");
    const uint64_t steps = text ? strtoull(text, NULL, 10) : 100;
    const tac_tape_step first = {.sample_stride =
                                     (uint64_t)tac_comm_size(comm)};
    const tac_schedule linear = {TAC_SCHEDULE_LINEAR, 1e-3, 0, 0, steps};
    tac_optimizer_config adamw = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW);
    tac_data_parallel_config config = TAC_DATA_PARALLEL_CONFIG_INIT;
    tac_data_parallel *dp = NULL;
    tac_optimizer *optimizer = NULL;
    tac_scaler *scaler = NULL;
    tac_loader *loader;
    uint64_t hash = 0;

    (void)ctx;
    config.model = &(tac_model_source){.spec = "cnn"};
    config.batch = BATCH;
    config.autocast = TAC_F16;
    config.seed = SEED;
    adamw.weight_decay = 0;
    /* The model, equal on all ranks; this rank's data; what trains it. */
    TAC_TRY(tac_data_parallel_open(comm, &config, data->train, &dp));
    tac_params *params = tac_data_parallel_params(dp);
    tac_status s =
        tac_data_parallel_loader(dp, data->train, BATCH, 1, SEED, &loader);
    if (s >= 0) s = tac_optimizer_create(params, &adamw, &optimizer);
    if (s >= 0) s = tac_optimizer_set_schedule(optimizer, &linear);
    if (s >= 0)
        s = tac_scaler_create(tac_data_parallel_device(dp), NULL, &scaler);
    if (s >= 0) s = train(dp, loader, optimizer, scaler, first, steps);
    if (s >= 0) s = tac_data_parallel_hash(params, &hash);
    if (s >= 0 && tac_comm_rank(comm) == 0)
        printf("params_hash %016llx\n", (unsigned long long)hash);
    tac_scaler_destroy(scaler);
    tac_optimizer_destroy(optimizer);
    tac_data_parallel_destroy(dp);
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
