/* engine_optim_model.h: a small model for the optimizers' unit tests. */
#ifndef TAC_ENGINE_OPTIM_MODEL_H
#define TAC_ENGINE_OPTIM_MODEL_H

#include <criterion/criterion.h>
#include <math.h>

#include "engine_test.h"
#include "tacit/optim.h"

static inline size_t add(const eng_world *w, const char *name, int ndim,
                         size_t a, size_t b, unsigned flags)
{
    const size_t shape[2] = {a, b};
    size_t index = 0;

    cr_assert_eq(tac_params_add(w->params, name, ndim, shape,
                                (tac_init){TAC_INIT_ZEROS, 0}, flags, &index),
                 TAC_OK);
    return index;
}

static inline void layout(const eng_world *w)
{
    const tac_dtype t = tac_params_dtype(w->params);

    cr_assert_eq(tac_params_layout(w->params, NULL, NULL, NULL), TAC_OK);
    for (size_t i = 0; i < tac_params_count(w->params); ++i)
        eng_fill(t, tac_params_value(w->params, i),
                 tac_params_get(w->params, i)->count, 9, i);
}

static inline void fill_grads(const eng_world *w, uint64_t step, double scale)
{
    const tac_dtype t = tac_params_grad_dtype(w->params);

    for (size_t i = 0; i < tac_params_count(w->params); ++i) {
        const tac_param *q = tac_params_get(w->params, i);
        for (size_t e = 0; e < q->count; ++e)
            eng_set(t, tac_params_grad(w->params, i), e,
                    (q->flags & TAC_PARAM_FROZEN) != 0
                        ? 0
                        : scale * eng_value(20 + step, i, e));
    }
}

/* A matrix that goes 8-bit, a smaller one, a bias, a frozen one. */
static inline eng_world model(tac_dtype dtype)
{
    eng_world w = eng_open(NULL, dtype, 2);

    add(&w, "fc.weight", 2, 70, 60, 0);
    add(&w, "out.weight", 2, 5, 60, 0);
    add(&w, "fc.bias", 1, 70, 0, 0);
    add(&w, "old.weight", 2, 64, 64, TAC_PARAM_FROZEN);
    layout(&w);
    return w;
}

static inline tac_optimizer *make(const eng_world *w,
                                  const tac_optimizer_config *c)
{
    tac_optimizer *o = NULL;
    char text[512];

    cr_assert_eq(tac_optimizer_create(w->params, c, &o), TAC_OK, "%s",
                 eng_error(w, text, sizeof text));
    return o;
}

static inline tac_param_settings settings(const tac_optimizer *o, size_t i)
{
    tac_param_settings s;

    cr_assert_eq(tac_optimizer_settings(o, i, &s), TAC_OK);
    return s;
}

#endif
