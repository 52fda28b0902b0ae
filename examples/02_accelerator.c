/* 02_accelerator.c: the second level of interface: your own loop, while an
 * accelerator has the scaler, autocast and the other ranks.
 *
 *     02_accelerator [--ranks N] [--threads N]     ranks as threads
 *     mpirun -np N 02_accelerator                  ranks as processes
 *
 * The same CNN on Fashion-MNIST as 01_loop.c and 03_trainer.c, with the same
 * settings: all three end with the same parameters, to the bit. */
#include <stdio.h>
#include <stdlib.h>

#include "tacit/accelerator.h"
#include "tacit/data.h"
#include "tacit/launch.h"

static tac_status train(tac_accelerator *a)
{
    const tac_batch *batch;
    tac_metrics m;

    for (uint64_t e = 0; e < tac_accelerator_epochs(a); e++) {
        TAC_TRY(tac_accelerator_start_epoch(a, e));
        for (;;) {
            TAC_TRY(tac_accelerator_next(a, &batch));
            if (!batch) break;
            TAC_TRY(tac_accelerator_forward(a));  /* outputs and loss */
            TAC_TRY(tac_accelerator_backward(a)); /* scaled, and averaged */
            TAC_TRY(tac_accelerator_clip_grad_norm(a, 1.0));
            TAC_TRY(tac_accelerator_step(a)); /* optimizer, LR and scale */
            TAC_TRY(tac_accelerator_zero_grad(a));
        }
        TAC_TRY(tac_accelerator_evaluate(a, &m));
        const tac_checkpoint_metric values[] = {
            {"eval_loss", m.loss_sum / m.count},
            {"eval_accuracy", m.correct / m.count}};
        TAC_TRY(tac_accelerator_log(a, values, 2));
    }
    return TAC_OK;
}

/* What every rank does. */
static tac_status body(tac_context *ctx, tac_comm *comm, void *arg)
{
    const tac_data *data = arg;
    const char *steps = getenv("STEPS");
    const tac_model_source model = {.spec = "cnn"};
    const tac_accelerator_config config = {
        .struct_size = sizeof config, .mixed_precision = "fp16", .out = stdout};
    const tac_prepare_config parts = {.struct_size = sizeof parts,
                                      .model = &model,
                                      .optimizer = "adamw",
                                      .learning_rate = 1e-3,
                                      .lr_scheduler = "linear",
                                      .train_dataset = data->train,
                                      .eval_dataset = data->val,
                                      .batch_size = 32,
                                      .max_train_steps =
                                          steps ? atoi(steps) : 100};
    tac_accelerator *a;
    uint64_t hash = 0;

    TAC_TRY(tac_accelerator_create(ctx, comm, &config, &a));
    tac_status s = tac_accelerator_prepare(a, &parts);
    if (s >= 0) s = train(a);
    if (s >= 0) s = tac_accelerator_params_hash(a, &hash);
    if (s >= 0 && tac_accelerator_is_main_process(a))
        printf("params_hash %016llx\n", (unsigned long long)hash);
    tac_accelerator_destroy(a);
    return s;
}

int main(int argc, char **argv)
{
    tac_launch_config launch = TAC_LAUNCH_CONFIG_INIT;
    tac_data data = {NULL, NULL, NULL};
    int code = 2;

    launch.usage = "Trains the CNN on Fashion-MNIST with an accelerator.";
    tac_launch_argv(&argc, argv, &launch);
    /* Ranks that are threads share the images. */
    if (tac_data_open(NULL, "fashion-mnist", NULL, &data) >= 0)
        code = tac_launch(&launch, body, &data);
    tac_data_close(&data);
    return code;
}
