/* An optimizer's settings: defaults, names, ranges.
 *
 * The fields that a kind does not have are 0 in its defaults and must stay so:
 * a setting that would be ignored is an error. */
#include <math.h>
#include <string.h>

#include "optim_impl.h"

static const struct {
    const char *name;
    tac_optimizer_kind kind;
} kinds[] = {
    {"sgd", TAC_OPTIMIZER_SGD},
    {"adamw", TAC_OPTIMIZER_ADAMW},
    {"adafactor", TAC_OPTIMIZER_ADAFACTOR},
    {"adamw8bit", TAC_OPTIMIZER_ADAMW8BIT},
};

static int is_adamw(tac_optimizer_kind kind)
{
    return kind == TAC_OPTIMIZER_ADAMW || kind == TAC_OPTIMIZER_ADAMW8BIT;
}

static void default_adamw(tac_optimizer_config *c)
{
    c->weight_decay = 1e-2;
    c->beta1 = 0.9;
    c->beta2 = 0.999;
    c->eps = 1e-8;
    if (c->kind == TAC_OPTIMIZER_ADAMW8BIT) c->min_8bit_size = 4096;
}

static void default_adafactor(tac_optimizer_config *c)
{
    c->lr = NAN;
    c->beta1 = NAN;
    c->eps1 = 1e-30;
    c->eps2 = 1e-3;
    c->clip_threshold = 1;
    c->decay_rate = -0.8;
    c->scale_parameter = 1;
    c->relative_step = 1;
}

tac_optimizer_config tac_optimizer_defaults(tac_optimizer_kind kind)
{
    tac_optimizer_config c = {
        .struct_size = sizeof c,
        .kind = kind,
        .lr = 1e-3,
        .decay = TAC_DECAY_MATRICES,
    };

    if (is_adamw(kind)) default_adamw(&c);
    if (kind == TAC_OPTIMIZER_ADAFACTOR) default_adafactor(&c);
    return c;
}

tac_status tac_optimizer_parse(tac_context *ctx, const char *name,
                               tac_optimizer_kind *out)
{
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; ++i) {
        if (strcmp(name, kinds[i].name) != 0) continue;
        *out = kinds[i].kind;
        return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_ARG,
                    "optimizer \"%.40s\" is unknown: use sgd, adamw, adafactor "
                    "or adamw8bit",
                    name != NULL ? name : "");
}

const char *tac_optimizer_kind_name(tac_optimizer_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (kinds[i].kind == kind) return kinds[i].name;
    return "?";
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
    TAC_TRY(check_size(ctx, "lr", c->lr));
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
    TAC_TRY(check_size(ctx, "lr", c->lr));
    TAC_TRY(check_beta(ctx, "beta1", c->beta1));
    TAC_TRY(check_beta(ctx, "beta2", c->beta2));
    return check_size(ctx, "eps", c->eps);
}

/* The three ways to say how fast, of which people mix two. */
static tac_status check_adafactor_rate(tac_context *ctx,
                                       const tac_optimizer_config *c)
{
    if (c->relative_step && !isnan(c->lr))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: adafactor's lr is %g, but relative_step "
                        "computes the rate itself: set relative_step = 0 (and, "
                        "for a fixed rate, scale_parameter = 0) to use an lr, "
                        "or leave lr unset (NAN)",
                        c->lr);
    if (c->warmup_init && !c->relative_step)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: adafactor's warmup_init needs "
                        "relative_step = 1; with an lr use a schedule with "
                        "warm-up steps");
    if (c->relative_step) return TAC_OK;
    if (isnan(c->lr))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: adafactor without relative_step needs an "
                        "lr, 1e-3 for example; or set relative_step = 1");
    return check_size(ctx, "lr", c->lr);
}

