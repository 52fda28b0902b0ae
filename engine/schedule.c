/* Learning-rate schedules; the formulas are in the header. */
#include <math.h>
#include <string.h>

#include "tacit/schedule.h"

static const struct {
    const char *name;
    tac_schedule_kind kind;
} kinds[] = {
    {"constant", TAC_SCHEDULE_CONSTANT},
    {"linear", TAC_SCHEDULE_LINEAR},
    {"cosine", TAC_SCHEDULE_COSINE},
};

tac_status tac_schedule_parse(tac_context *ctx, const char *name,
                              tac_schedule_kind *out)
{
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; ++i) {
        if (strcmp(name, kinds[i].name) != 0) continue;
        *out = kinds[i].kind;
        return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_ARG,
                    "schedule \"%.40s\" is unknown: use constant, linear or "
                    "cosine",
                    name != NULL ? name : "");
}

/* How far between warm-up and total, in [0, 1]. */
static double progress(const tac_schedule *s, uint64_t step)
{
    if (step >= s->total || s->total <= s->warmup) return 1.0;
    return (double)(step - s->warmup) / (double)(s->total - s->warmup);
}

double tac_schedule_lr(const tac_schedule *s, uint64_t step)
{
    const double pi = 3.14159265358979323846;
    const double least = s->final_fraction * s->lr;

    if (step < s->warmup)
        return s->lr * ((double)step + 1.0) / (double)s->warmup;
    if (s->kind == TAC_SCHEDULE_CONSTANT) return s->lr;
    const double r = progress(s, step);
    if (s->kind == TAC_SCHEDULE_LINEAR) return s->lr - r * (s->lr - least);
    return least + 0.5 * (1.0 + cos(pi * r)) * (s->lr - least);
}
