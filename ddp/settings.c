/* From the resolved configuration to the settings of optimizer, scaler and
 * schedule. */
#include "settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tac_status tac__settings_optimizer(tac_context *ctx, const tac_train_config *c,
                                   tac__optimizer_settings *out)
{
    tac_optimizer_kind kind;
    tac_optimizer_config *o = &out->config;

    TAC_TRY(tac_optimizer_parse(ctx, c->optimizer, &kind));
    *o = tac_optimizer_defaults(kind);
    o->lr = c->lr;
    o->weight_decay = c->weight_decay;
    o->decay =
        strcmp(c->decay_rule, "all") ? TAC_DECAY_MATRICES : TAC_DECAY_ALL;
    if (kind == TAC_OPTIMIZER_SGD) {
        o->momentum = c->momentum;
        o->nesterov = c->nesterov;
    } else if (kind == TAC_OPTIMIZER_ADAFACTOR) {
        o->beta1 = c->beta1;
        o->eps1 = c->eps1;
        o->eps2 = c->eps2;
        o->clip_threshold = c->clip_threshold;
        o->decay_rate = c->decay_rate;
        o->relative_step = c->relative_step;
        o->scale_parameter = c->scale_parameter;
        o->warmup_init = c->warmup_init;
    } else {
        o->beta1 = c->beta1;
        o->beta2 = c->beta2;
        o->eps = c->eps;
    }
    return tac__settings_groups(ctx, c->param_groups, out);
}

tac_status tac__settings_schedule(tac_context *ctx, const tac_train_config *c,
                                  uint64_t total_steps, tac_schedule *out)
{
    const double share = ceil(c->warmup_ratio * (double)total_steps);

    *out = (tac_schedule){.warmup = c->warmup_ratio > 0
                                        ? (uint64_t)share
                                        : (uint64_t)c->warmup_steps,
                          .total = total_steps,
                          .lr = isnan(c->lr) ? 1 : c->lr};
    return tac_schedule_parse(ctx, c->schedule, &out->kind);
}

/* A number that is the whole text; 0: it is none. */
static double static_scale(const char *text)
{
    char *end;
    const double value = strtod(text, &end);

    return end != text && *end == '\0' && isfinite(value) && value > 0 ? value
                                                                       : 0;
}

tac_status tac__settings_scaler(tac_context *ctx, const tac_train_config *c,
                                tac_scaler_config *out)
{
    const char *how = c->loss_scale;

    *out = (tac_scaler_config)TAC_SCALER_CONFIG_INIT;
    out->init_scale = c->init_scale;
    out->growth_interval = c->growth_interval;
    out->min_scale = c->min_scale;
    out->max_scale = c->max_scale;
    out->max_skips = 0;
    if (!strcmp(how, "auto"))
        how = strcmp(c->precision, "fp16") ? "none" : "dynamic";
    out->enabled = strcmp(how, "none") != 0;
    if (!out->enabled) return TAC_OK;
    if (strcmp(how, "dynamic")) {
        out->init_scale = static_scale(how);
        out->min_scale = out->max_scale = out->init_scale;
        out->growth_interval = 0;
        if (out->init_scale == 0)
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--loss-scale %.40s is neither dynamic, none, auto "
                            "nor a number above 0",
                            how);
    }
    if (out->min_scale <= out->init_scale && out->init_scale <= out->max_scale)
        return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--init-scale %.10g is not between --min-scale %.10g and "
                    "--max-scale %.10g",
                    out->init_scale, out->min_scale, out->max_scale);
}

/* Digits at *at, which moves behind them; 0: none, or too large. */
static uint64_t digits(const char **at)
{
    char *end;

    if (!isdigit((unsigned char)**at)) return 0;
    const unsigned long long value = strtoull(*at, &end, 10);
    *at = end;
    return value;
}

tac_status tac__settings_inject(tac_context *ctx, const char *text, int world,
                                tac__inject *out)
{
    const char *at = text;
    uint64_t rank = 0;

    *out = (tac__inject){0, 0, 0};
    if (!text) return TAC_OK;
    out->first = out->last = digits(&at);
    if (*at == '-') {
        at++;
        out->last = digits(&at);
    }
    if (*at == ':' && isdigit((unsigned char)at[1])) {
        at++;
        rank = digits(&at);
    }
    if (*at || out->first == 0 || out->last < out->first)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--inject-inf %.40s is not STEP[-STEP][:RANK] with "
                        "steps from 1",
                        text);
    if (rank >= (uint64_t)world)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--inject-inf %.40s: there is no rank %" PRIu64
                        " among %d; ranks count from 0",
                        text, rank, world);
    out->rank = (int)rank;
    return TAC_OK;
}
