/* 03_trainer.c: the third level of interface: arguments, a trainer, train.
 *
 *     03_trainer [--ranks N] [--threads N]         ranks as threads
 *     mpirun -np N 03_trainer                      ranks as processes
 *
 * The same CNN on Fashion-MNIST as 01_loop.c and 02_accelerator.c, with the
 * same settings: all three end with the same parameters, to the bit. The
 * package dataset-fashion-mnist has the data.
 *
 * Everything of a trainer is in tacit/trainer.h, all arguments with their
 * defaults in docs/trainer.md. The folder `run` has the checkpoints afterwards,
 * the losses in metrics.jsonl, and summary.json. */
#include <stdio.h>
#include <stdlib.h>

#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/trainer.h"

/* A function of one's own measures: here the share of right guesses. It sees
 * each sample of the evaluation once, whatever the number of ranks. */
static tac_status accuracy(void *arg, tac_context *ctx,
                           const tac_eval_prediction *p, tac_metric *out,
                           size_t *n)
{
    size_t right = 0;

    (void)arg, (void)ctx;
    for (size_t i = 0; i < p->n; i++) {
        const float *logits = p->logits + i * p->classes;
        size_t best = 0;

        for (size_t c = 1; c < p->classes; c++)
            if (logits[c] > logits[best]) best = c;
        right += best == (size_t)p->labels[i];
    }
    out[0] = (tac_metric){"accuracy", (double)right / (double)p->n};
    *n = 1;
    return TAC_OK;
}

/* What every rank does. */
static tac_status train(tac_context *ctx, tac_comm *comm, void *arg)
{
    const tac_data *data = arg;
    const char *steps = getenv("STEPS");
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    tac_train_output result;
    tac_trainer *trainer;

    /* 1. Arguments. */
    args.output_dir = "run";
    args.eval_strategy = "epoch";
    args.fp16 = 1;
    args.learning_rate = 1e-3;
    args.per_device_train_batch_size = 32;
    args.max_steps = steps ? atoi(steps) : 100;

    /* 2. A trainer, from model, arguments, data and a metric. */
    const tac_model_source model = {.spec = "cnn"};
    const tac_trainer_config config = {.struct_size = sizeof config,
                                       .args = &args,
                                       .model = &model,
                                       .train_dataset = data->train,
                                       .eval_dataset = data->val,
                                       .compute_metrics = accuracy,
                                       .out = stdout};
    TAC_TRY(tac_trainer_create(ctx, comm, &config, &trainer));

    /* 3. Train. */
    const tac_status s = tac_trainer_train(trainer, NULL, &result);

    if (s >= 0 && tac_comm_rank(comm) == 0)
        printf("params_hash %016llx\n", (unsigned long long)result.params_hash);
    tac_trainer_destroy(trainer);
    return s;
}

int main(int argc, char **argv)
{
    tac_launch_config launch = TAC_LAUNCH_CONFIG_INIT;
    tac_data data = {NULL, NULL, NULL};
    int code = 2;

    launch.usage = "Trains the CNN on Fashion-MNIST with a trainer.";
    tac_launch_argv(&argc, argv, &launch);
    /* Ranks that are threads share the images. */
    if (tac_data_open(NULL, "fashion-mnist", NULL, &data) >= 0)
        code = tac_launch(&launch, train, &data);
    tac_data_close(&data);
    return code;
}
