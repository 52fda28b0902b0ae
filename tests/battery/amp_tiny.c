/* amp_tiny.c: a gradient too small for f16. Two layers whose loss is multiplied
 * by 1e-8, so that gradients are about 1e-8: they train in f16 with a loss
 * scale, to a stated loss, and in bf16 and f32 without; in f16 without one no
 * weight moves by a bit. The underflow report says why. */
#include "amp_net.h"

enum { TINY_STEPS = 200, INTERVAL = 25 };

static net_config tiny(tac_dtype low)
{
    net_config c = net_defaults(low);

    c.loss_factor = 1e-8;
    c.optimizer.lr = 0.5e8; /* the same training as without the factor */
    return c;
}

static double largest_gradient(const net *n)
{
    const float *g = tac_params_grads(n->w.params);
    double most = 0;

    for (size_t i = 0; i < net_elements(n); ++i)
        if (fabs((double)g[i]) > most) most = fabs((double)g[i]);
    return most;
}

static void print_underflow(const tac_underflow *u, double scale)
{
    printf("%-12s %26s    scale %g: zero, subnormal\n", "share (%) of",
           "scale 1: zero, subnormal", scale);
    for (size_t i = 0; i < tac_underflow_rows(u); ++i) {
        const tac_underflow_row *r = tac_underflow_get(u, i);
        const tac_underflow_shares a = tac_underflow_at(r, 1);
        const tac_underflow_shares b = tac_underflow_at(r, scale);
        printf("%-12s %13.1f %14.1f %13.1f %14.1f\n", r->name, 100 * a.zero,
               100 * a.subnormal, 100 * b.zero, 100 * b.subnormal);
    }
}

/* At scale 1 f16 would hold next to nothing of any tensor's gradient, at the
 * scale found it holds next to all. */
static void expect_saved_by_scale(const tac_underflow *u, double scale)
{
    print_underflow(u, scale);
    for (size_t i = 0; i < NET_PARAMS; ++i) {
        const tac_underflow_row *r = tac_underflow_get(u, i);
        CHECK(tac_underflow_at(r, 1).zero > 0.99);
        CHECK(tac_underflow_at(r, scale).zero < 0.05);
        CHECK_EQ_F64(tac_underflow_at(r, scale).overflow, 0);
    }
}

/* Trains to a loss of 0.05 from 1.4. */
static void trains(const net_config *c)
{
    tac_underflow *u = NULL;
    net n;

    net_open(&n, c);
    CHECK_OK(tac_underflow_create(n.w.params, &u));
    net_train(&n, 1);
    const double first = n.loss;
    CHECK(first > 1.2);
    for (int k = 1; k < TINY_STEPS && net_backward(&n); ++k) {
        const double g = largest_gradient(&n);
        CHECK_OK(tac_underflow_observe(u, amp_scale(n.s), NULL));
        if (k == 1 && c->low != TAC_F16)
            CHECK_MSG(g > 1e-9 && g < 1e-7, "the largest gradient is %g", g);
        net_update(&n);
    }
    CHECK_MSG(n.loss < 0.05, "%s: the loss fell from %g to %g only",
              tac_dtype_name(c->low), first, n.loss);
    if (c->scaler.growth_interval == INTERVAL)
        expect_saved_by_scale(u, amp_scale(n.s));
    tac_underflow_destroy(u);
    net_close(&n);
}

static void stands_still(const net_config *c)
{
    net n, fresh;

    net_open(&n, c);
    net_open(&fresh, c);
    net_train(&n, 1);
    const double first = n.loss;
    net_train(&n, TINY_STEPS);
    CHECK_EQ_F64(n.loss, first);
    CHECK(net_same_bits(&n, &fresh));
    CHECK_EQ_U64(tac_optimizer_scalars(n.o)->applied, TINY_STEPS + 1);
    net_close(&n);
    net_close(&fresh);
}

int main(void)
{
    net_config c = tiny(TAC_F16);

    stands_still(&c);
    c.masters = 0;
    stands_still(&c);
    c = tiny(TAC_F16);
    net_enable(&c, 1, 0); /* a static scale of 1 is as none */
    stands_still(&c);
    net_enable(&c, 65536, INTERVAL);
    trains(&c);
    net_enable(&c, 65536, 0); /* static */
    c.in_place = 1;
    trains(&c);
    net_enable(&c, 1, 5); /* it finds the scale from below as well */
    trains(&c);
    c = tiny(TAC_BF16);
    trains(&c);
    c = tiny(TAC_F32);
    trains(&c);
    return tac_check_summary();
}
