/* Values of a configuration as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare.h"

/* As few digits as tell it from all others; what is left open is "auto". */
static void number_text(double x, char out[TAC__VALUE_BYTES])
{
    int digits = 6;

    if (isnan(x)) {
        snprintf(out, TAC__VALUE_BYTES, "auto");
        return;
    }
    do snprintf(out, TAC__VALUE_BYTES, "%.*g", digits, x);
    while (digits++ < 17 && strtod(out, NULL) != x);
}

void tac__config_value(const tac_train_config *c, const tac_option *row,
                       char out[TAC__VALUE_BYTES])
{
    const void *at = (const char *)c + row->offset;
    const char *text;

    switch (row->type) {
    case TAC_OPT_INT:
        snprintf(out, TAC__VALUE_BYTES, "%" PRId64, *(const int64_t *)at);
        return;
    case TAC_OPT_SIZE:
        snprintf(out, TAC__VALUE_BYTES, "%zu", *(const size_t *)at);
        return;
    case TAC_OPT_F64: number_text(*(const double *)at, out); return;
    case TAC_OPT_BOOL:
        snprintf(out, TAC__VALUE_BYTES, "%s",
                 *(const int *)at ? "true" : "false");
        return;
    default:
        text = *(const char *const *)at;
        snprintf(out, TAC__VALUE_BYTES, "%s", text ? text : "");
        return;
    }
}
