/* config_preset.c: ready-made configurations by the field's names. */
#include <stdio.h>
#include <string.h>

#include "tacit/localsgd_config.h"

typedef struct preset {
    const char *name;
    tac_outer_kind kind;
    double lr, momentum, alpha;
    int64_t delay;
} preset;

/* oneshot: no interval is ever complete, so that only the end synchronises. */
static const preset presets[] = {
    {"local", TAC_OUTER_AVERAGE, 1, 0, 0, 0},
    {"slowmo", TAC_OUTER_SLOWMO, 1, 0.5, 0, 0},
    {"diloco", TAC_OUTER_NESTEROV, 0.7, 0.9, 0, 0},
    {"streaming", TAC_OUTER_NESTEROV, 0.4, 0.9, 0.5, 1},
    {"oneshot", TAC_OUTER_AVERAGE, 1, 0, 0, 0},
    {NULL, TAC_OUTER_AVERAGE, 0, 0, 0, 0},
};

static tac_status unknown(tac_context *ctx, const char *name)
{
    char list[128] = "";
    for (const preset *p = presets; p->name; p++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", p->name);
    }
    return tac_fail(ctx, TAC_ERR_ARG,
                    "there is no method '%s'; possible are %s", name, list);
}

tac_status tac_localsgd_preset(tac_context *ctx, const char *name,
                               int64_t every, tac_localsgd_config *out)
{
    tac_localsgd_config c = TAC_LOCALSGD_CONFIG_INIT;
    const preset *p = presets;
    if (!name || !out) return TAC_ERR_ARG;
    while (p->name && strcmp(p->name, name) != 0) p++;
    if (!p->name) return unknown(ctx, name);
    const int once = strcmp(name, "oneshot") == 0;
    if (every < 1 && !once)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "%s: an interval of %lld attempts can't be; the least "
                        "is 1 (every attempt)",
                        name, (long long)every);
    c.schedule.every = once ? INT64_MAX : every;
    c.outer.kind = p->kind;
    c.outer.lr = p->lr;
    c.outer.momentum = p->momentum;
    c.alpha = p->alpha;
    c.delay = p->delay;
    *out = c;
    return TAC_OK;
}
