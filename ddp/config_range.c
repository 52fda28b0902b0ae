/* A configuration that a program has filled in itself, held to the same table
 * as one that was read from text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "settings.h"

static int in_range(const tac_option *row, double x)
{
    if (isnan(x)) return row->choices && !strcmp(row->choices, "auto");
    if (row->min == 0 && row->max == 0) return isfinite(x);
    return x >= row->min && x <= row->max;
}

/* "a|b|c" has it. */
static int is_choice(const char *choices, const char *word)
{
    const size_t n = word ? strlen(word) : 0;

    for (const char *p = choices; n && p; p = strchr(p, '|')) {
        if (*p == '|') p++;
        if (!strncmp(p, word, n) && (p[n] == '|' || !p[n])) return 1;
    }
    return 0;
}

static int is_good(const tac_train_config *c, const tac_option *row)
{
    const void *at = (const char *)c + row->offset;

    switch (row->type) {
    case TAC_OPT_INT: return in_range(row, (double)*(const int64_t *)at);
    case TAC_OPT_SIZE: return in_range(row, (double)*(const uint64_t *)at);
    case TAC_OPT_F64: return in_range(row, *(const double *)at);
    case TAC_OPT_ENUM: return is_choice(row->choices, *(char *const *)at);
    default: return 1;
    }
}

tac_status tac__config_check_ranges(tac_context *ctx, const tac_train_config *c)
{
    char value[TAC__VALUE_BYTES], range[64] = "";

    for (const tac_option *row = tac_train_config_options(); row->key; row++) {
        if (is_good(c, row)) continue;
        tac__config_value(c, row, value);
        if (row->type != TAC_OPT_ENUM)
            snprintf(range, sizeof range, "%.10g to %.10g", row->min, row->max);
        return tac_fail(ctx, TAC_ERR_CONFIG, "--%s is %.60s; accepted: %s",
                        row->key, value,
                        row->type == TAC_OPT_ENUM ? row->choices : range);
    }
    return TAC_OK;
}
