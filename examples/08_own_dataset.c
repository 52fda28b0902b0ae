/* 08_own_dataset.c: data of your own: a function that writes the samples that
 * it is asked for. Here: two spirals in the plane, and which one a point is of;
 * nothing is stored, every point is computed from its index.
 *
 *     08_own_dataset [--ranks N] [--threads N]      or under mpirun */
#include <math.h>
#include <stdio.h>

#include "tacit/dataset.h"
#include "tacit/launch.h"
#include "tacit/trainer.h"

enum { POINTS = 2000 };

/* Called by a loader's thread, on any rank: it must not change `impl`. */
static tac_status gather(void *impl, tac_context *ctx, size_t n,
                         const uint32_t *index, float *x, int32_t *y)
{
    (void)impl, (void)ctx;
    for (size_t i = 0; i < n; i++) {
        const int arm = (int)(index[i] % 2);
        const float turn = 6.0f * (float)index[i] / POINTS;
        const float angle = turn + (arm ? 3.14159265f : 0.0f);

        x[2 * i] = turn * cosf(angle) / 3;
        x[2 * i + 1] = turn * sinf(angle) / 3;
        y[i] = arm;
    }
    return TAC_OK;
}

static const tac_dataset_ops ops = {
    .struct_size = sizeof ops, .name = "spirals", .gather = gather};

static tac_status train(tac_context *ctx, tac_comm *comm, void *arg)
{
    tac_dataset *const *sets = arg;
    const tac_model_source model = {.spec = "mlp:64,64"};
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    const tac_trainer_config config = {.struct_size = sizeof config,
                                       .args = &args,
                                       .model = &model,
                                       .train_dataset = sets[0],
                                       .eval_dataset = sets[1],
                                       .out = stdout};
    tac_trainer *trainer;

    args.eval_strategy = "epoch";
    args.learning_rate = 1e-2;
    args.num_train_epochs = 10;
    args.per_device_train_batch_size = 32;
    TAC_TRY(tac_trainer_create(ctx, comm, &config, &trainer));
    const tac_status s = tac_trainer_train(trainer, NULL, NULL);

    tac_trainer_destroy(trainer);
    return s;
}

int main(int argc, char **argv)
{
    /* A sample is (h,w,c): a point is one pixel of two channels. */
    const tac_dataset_info info = {
        .count = POINTS, .h = 1, .w = 1, .c = 2, .classes = 2};
    tac_launch_config launch = TAC_LAUNCH_CONFIG_INIT;
    tac_dataset *all = NULL, *sets[2] = {NULL, NULL};
    int code = 2;

    launch.usage = "Trains on a dataset of its own: two spirals.";
    tac_launch_argv(&argc, argv, &launch);
    if (tac_dataset_create(NULL, &ops, NULL, &info, &all) >= 0 &&
        tac_dataset_split(NULL, all, &sets[0], &sets[1]) >= 0)
        code = tac_launch(&launch, train, sets);
    tac_dataset_destroy(sets[0]);
    tac_dataset_destroy(sets[1]);
    tac_dataset_destroy(all);
    return code;
}
