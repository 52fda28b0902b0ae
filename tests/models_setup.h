/* models_setup.h: a model with all that a test of it needs. */
#ifndef TAC_TESTS_MODELS_SETUP_H
#define TAC_TESTS_MODELS_SETUP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/model.h"
#include "tacit/ops.h"
#include "tacit/rng.h"

static inline void models_log_nothing(void *arg, tac_log_level level,
                                      const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static inline tac_context *models_context(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    config.log = models_log_nothing;
    config.threads = 2;
    if (tac_context_create(&config, &ctx) < 0) abort();
    return ctx;
}

static inline int models_message_has(const tac_context *ctx, const char *part)
{
    char text[4096];
    tac_context_error(ctx, text, sizeof(text));
    return strstr(text, part) != NULL;
}

/* Everything for training steps; any pointer may be NULL after a failure. */
typedef struct models_rig {
    tac_context *ctx;
    tac_device *dev;
    tac_params *params;
    tac_model *model;
    tac_tape *tape;
} models_rig;

/* Device (isa NULL: the best), registry and model; no tape, no values. */
static inline tac_status models_open(models_rig *r, const char *isa,
                                     tac_dtype dtype, const char *spec,
                                     const tac_model_config *config)
{
    memset(r, 0, sizeof(*r));
    r->ctx = models_context();
    TAC_TRY(tac_device_open(r->ctx, "cpu", isa, &r->dev));
    TAC_TRY(tac_params_create(r->dev, dtype, &r->params));
    return tac_model_create(r->params, spec, config, &r->model);
}

/* Then layout in registration order, initial values and a tape. */
static inline tac_status models_ready(models_rig *r, uint64_t seed,
                                      int recompute)
{
    tac_tape_config tc = TAC_TAPE_CONFIG_INIT;
    tc.seed = seed;
    tc.recompute = recompute;
    TAC_TRY(tac_params_layout(r->params, NULL, NULL, NULL));
    TAC_TRY(tac_params_init(r->params, seed));
    return tac_tape_create(r->params, &tc, &r->tape);
}

static inline void models_close(models_rig *r)
{
    tac_tape_destroy(r->tape);
    tac_model_destroy(r->model);
    tac_params_destroy(r->params);
    tac_device_close(r->dev);
    tac_context_destroy(r->ctx);
}

/* Forward and loss of one step over host arrays of the tape's dtype. */
static inline tac_status models_forward(models_rig *r,
                                        const tac_tape_step *step, size_t n,
                                        void *x, int32_t *y, int x_grad,
                                        tac_tensor **input, tac_tensor **logits,
                                        tac_xent *xent)
{
    const tac_model_config *c = tac_model_config_of(r->model);
    const size_t shape[] = {n, c->h, c->w, c->c};
    tac_tensor *labels = NULL;
    TAC_TRY(tac_tape_begin(r->tape, step));
    TAC_TRY(tac_tape_input(r->tape, "images", tac_tape_dtype(r->tape), 4, shape,
                           x, x_grad, input));
    TAC_TRY(
        tac_tape_input(r->tape, "labels", TAC_I32, 1, shape, y, 0, &labels));
    TAC_TRY(tac_model_forward(r->model, r->tape, *input, logits));
    return tac_op_softmax_cross_entropy(r->tape, *logits, labels, xent);
}

/* A reproducible number in [-1, 1). */
static inline double models_random(uint32_t step, uint64_t i)
{
    const tac_rng_key key = {99, TAC_STREAM_USER, step};
    return 2 * tac_rng_uniform(&key, i) - 1;
}

#endif
