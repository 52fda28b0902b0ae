/* 07_own_model.c: a model of your own: parameters, a function that records its
 * operations, and a trainer that does not know the difference.
 *
 *     07_own_model [--ranks N] [--threads N]      or under mpirun
 *
 * A perceptron with a residual connection: h = relu(W1 x), h + relu(W2 h), W3.
 * The data is made up, so that nothing has to be installed. */
#include <stdio.h>
#include <stdlib.h>

#include "tacit/data.h"
#include "tacit/launch.h"
#include "tacit/ops.h"
#include "tacit/trainer.h"

enum { WIDTH = 64 };

typedef struct residual {
    size_t w[3], b[3]; /* indices of parameters */
} residual;

static tac_status linear(const residual *m, tac_tape *t, int layer,
                         tac_tensor *x, tac_act act, tac_tensor **y)
{
    return tac_op_linear(t, x, tac_tape_param(t, m->w[layer]),
                         tac_tape_param(t, m->b[layer]), act, y);
}

static tac_status forward(void *impl, tac_tape *t, tac_tensor *x,
                          tac_tensor **logits)
{
    const residual *m = impl;
    tac_tensor *flat, *h, *more, *sum;

    TAC_TRY(tac_op_flatten(t, x, &flat));
    TAC_TRY(linear(m, t, 0, flat, TAC_ACT_RELU, &h));
    TAC_TRY(linear(m, t, 1, h, TAC_ACT_RELU, &more));
    TAC_TRY(tac_op_add(t, h, more, &sum));
    return linear(m, t, 2, sum, TAC_ACT_NONE, logits);
}

/* Called once a rank, before anything is allocated. */
static tac_status build(void *arg, tac_params *params,
                        const tac_model_config *c, tac_model **out)
{
    const tac_model_ops ops = {.struct_size = sizeof ops,
                               .name = "residual",
                               .forward = forward,
                               .destroy = free};
    const size_t sizes[] = {c->h * c->w * c->c, WIDTH, WIDTH, c->classes};
    residual *m = calloc(1, sizeof *m);
    tac_status s = m ? TAC_OK : TAC_ERR_NOMEM;

    (void)arg;
    for (int i = 0; i < 3 && s >= 0; i++) {
        const size_t shape[] = {sizes[i + 1], sizes[i]};
        const tac_init init = {TAC_INIT_FAN_IN, (double)sizes[i]};
        char name[32];

        snprintf(name, sizeof name, "fc%d.weight", i + 1);
        s = tac_params_add(params, name, 2, shape, init, 0, &m->w[i]);
        snprintf(name, sizeof name, "fc%d.bias", i + 1);
        if (s >= 0)
            s = tac_params_add(params, name, 1, shape, init, 0, &m->b[i]);
    }
    if (s >= 0) s = tac_model_create_from(params, &ops, m, c, out);
    if (s < 0) free(m);
    return s;
}

static tac_status train(tac_context *ctx, tac_comm *comm, void *arg)
{
    const tac_data *data = arg;
    const tac_model_source model = {"residual", build, NULL};
    tac_training_args args = TAC_TRAINING_ARGS_INIT;
    const tac_trainer_config config = {.struct_size = sizeof config,
                                       .args = &args,
                                       .model = &model,
                                       .train_dataset = data->train,
                                       .eval_dataset = data->val,
                                       .out = stdout};
    tac_trainer *trainer;

    args.eval_strategy = "epoch";
    args.learning_rate = 1e-3;
    args.num_train_epochs = 1;
    args.per_device_train_batch_size = 32;
    TAC_TRY(tac_trainer_create(ctx, comm, &config, &trainer));
    const tac_status s = tac_trainer_train(trainer, NULL, NULL);

    tac_trainer_destroy(trainer);
    return s;
}

int main(int argc, char **argv)
{
    tac_launch_config launch = TAC_LAUNCH_CONFIG_INIT;
    tac_data data = {NULL, NULL, NULL};
    int code = 2;

    launch.usage = "Trains a model of its own on made-up images.";
    tac_launch_argv(&argc, argv, &launch);
    if (tac_data_open(NULL, "synth:2400", NULL, &data) >= 0)
        code = tac_launch(&launch, train, &data);
    tac_data_close(&data);
    return code;
}
