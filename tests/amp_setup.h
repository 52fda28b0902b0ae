/* amp_setup.h: three parameters, an optimizer and a scaler, for unit tests of
 * the scaler. */
#ifndef TAC_AMP_SETUP_H
#define TAC_AMP_SETUP_H

#include <criterion/criterion.h>
#include <float.h>

#include "amp_test.h"

static const size_t counts[3] = {5, 12, 1};

typedef struct setup {
    amp_log log;
    eng_world w;
    tac_optimizer *o;
    tac_scaler *s;
} setup;

static inline tac_optimizer *sgd(const eng_world *w)
{
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    tac_optimizer *o = NULL;

    c.lr = 0.125;
    cr_assert_eq(tac_optimizer_create(w->params, &c, &o), TAC_OK);
    return o;
}

static inline void add_params(eng_world *w, unsigned flags)
{
    amp_add(w, "first", 1, 5, 0, flags);
    amp_add(w, "second", 2, 3, 4, flags);
    amp_add(w, "last", 1, 1, 0, flags);
    cr_assert_eq(tac_params_layout(w->params, NULL, NULL, NULL), TAC_OK);
}

/* NULL: default settings. */
static inline void open_setup(setup *t, tac_dtype dtype,
                              const tac_scaler_config *c)
{
    t->w = amp_open(&t->log, dtype, 2);
    add_params(&t->w, 0);
    t->o = sgd(&t->w);
    t->s = NULL;
    cr_assert_eq(tac_scaler_create(t->w.dev, c, &t->s), TAC_OK);
}

static inline void close_setup(setup *t)
{
    tac_scaler_destroy(t->s);
    tac_optimizer_destroy(t->o);
    eng_close(&t->w);
}

static inline void set_grads(const eng_world *w, double a, double b, double c)
{
    const double value[3] = {a, b, c};

    for (size_t i = 0; i < 3; ++i)
        for (size_t e = 0; e < counts[i]; ++e)
            eng_set(tac_params_grad_dtype(w->params),
                    tac_params_grad(w->params, i), e, value[i]);
}

static inline void set_grad(const eng_world *w, size_t i, size_t e, double g)
{
    eng_set(tac_params_grad_dtype(w->params), tac_params_grad(w->params, i), e,
            g);
}

static inline double grad(const eng_world *w, size_t i, size_t e)
{
    return eng_get(tac_params_grad_dtype(w->params),
                   tac_params_grad(w->params, i), e);
}

static inline tac_scaler_config config(double init, double growth,
                                       double backoff, int64_t interval)
{
    tac_scaler_config c = TAC_SCALER_CONFIG_INIT;

    c.init_scale = init;
    c.growth_factor = growth;
    c.backoff_factor = backoff;
    c.growth_interval = interval;
    return c;
}

/* One iteration with finite or infinite gradients. */
static inline void iterate(setup *t, int bad)
{
    set_grads(&t->w, 1, 2, bad ? INFINITY : 3);
    cr_assert_eq(tac_scaler_step(t->s, t->o, NULL), TAC_OK);
    cr_assert_eq(tac_scaler_update(t->s, NULL), TAC_OK);
}

static inline double tracker(setup *t)
{
    return amp_state(t->s, "scaler._growth_tracker");
}

#endif
