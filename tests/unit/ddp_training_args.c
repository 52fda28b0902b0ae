/* ddp_training_args.c: training arguments become options: the defaults are
 * Hugging Face's, each word has its meaning, and what is wrong is named. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tacit/training_args.h"

typedef struct reading {
    tac_context *ctx;
    tac_train_config c;
    tac_options *owner;
    tac_status s;
    char why[512], warned[512];
    int warnings;
} reading;

static void keep(void *arg, tac_log_level level, const char *line)
{
    reading *r = arg;

    if (level != TAC_LOG_WARN) return;
    r->warnings++;
    snprintf(r->warned, sizeof r->warned, "%s", line);
}

static void read_args(reading *r, const tac_training_args *a)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;

    memset(r, 0, sizeof *r);
    cc.log = keep;
    cc.log_arg = r;
    cr_assert_eq(tac_context_create(&cc, &r->ctx), TAC_OK);
    r->s = tac_training_args_config(r->ctx, a, &r->c, &r->owner);
    tac_context_error(r->ctx, r->why, sizeof r->why);
}

static void end(reading *r)
{
    tac_options_destroy(r->owner);
    tac_context_destroy(r->ctx);
}

static void expect_refused(const tac_training_args *a, const char *text)
{
    reading r;

    read_args(&r, a);
    cr_expect_eq(r.s, TAC_ERR_CONFIG, "%s", text);
    cr_expect(strstr(r.why, text), "\"%s\" lacks \"%s\"", r.why, text);
    end(&r);
}

Test(training_args, defaults_are_theirs)
{
    const tac_training_args a = TAC_TRAINING_ARGS_INIT;
    reading r;

    read_args(&r, &a);
    cr_assert_eq(r.s, TAC_OK, "%s", r.why);
    cr_expect_eq(r.c.batch, 8);
    cr_expect_eq(r.c.eval_batch, 8);
    cr_expect_eq(r.c.accumulate, 1);
    cr_expect_eq(r.c.epochs, 3.0);
    cr_expect_eq(r.c.steps, 0);
    cr_expect_eq(r.c.lr, 5e-5);
    cr_expect_str_eq(r.c.schedule, "linear");
    cr_expect_eq(r.c.warmup_steps, 0);
    cr_expect_eq(r.c.warmup_ratio, 0);
    cr_expect_str_eq(r.c.optimizer, "adamw");
    cr_expect_eq(r.c.weight_decay, 0);
    cr_expect_eq(r.c.beta1, 0.9);
    cr_expect_eq(r.c.beta2, 0.999);
    cr_expect_eq(r.c.eps, 1e-8);
    cr_expect_eq(r.c.clip_norm, 1.0);
    cr_expect_str_eq(r.c.precision, "fp32");
    cr_expect_str_eq(r.c.recompute, "none");
    cr_expect_eq(r.c.log_every, 500);
    cr_expect_eq(r.c.log_first, 0);
    cr_expect_str_eq(r.c.eval_every, "never");
    cr_expect_str_eq(r.c.save_every, "0"); /* no folder */
    cr_expect_eq(r.c.seed, 42);
    cr_expect_eq(r.warnings, 0);
    end(&r);
}

