/* --param-groups: settings of parameters by name, as text:
 *
 *     GLOB:lr=2,wd=0,bits=32;GLOB:...
 *
 * lr multiplies the learning rate, wd is the weight decay whatever
 * --decay-rule says, bits=32 keeps f32 moments under adamw8bit. */
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tac_status wrong(tac_context *ctx, const char *why, const char *at,
                        size_t n)
{
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--param-groups: %s at \"%.*s\"; a group is "
                    "GLOB:lr=X,wd=X,bits=32 with one setting or more, and "
                    "groups are separated by ';'",
                    why, (int)(n < 80 ? n : 80), at);
}

/* Which settings a group has had. */
typedef struct settings_told {
    int lr, wd, bits;
} settings_told;

/* One "key=value" of n characters. */
static tac_status set(tac_context *ctx, const char *text, size_t n,
                      tac_param_group *g, settings_told *already)
{
    char copy[64], *end;
    double value;
    int *told;

    if (n >= sizeof copy) return wrong(ctx, "a setting too long", text, n);
    memcpy(copy, text, n);
    copy[n] = '\0';
    char *equals = strchr(copy, '=');
    if (!equals) return wrong(ctx, "no '='", text, n);
    *equals = '\0';
    value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(value) || value < 0)
        return wrong(ctx, "not a number that is 0 or above", text, n);
    if (!strcmp(copy, "lr")) {
        told = &already->lr;
        g->lr_scale = value;
    } else if (!strcmp(copy, "wd")) {
        told = &already->wd;
        g->weight_decay = value;
    } else if (strcmp(copy, "bits")) {
        return wrong(ctx, "a setting other than lr, wd and bits", text, n);
    } else if (value != 32) {
        return wrong(ctx, "bits that are not 32", text, n);
    } else {
        told = &already->bits;
        g->optim_bits = 32;
    }
    if ((*told)++) return wrong(ctx, "a setting a second time", text, n);
    return TAC_OK;
}

/* One group of n characters; its pattern goes to *pool. */
static tac_status parse_group(tac_context *ctx, const char *text, size_t n,
                              char **pool, tac_param_group *g)
{
    const char *colon = memchr(text, ':', n), *end = text + n, *at;
    settings_told already = {0, 0, 0};

    if (!colon) return wrong(ctx, "no ':'", text, n);
    if (colon == text) return wrong(ctx, "no pattern", text, n);
    *g = (tac_param_group){*pool, 1, NAN, 0};
    memcpy(*pool, text, (size_t)(colon - text));
    *pool += colon - text;
    *(*pool)++ = '\0';
    for (at = colon + 1; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const size_t length = (size_t)((comma ? comma : end) - at);

        TAC_TRY(set(ctx, at, length, g, &already));
        at += length + 1;
    }
    return TAC_OK;
}

/* Of two groups with one pattern the second would never be looked at. */
static int pattern_before(const tac_param_group *groups, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(groups[i].match, groups[n].match) == 0) return 1;
    return 0;
}

tac_status tac__settings_groups(tac_context *ctx, const char *text,
                                tac__optimizer_settings *out)
{
    char *pool = out->patterns;
    size_t n = 0;

    if (text && strlen(text) >= sizeof out->patterns)
        return wrong(ctx, "more than 1023 characters", text, strlen(text));
    while (text && *text) {
        const size_t length = strcspn(text, ";");

        if (n == TAC__MAX_GROUPS)
            return wrong(ctx, "more than 32 groups", text, strlen(text));
        TAC_TRY(parse_group(ctx, text, length, &pool, &out->groups[n]));
        if (pattern_before(out->groups, n))
            return wrong(ctx, "a pattern a second time", text, length);
        n++;
        text += length;
        if (*text == ';') text++;
    }
    out->config.groups = out->groups;
    out->config.n_groups = n;
    return TAC_OK;
}
