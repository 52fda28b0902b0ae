/* tacit/training_args.h: what a trainer is told, in Hugging Face's words.
 *
 * The names, meanings and defaults of transformers' TrainingArguments, as far
 * as there is here what they name; docs/trainer.md has the whole list with the
 * differences. Everything else that ddp_train can be told goes into `options`:
 * "sync=local sync-every=16 compress=fp16". Start from TAC_TRAINING_ARGS_INIT.
 *
 * A value that is not known is a CONFIG error which names the nearest one. */
#ifndef TACIT_TRAINING_ARGS_H
#define TACIT_TRAINING_ARGS_H

#include "tacit/train_config.h"

TAC_BEGIN_DECLS

/* Strings are borrowed. */
typedef struct tac_training_args {
    size_t struct_size;
    const char *output_dir; /* the run folder; NULL: nothing is kept, and
                               save_strategy has no effect */

    /* How much. */
    int64_t per_device_train_batch_size; /* samples a rank and micro-step */
    int64_t per_device_eval_batch_size;  /* changes no result */
    int64_t gradient_accumulation_steps;
    double num_train_epochs;
    int64_t max_steps; /* optimizer steps, instead of epochs; < 0: not given */
    int dataloader_drop_last; /* 1: no last micro-step of fewer samples */

    /* Optimization. */
    double learning_rate;
    const char *lr_scheduler_type; /* "linear", "cosine", "constant",
                                      "constant_with_warmup" */
    double warmup_steps; /* steps, or if less than 1 a share of all steps */
    const char *optim;   /* "adamw_torch", "adamw_torch_fused", "adafactor",
                            "adamw_bnb_8bit", "adamw_8bit", "sgd" */
    double weight_decay; /* of matrices; 1-dimensional parameters have none */
    double adam_beta1, adam_beta2, adam_epsilon; /* not of adafactor and sgd */
    double max_grad_norm;                        /* 0: no clipping */

    /* Precision and memory. */
    int fp16, bf16; /* not both */
    int gradient_checkpointing;

    /* When what is due: strategies are "no", "steps", "epoch"; saving also
     * "best". */
    const char *logging_strategy;
    int64_t logging_steps;
    int logging_first_step;
    const char *eval_strategy;       /* NULL: "no" */
    const char *evaluation_strategy; /* its older name, with a warning */
    int64_t eval_steps;              /* 0: logging_steps */
    const char *save_strategy;
    int64_t save_steps;
    int64_t save_total_limit; /* checkpoints that are kept; 0: all */
    int load_best_model_at_end;
    const char *metric_for_best_model; /* "loss", "accuracy" or one of
                                          compute_metrics; NULL: "loss" */
    int greater_is_better; /* -1: not given: not for names that end in "loss" */
    const char *resume_from_checkpoint; /* "auto" or a folder; NULL */

    /* Runs that can be repeated. */
    uint64_t seed;
    int full_determinism; /* needs a communicator with `deterministic` */
    int64_t ddp_timeout;  /* seconds, of the communicator: tac_launch_config */

    const char *options; /* "key=value key=value ...", as ddp_train's; wins over
                            the fields above; NULL: none */
} tac_training_args;

#define TAC_TRAINING_ARGS_INIT                                                 \
    {                                                                          \
        sizeof(tac_training_args), NULL, 8, 8, 1, 3.0, -1, 0, 5e-5, "linear",  \
            0, "adamw_torch", 0, 0.9, 0.999, 1e-8, 1.0, 0, 0, 0, "steps", 500, \
            0, NULL, NULL, 0, "steps", 500, 0, 0, NULL, -1, NULL, 42, 0, 1800, \
            NULL                                                               \
    }

/* The same as a tac_train_config. Its strings belong to *owner, which the
 * caller gives to tac_options_destroy when *out is no longer needed. Both are
 * written on success alone. Errors: CONFIG, with one message; NOMEM. */
TAC_API tac_status tac_training_args_config(tac_context *ctx,
                                            const tac_training_args *args,
                                            tac_train_config *out,
                                            tac_options **owner);

TAC_END_DECLS

#endif
