/* What the table amounts to, in sentences with its figures. */
#include <math.h>
#include <string.h>

#include "efficiency.h"

const eff_row *eff_find(const eff *e, const char *key)
{
    for (size_t i = 0; i < e->n_rows; i++)
        if (strcmp(e->rows[i].key, key) == 0 && e->rows[i].n > 0)
            return &e->rows[i];
    return NULL;
}

/* Student's t, 97.5 %, of `freedom`; of images a normal distribution's. */
static double quantile(size_t n)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262, 2.228};

    if (n < 2) return 1.96;
    return n - 2 < sizeof t / sizeof *t ? t[n - 2] : 2.1;
}

/* The accuracy of the row, against the baseline's, by seed. */
static void put_accuracy(const eff_row *r, FILE *f)
{
    const int differs = fabs(r->gain) > quantile(r->n) * r->gain_error;

    if (!isfinite(r->gain))
        fputs("no accuracy to compare", f);
    else
        fprintf(f, "accuracy %+.2f +- %.2f points%s", 100 * r->gain,
                100 * r->gain_error, differs ? "" : " (not significant)");
}

static double less(double now, double before)
{
    return 100 * (1 - now / before);
}

/* "37 % less", "4 % more". */
static void put_less(FILE *f, double now, double before)
{
    const double v = less(now, before);

    fprintf(f, "%.0f %% %s", fabs(v), v < 0 ? "more" : "less");
}

static void put_memory(const eff *e, const char *key, const char *what, FILE *f)
{
    const eff_row *b = &e->rows[0], *r = eff_find(e, key);

    if (!r) return;
    fprintf(f, "%s: ", what);
    put_less(f, r->memory[EFF_ACTIVATIONS], b->memory[EFF_ACTIVATIONS]);
    fputs(" activations, ", f);
    put_less(f, r->memory_total, b->memory_total);
    fputs(" memory in all, ", f);
    put_less(f, r->seconds, b->seconds);
    fputs(" time a sample; ", f);
    put_accuracy(r, f);
    fputs(".\n", f);
}

/* Honest about a model that has little to gain. */
static void put_depth(const eff *e, FILE *f)
{
    const eff_row *b = &e->rows[0], *r = eff_find(e, "recompute");

    if (!r || less(r->memory[EFF_ACTIVATIONS], b->memory[EFF_ACTIVATIONS]) > 15)
        return;
    fputs("  Checkpointing has little to save in this model: what lies between "
          "its blocks is about as much as what lies within them. A deep one "
          "shows what it is for, such as --model "
          "mlp:512,512,512,512,512,512,512,512,512,512,512,512.\n",
          f);
}

/* A difference of three in a hundred is what repeating a run makes. */
static void put_times(double seconds, double baseline, FILE *f)
{
    const double faster = baseline / seconds;

    if (faster > 1 / 1.03 && faster < 1.03)
        fputs("as fast", f);
    else if (faster > 1)
        fprintf(f, "%.3g times as fast", faster);
    else
        fprintf(f, "%.3g times as slow", 1 / faster);
}

static void put_traffic(const eff *e, const char *key, const char *what,
                        FILE *f)
{
    const eff_row *b = &e->rows[0], *r = eff_find(e, key);

    if (!r || !(r->bytes > 0) || !(b->bytes > 0)) return; /* one rank */
    fprintf(f, "%s: %.4g times fewer bytes", what, b->bytes / r->bytes);
    for (size_t k = 0; k < e->n_networks; k++)
        if (r->modelled[k] > 0) {
            fputs(k ? ", " : ", by the model ", f);
            put_times(r->modelled[k], b->modelled[k], f);
            fprintf(f, " on %s", e->network_names[k]);
        }
    fputs("; ", f);
    put_less(f, r->memory_total, b->memory_total);
    fputs(" memory in all; ", f);
    put_accuracy(r, f);
    fputs(".\n", f);
}

static void put_speed(const eff *e, const char *key, const char *what, FILE *f)
{
    const eff_row *b = &e->rows[0], *r = eff_find(e, key);

    if (!r) return;
    fprintf(f, "%s: ", what);
    put_times(r->seconds, b->seconds, f);
    fputs(" here, ", f);
    put_less(f, r->memory[EFF_ACTIVATIONS], b->memory[EFF_ACTIVATIONS]);
    fputs(" activations, ", f);
    put_less(f, r->memory_total, b->memory_total);
    fputs(" memory in all; ", f);
    put_accuracy(r, f);
    fputs(".\n", f);
}

static void put_state(const eff *e, const char *key, const char *what, FILE *f)
{
    const eff_row *r = eff_find(e, key);

    if (!r || !(e->params > 0)) return;
    fprintf(f,
            "%s: %.3g bytes of optimizer memory a parameter instead of %.3g; ",
            what, r->memory[EFF_OPTIMIZER] / e->params,
            e->rows[0].memory[EFF_OPTIMIZER] / e->params);
    put_accuracy(r, f);
    fputs(".\n", f);
}

static void put_all(const eff *e, FILE *f)
{
    const eff_row *b = &e->rows[0], *r = eff_find(e, "added-compress");

    if (!r) return;
    fprintf(f, "All together (%s, 8-bit AdamW, averages as %s): ", r->precision,
            r->compress);
    put_less(f, r->memory_total, b->memory_total);
    fputs(" memory, ", f);
    if (b->bytes > 0 && r->bytes > 0)
        fprintf(f, "%.4g times fewer bytes, ", b->bytes / r->bytes);
    put_times(r->seconds, b->seconds, f);
    fputs(" here; ", f);
    put_accuracy(r, f);
    fputs(".\n", f);
}

void eff_finding(const eff *e, FILE *f)
{
    if (e->rows[0].n == 0) return;
    put_memory(e, "accumulate", "Accumulation", f);
    put_memory(e, "recompute", "Checkpointing", f);
    put_depth(e, f);
    put_traffic(e, "local", "Local SGD", f);
    put_traffic(e, "compress", "Compression", f);
    put_speed(e, "fp16", "fp16", f);
    put_speed(e, "bf16", "bf16", f);
    put_state(e, "sgd", "SGD with momentum", f);
    put_state(e, "adafactor", "Adafactor", f);
    put_state(e, "adamw8bit", "8-bit AdamW", f);
    put_all(e, f);
}