Test(training_args, words)
{
    tac_training_args a = TAC_TRAINING_ARGS_INIT;
    reading r;

    a.output_dir = "out";
    a.optim = "adamw_bnb_8bit";
    a.lr_scheduler_type = "constant_with_warmup";
    a.warmup_steps = 0.25;
    a.bf16 = 1;
    a.gradient_checkpointing = 1;
    a.logging_strategy = "epoch";
    a.eval_strategy = "steps";
    a.eval_steps = 7;
    a.save_strategy = "best";
    a.save_total_limit = 2;
    a.load_best_model_at_end = 1;
    a.metric_for_best_model = "eval_accuracy";
    a.greater_is_better = 1;
    a.dataloader_drop_last = 1;
    a.options = "--sync=local sync-every=16\n nesterov=false  drop-last";
    read_args(&r, &a);
    cr_assert_eq(r.s, TAC_OK, "%s", r.why);
    cr_expect_str_eq(r.c.run_dir, "out");
    cr_expect_str_eq(r.c.optimizer, "adamw8bit");
    cr_expect_str_eq(r.c.schedule, "constant");
    cr_expect_eq(r.c.warmup_ratio, 0.25);
    cr_expect_str_eq(r.c.precision, "bf16");
    cr_expect_str_eq(r.c.recompute, "block");
    cr_expect(r.c.log_every > 1000000);
    cr_expect_str_eq(r.c.eval_every, "7");
    cr_expect_str_eq(r.c.save_every, "best");
    cr_expect_eq(r.c.save_total_limit, 2);
    cr_expect_eq(r.c.load_best, 1);
    cr_expect_str_eq(r.c.best_metric, "eval_accuracy");
    cr_expect_eq(r.c.drop_last, 1);
    cr_expect_str_eq(r.c.sync, "local");
    cr_expect_eq(r.c.sync_every, 16);
    end(&r);

    a = (tac_training_args)TAC_TRAINING_ARGS_INIT;
    a.optim = "sgd";
    a.warmup_steps = 3;
    a.output_dir = "out";
    a.eval_strategy = "steps"; /* as often as it logs */
    a.options = "momentum=0.5 lr=2";
    read_args(&r, &a);
    cr_assert_eq(r.s, TAC_OK, "%s", r.why);
    cr_expect_eq(r.c.momentum, 0.5);
    cr_expect_eq(r.c.lr, 2); /* options win */
    cr_expect_eq(r.c.warmup_steps, 3);
    cr_expect_str_eq(r.c.eval_every, "500");
    cr_expect_str_eq(r.c.save_every, "500");
    end(&r);

    a = (tac_training_args)TAC_TRAINING_ARGS_INIT;
    a.optim = "adafactor";
    read_args(&r, &a);
    cr_assert_eq(r.s, TAC_OK, "%s", r.why);
    cr_expect(isnan(r.c.beta1)); /* Adam's are not its */
    end(&r);
}

Test(training_args, the_old_name_of_eval_strategy)
{
    tac_training_args a = TAC_TRAINING_ARGS_INIT;
    reading r;

    a.evaluation_strategy = "epoch";
    read_args(&r, &a);
    cr_expect_str_eq(r.c.eval_every, "epoch");
    cr_expect_eq(r.warnings, 1);
    cr_expect(strstr(r.warned, "eval_strategy"));
    end(&r);
    a.eval_strategy = "epoch";
    read_args(&r, &a);
    cr_expect_eq(r.s, TAC_OK);
    end(&r);
    a.eval_strategy = "no";
    expect_refused(&a, "'no' and evaluation_strategy");
}

#define REFUSED(text, ...)                            \
    do {                                              \
        tac_training_args a = TAC_TRAINING_ARGS_INIT; \
        __VA_ARGS__;                                  \
        expect_refused(&a, text);                     \
    } while (0)

Test(training_args, mistakes)
{
    REFUSED("did you mean adamw_torch?", a.optim = "adamw_troch");
    REFUSED("did you mean adafactor?", a.optim = "adafactr");
    REFUSED("did you mean cosine?", a.lr_scheduler_type = "cosin");
    REFUSED("did you mean epoch?", a.eval_strategy = "epochs");
    REFUSED("did you mean best?", a.output_dir = "x", a.save_strategy = "bst");
    REFUSED("logging_strategy", a.logging_strategy = "never");
    REFUSED("fp16 and bf16", a.fp16 = a.bf16 = 1);
    REFUSED("per_device_train_batch_size", a.per_device_train_batch_size = 0);
    REFUSED("gradient_accumulation_steps", a.gradient_accumulation_steps = -1);
    REFUSED("learning_rate", a.learning_rate = -1);
    REFUSED("adam_beta1", a.adam_beta1 = 2);
    REFUSED("warmup_steps", a.warmup_steps = 1.5);
    REFUSED("warmup_steps", a.warmup_steps = -1);
    REFUSED("constant_with_warmup", a.lr_scheduler_type = "constant",
            a.warmup_steps = 10);
    REFUSED("greater_is_better", a.greater_is_better = 1);
    REFUSED("greater_is_better", a.metric_for_best_model = "accuracy",
            a.greater_is_better = 0);
    REFUSED("did you mean --sync-every?", a.options = "sync-evry=3");
    REFUSED("options", a.options = "sync=globl");
}