static tac_status check_adafactor(tac_context *ctx,
                                  const tac_optimizer_config *c)
{
    TAC_TRY(check_adafactor_rate(ctx, c));
    if (!isnan(c->beta1)) TAC_TRY(check_beta(ctx, "beta1", c->beta1));
    TAC_TRY(check_size(ctx, "eps1", c->eps1));
    TAC_TRY(check_size(ctx, "eps2", c->eps2));
    if (!(c->clip_threshold > 0.0))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: clip_threshold is %g; it must be above 0 "
                        "(INFINITY: no clipping)",
                        c->clip_threshold);
    if (!(c->decay_rate <= 0.0) || !isfinite(c->decay_rate))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: decay_rate is %g; it must be 0 or below, "
                        "-0.8 for example",
                        c->decay_rate);
    return TAC_OK;
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Settings of other kinds must be as this kind's defaults have them. */
static tac_status check_foreign(tac_context *ctx, const tac_optimizer_config *c)
{
    const tac_optimizer_config d = tac_optimizer_defaults(c->kind);
    const int sgd = c->kind == TAC_OPTIMIZER_SGD, adamw = is_adamw(c->kind);
    const int adafactor = c->kind == TAC_OPTIMIZER_ADAFACTOR;
    const struct {
        const char *name;
        int owned;
        double value, none;
    } rows[] = {
        {"momentum", sgd, c->momentum, d.momentum},
        {"dampening", sgd, c->dampening, d.dampening},
        {"nesterov", sgd, c->nesterov, d.nesterov},
        {"beta1", adamw || adafactor, c->beta1, d.beta1},
        {"beta2", adamw, c->beta2, d.beta2},
        {"eps", adamw, c->eps, d.eps},
        {"eps1", adafactor, c->eps1, d.eps1},
        {"eps2", adafactor, c->eps2, d.eps2},
        {"clip_threshold", adafactor, c->clip_threshold, d.clip_threshold},
        {"decay_rate", adafactor, c->decay_rate, d.decay_rate},
        {"scale_parameter", adafactor, c->scale_parameter, d.scale_parameter},
        {"relative_step", adafactor, c->relative_step, d.relative_step},
        {"warmup_init", adafactor, c->warmup_init, d.warmup_init},
        {"min_8bit_size", c->kind == TAC_OPTIMIZER_ADAMW8BIT,
         (double)c->min_8bit_size, (double)d.min_8bit_size},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (!rows[i].owned && !same(rows[i].value, rows[i].none))
            return tac_fail(ctx, TAC_ERR_ARG,
                            "optimizer: %s has no %s (it is %g); leave it as "
                            "tac_optimizer_defaults has it",
                            tac_optimizer_kind_name(c->kind), rows[i].name,
                            rows[i].value);
    return TAC_OK;
}

static tac_status check_group(tac_context *ctx, const tac_optimizer_config *c,
                              const tac_param_group *g)
{
    if (g->match == NULL || *g->match == '\0')
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: a group needs a pattern, \"*.bias\" for "
                        "example");
    TAC_TRY(check_size(ctx, "a group's lr_scale", g->lr_scale));
    if (!isnan(g->weight_decay))
        TAC_TRY(check_size(ctx, "a group's weight_decay", g->weight_decay));
    if (g->optim_bits != 0 && g->optim_bits != 32)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: group \"%s\" has optim_bits %d; 0 and 32 "
                        "are possible",
                        g->match, g->optim_bits);
    if (g->optim_bits != 0 && c->kind != TAC_OPTIMIZER_ADAMW8BIT)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: group \"%s\" has optim_bits, which only "
                        "adamw8bit knows; %s keeps its own types",
                        g->match, tac_optimizer_kind_name(c->kind));
    return TAC_OK;
}

static tac_status check_kind(tac_context *ctx, const tac_optimizer_config *c)
{
    switch (c->kind) {
    case TAC_OPTIMIZER_SGD: return check_sgd(ctx, c);
    case TAC_OPTIMIZER_ADAMW:
    case TAC_OPTIMIZER_ADAMW8BIT: return check_adamw(ctx, c);
    case TAC_OPTIMIZER_ADAFACTOR: return check_adafactor(ctx, c);
    }
    return tac_fail(ctx, TAC_ERR_ARG, "optimizer: kind %d is unknown",
                    (int)c->kind);
}

tac_status tac__optimizer_check(tac_context *ctx, const tac_optimizer_config *c)
{
    if (c->struct_size != sizeof *c)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "optimizer: start from tac_optimizer_defaults");
    TAC_TRY(check_kind(ctx, c));
    TAC_TRY(check_foreign(ctx, c));
    TAC_TRY(check_size(ctx, "weight_decay", c->weight_decay));
    for (size_t i = 0; i < c->n_groups; ++i)
        TAC_TRY(check_group(ctx, c, &c->groups[i]));
    return TAC_OK;
}
