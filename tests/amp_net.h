/* amp_net.h: a two-layer network that trains in any precision, for tests. */
#ifndef TAC_AMP_NET_H
#define TAC_AMP_NET_H

#include "amp_test.h"
#include "tac_check.h"

enum {
    NET_IN = 12,
    NET_HIDDEN = 16,
    NET_OUT = 4,
    NET_BATCH = 32,
    NET_PARAMS = 4
};

typedef struct net_config {
    tac_dtype low; /* F32: no autocast */
    int masters;   /* working weights */
    tac_optimizer_config optimizer;
    tac_scaler_config scaler;
    double loss_factor; /* multiplies the mean loss */
    double max_norm;    /* 0: no clipping */
    int in_place;       /* unscale, not check */
    int micro_steps;    /* that a batch is cut into */
    const tac_schedule *schedule;
} net_config;

typedef struct net {
    amp_log log;
    eng_world w;
    net_config c;
    tac_optimizer *o;
    tac_scaler *s;
    tac_master *m;
    uint64_t step;
    float x[NET_BATCH * NET_IN];
    int32_t y[NET_BATCH];
    double loss; /* mean, of the last forward, without loss_factor */
} net;

static inline net_config net_defaults(tac_dtype low)
{
    net_config c = {.low = low, .loss_factor = 1.0, .micro_steps = 1};
    const tac_scaler_config s = TAC_SCALER_CONFIG_INIT;

    c.masters = low != TAC_F32;
    c.optimizer = tac_optimizer_defaults(TAC_OPTIMIZER_SGD);
    c.optimizer.lr = 0.5;
    c.scaler = s;
    c.scaler.enabled = 0;
    return c;
}

/* Points whose class is that of the nearest of four corners. */
static inline void net_data(net *n)
{
    for (size_t i = 0; i < NET_BATCH; ++i) {
        n->y[i] = (int32_t)(i % NET_OUT);
        for (size_t j = 0; j < NET_IN; ++j) {
            const double corner = eng_value(21, (uint64_t)n->y[i], j);
            n->x[i * NET_IN + j] = (float)(corner + 0.3 * eng_value(22, i, j));
        }
    }
}

static inline int net_make(net *n)
{
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;

    mc.low = n->c.low;
    return CHECK_OK(tac_params_layout(n->w.params, NULL, NULL, NULL)) &&
           CHECK_OK(tac_params_init(n->w.params, 17)) &&
           CHECK_OK(tac_tape_create(n->w.params, NULL, &n->w.tape)) &&
           CHECK_OK(
               tac_optimizer_create(n->w.params, &n->c.optimizer, &n->o)) &&
           CHECK_OK(tac_optimizer_set_schedule(n->o, n->c.schedule)) &&
           CHECK_OK(tac_scaler_create(n->w.dev, &n->c.scaler, &n->s)) &&
           (!n->c.masters ||
            (CHECK_OK(tac_master_create(n->w.params, &mc, &n->m)) &&
             CHECK_OK(tac_master_refresh(n->m, NULL))));
}

/* Ends the program if it can't: there is nothing to test then. */
static inline void net_open(net *n, const net_config *c)
{
    memset(n, 0, sizeof *n);
    n->c = *c;
    n->w = amp_open(&n->log, TAC_F32, 2);
    amp_add(&n->w, "fc1.weight", 2, NET_HIDDEN, NET_IN, 0);
    amp_add(&n->w, "fc1.bias", 1, NET_HIDDEN, 0, 0);
    amp_add(&n->w, "fc2.weight", 2, NET_OUT, NET_HIDDEN, 0);
    amp_add(&n->w, "fc2.bias", 1, NET_OUT, 0, 0);
    net_data(n);
    if (net_make(n)) return;
    fprintf(stderr, "no network to test: %s\n", n->log.last);
    exit(1);
}

static inline void net_close(net *n)
{
    tac_master_destroy(n->m);
    tac_scaler_destroy(n->s);
    tac_optimizer_destroy(n->o);
    eng_close(&n->w);
}

