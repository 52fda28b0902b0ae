/* An optimizer's settings: defaults, names, ranges. */
#include <math.h>
#include <string.h>

#include "optim_impl.h"

tac_optimizer_config tac_optimizer_defaults(tac_optimizer_kind kind)
{
    tac_optimizer_config c = {
        .struct_size = sizeof c,
        .kind = kind,
        .lr = 1e-3,
        .decay = TAC_DECAY_MATRICES,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
    };

    if (kind == TAC_OPTIMIZER_ADAMW) c.weight_decay = 1e-2;
    return c;
}

tac_status tac_optimizer_parse(tac_context *ctx, const char *name,
                               tac_optimizer_kind *out)
{
    if (name != NULL && strcmp(name, "sgd") == 0) {
        *out = TAC_OPTIMIZER_SGD;
        return TAC_OK;
    }
    if (name != NULL && strcmp(name, "adamw") == 0) {
        *out = TAC_OPTIMIZER_ADAMW;
        return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_ARG,
                    "optimizer \"%.40s\" is unknown: use sgd or adamw",
                    name != NULL ? name : "");
}

/* Not below 0, not infinite, and a number. */
static tac_status check_size(tac_context *ctx, const char *what, double v)
{
    if (v >= 0.0 && isfinite(v)) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_ARG,
                    "optimizer: %s is %g; it must be 0 or more, and finite",
                    what, v);
}

static tac_status check_beta(tac_context *ctx, const char *what, double v)
{
    if (v >= 0.0 && v < 1.0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_ARG,
                    "optimizer: %s is %g; it must be in [0, 1)", what, v);
}

static tac_status check_sgd(tac_context *ctx, const tac_optimizer_config *c)
{
    TAC_TRY(check_size(ctx, "momentum", c->momentum));
    TAC_TRY(check_size(ctx, "dampening", c->dampening));
    if (c->nesterov && (c->momentum <= 0.0 || c->dampening != 0.0))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: nesterov needs a momentum above 0 (%g) and "
                        "no dampening (%g)",
                        c->momentum, c->dampening);
    return TAC_OK;
}

static tac_status check_adamw(tac_context *ctx, const tac_optimizer_config *c)
{
    TAC_TRY(check_beta(ctx, "beta1", c->beta1));
    TAC_TRY(check_beta(ctx, "beta2", c->beta2));
    return check_size(ctx, "eps", c->eps);
}

tac_status tac__optimizer_check(tac_context *ctx, const tac_optimizer_config *c)
{
    if (c->struct_size != sizeof *c)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: start from tac_optimizer_defaults");
    TAC_TRY(check_size(ctx, "lr", c->lr));
    TAC_TRY(check_size(ctx, "weight_decay", c->weight_decay));
    return c->kind == TAC_OPTIMIZER_SGD ? check_sgd(ctx, c)
                                        : check_adamw(ctx, c);
}
