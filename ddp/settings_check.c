/* What an optimizer has and what it has not: nothing that was asked for is
 * ignored silently. */
#include "settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SGD = 1, ADAMW = 2, ADAFACTOR = 4, ADAMW8BIT = 8 };
enum { ADAMS = ADAMW | ADAMW8BIT, KINDS = 4 };

static const char *const names[KINDS] = {"sgd", "adamw", "adafactor",
                                         "adamw8bit"};

/* Numbers that are "auto": whose they are, and the default; NAN: it stays
 * open. */
static const struct {
    const char *option;
    size_t offset;
    unsigned kinds;
    double defaults[KINDS];
} numbers[] = {
#define AT(field) offsetof(tac_train_config, field)
    {"lr", AT(lr), 15, {0.03, 0.003, NAN, 0.003}},
    {"momentum", AT(momentum), SGD, {0.9, NAN, NAN, NAN}},
    {"beta1", AT(beta1), ADAMS | ADAFACTOR, {NAN, 0.9, NAN, 0.9}},
    {"beta2", AT(beta2), ADAMS, {NAN, 0.999, NAN, 0.999}},
    {"eps", AT(eps), ADAMS, {NAN, 1e-8, NAN, 1e-8}},
    {"eps1", AT(eps1), ADAFACTOR, {NAN, NAN, 1e-30, NAN}},
    {"eps2", AT(eps2), ADAFACTOR, {NAN, NAN, 1e-3, NAN}},
    {"clip-threshold", AT(clip_threshold), ADAFACTOR, {NAN, NAN, 1, NAN}},
    {"decay-rate", AT(decay_rate), ADAFACTOR, {NAN, NAN, -0.8, NAN}},
};

/* Switches: whose they are, and what they are if nobody asks. */
static const struct {
    const char *option;
    size_t offset;
    unsigned kinds;
    int usual;
} switches[] = {
    {"nesterov", AT(nesterov), SGD, 0},
    {"relative-step", AT(relative_step), ADAFACTOR, 0},
    {"scale-parameter", AT(scale_parameter), ADAFACTOR, 0},
    {"warmup-init", AT(warmup_init), ADAFACTOR, 0},
#undef AT
};

/* "adamw, adafactor or adamw8bit". */
static void list_kinds(unsigned kinds, char text[64])
{
    size_t used = 0;

    text[0] = '\0';
    for (int k = 0; k < KINDS; k++)
        if (kinds >> k & 1)
            used += (size_t)snprintf(text + used, 64 - used, "%s%s",
                                     !used                   ? ""
                                     : kinds >> (k + 1) != 0 ? ", "
                                                             : " or ",
                                     names[k]);
}

static tac_status not_its_own(tac_context *ctx, const char *option,
                              unsigned kinds, const char *optimizer)
{
    char whose[64];

    list_kinds(kinds, whose);
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s means nothing to --optimizer %s: leave it out, or "
                    "use %s",
                    option, optimizer, whose);
}

static tac_status fill_in(tac_context *ctx, tac_train_config *c, int kind)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double *value = (void *)((char *)c + numbers[i].offset);

        if (isnan(*value))
            *value = numbers[i].defaults[kind];
        else if (!(numbers[i].kinds >> kind & 1))
            return not_its_own(ctx, numbers[i].option, numbers[i].kinds,
                               c->optimizer);
    }
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        const int *value = (void *)((char *)c + switches[i].offset);

        if (*value != switches[i].usual && !(switches[i].kinds >> kind & 1))
            return not_its_own(ctx, switches[i].option, switches[i].kinds,
                               c->optimizer);
    }
    return TAC_OK;
}

/* Adafactor as Hugging Face's Trainer sets it up: a rate of its own and neither
 * relative step nor scaling, which suits short runs better. */
static tac_status check_adafactor(tac_context *ctx, tac_train_config *c)
{
    const double usual = 0.003;

    if (c->relative_step && !isnan(c->lr))
        return tac_fail(
            ctx, TAC_ERR_CONFIG,
            "--lr %g with --optimizer adafactor --relative-step: that "
            "sets the rate by itself. Leave out --lr, or leave "
            "out --relative-step",
            c->lr);
    if (!c->relative_step && isnan(c->lr)) c->lr = usual;
    if (!c->relative_step && c->warmup_init)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--warmup-init is the beginning of the relative step: "
                        "add --relative-step, or leave out --warmup-init");
    return TAC_OK;
}

static tac_status check_optimizer(tac_context *ctx, tac_train_config *c)
{
    tac_optimizer_kind unused;
    int kind = 0;

    if (tac_optimizer_parse(ctx, c->optimizer, &unused) < 0)
        return TAC_ERR_CONFIG;
    while (kind + 1 < KINDS && strcmp(c->optimizer, names[kind])) kind++;
    TAC_TRY(fill_in(ctx, c, kind));
    if (1u << kind == ADAFACTOR) TAC_TRY(check_adafactor(ctx, c));
    if (c->nesterov && c->momentum <= 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--nesterov needs --momentum above 0");
    return TAC_OK;
}

/* Scripts that try one precision after the other give the same numbers to all,
 * so this is no mistake, but must not be silent either. */
const char *tac__settings_unused_scale(tac_context *ctx,
                                       const tac_train_config *c)
{
    const tac_scaler_config usual = TAC_SCALER_CONFIG_INIT;
    tac_scaler_config sc;

    if (tac__settings_scaler(ctx, c, &sc) < 0) return NULL;
    if (sc.enabled && sc.growth_interval > 0) return NULL;
    if (c->growth_interval != usual.growth_interval) return "growth-interval";
    if (c->min_scale != usual.min_scale) return "min-scale";
    if (c->max_scale != usual.max_scale) return "max-scale";
    if (c->init_scale != usual.init_scale &&
        (sc.enabled || c->underflow_every == 0))
        return "init-scale";
    if (c->max_skips != usual.max_skips && !sc.enabled) return "max-skips";
    return NULL;
}

tac_status tac__settings_resolve(tac_context *ctx, tac_train_config *c,
                                 int world)
{
    tac__optimizer_settings settings;
    tac_scaler_config scaler;
    tac__inject inject;

    TAC_TRY(check_optimizer(ctx, c));
    TAC_TRY(tac__settings_groups(ctx, c->param_groups, &settings));
    TAC_TRY(tac__settings_scaler(ctx, c, &scaler));
    TAC_TRY(tac__settings_inject(ctx, c->inject_inf, world, &inject));
    if (!strcmp(c->rounding, "stochastic") && !strcmp(c->precision, "fp32"))
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--rounding stochastic is for working weights of 16 "
                        "bits: add --precision fp16 or bf16");
    return TAC_OK;
}