static inline int net_forward(net *n, size_t first, size_t rows, tac_xent *out)
{
    tac_tape *t = n->w.tape;
    const size_t shape[2] = {rows, NET_IN};
    tac_autocast_config ac = TAC_AUTOCAST_CONFIG_INIT;
    tac_tensor *x = NULL, *y = NULL, *h = NULL;
    tac_autocast region;

    ac.master = n->m;
    return CHECK_OK(tac_autocast_begin(t, n->c.low, &ac, &region)) &&
           CHECK_OK(tac_tape_input(t, "x", TAC_F32, 2, shape,
                                   n->x + first * NET_IN, 0, &x)) &&
           CHECK_OK(tac_tape_input(t, "y", TAC_I32, 1, shape, n->y + first, 0,
                                   &y)) &&
           CHECK_OK(tac_op_linear(t, x, tac_tape_param(t, 0),
                                  tac_tape_param(t, 1), TAC_ACT_RELU, &h)) &&
           CHECK_OK(tac_op_linear(t, h, tac_tape_param(t, 2),
                                  tac_tape_param(t, 3), TAC_ACT_NONE, &h)) &&
           CHECK_OK(tac_op_softmax_cross_entropy(t, h, y, out)) &&
           CHECK_OK(tac_autocast_end(&region));
}

/* Gradients of the whole batch, times the loss scale. */
static inline int net_backward(net *n)
{
    const size_t k = (size_t)n->c.micro_steps, rows = NET_BATCH / k;
    tac_xent xent;

    n->loss = 0;
    for (size_t i = 0; i < k; ++i) {
        const tac_tape_step step = {.flags = i > 0 ? TAC_TAPE_ACCUMULATE : 0,
                                    .step = n->step};
        if (!CHECK_OK(tac_tape_begin(n->w.tape, &step)) ||
            !net_forward(n, i * rows, rows, &xent))
            return 0;
        n->loss += *(const double *)xent.loss->data / NET_BATCH;
        if (!CHECK_OK(tac_tape_backward_scaled(n->w.tape, xent.loss,
                                               n->c.loss_factor / NET_BATCH,
                                               tac_scaler_scale(n->s))))
            return 0;
    }
    n->step += 1;
    return 1;
}

static inline int net_update(net *n)
{
    const int ok =
        CHECK_OK(n->c.in_place ? tac_scaler_unscale(n->s, n->o, NULL)
                               : tac_scaler_check(n->s, n->o, NULL)) &&
        (n->c.max_norm <= 0.0 ||
         CHECK_OK(tac_optimizer_clip(n->o, n->c.max_norm, NULL))) &&
        CHECK_OK(tac_scaler_step(n->s, n->o, NULL)) &&
        CHECK_OK(tac_scaler_update(n->s, NULL));

    return ok && (n->m == NULL || CHECK_OK(tac_master_refresh(n->m, NULL)));
}

static inline int net_train(net *n, int steps)
{
    for (int i = 0; i < steps; ++i)
        if (!net_backward(n) || !net_update(n)) return 0;
    return 1;
}

/* An inf in the middle of a gradient, as a bad sample would leave it. */
static inline void net_inject(net *n, double bad)
{
    ((float *)tac_params_grad(n->w.params, 2))[5] = (float)bad;
}

static inline size_t net_elements(const net *n)
{
    return tac_params_padded(n->w.params);
}

static inline int net_same_bits(const net *a, const net *b)
{
    return memcmp(tac_params_values(a->w.params),
                  tac_params_values(b->w.params),
                  net_elements(a) * sizeof(float)) == 0;
}

/* growth_interval 0: a static scale. */
static inline void net_enable(net_config *c, double init, int64_t interval)
{
    c->scaler.enabled = 1;
    c->scaler.init_scale = init;
    c->scaler.growth_interval = interval;
}

#endif
