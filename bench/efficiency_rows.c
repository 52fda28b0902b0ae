/* The rows: a baseline, each technique alone, and then one added to the other.
 *
 * All rows but one keep the batch of an optimizer step: accumulation cuts it
 * into micro-batches. The one for larger batches keeps the micro-batch instead,
 * so that it has fewer, larger steps for the same samples. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "efficiency.h"

/* Same optimizer, same way to synchronise: the mathematics of a step is the
 * same up to rounding, and so is the learning rate. */
static int same_step(const eff_row *a, const eff_row *b)
{
    return strcmp(a->optimizer, b->optimizer) == 0 &&
           strcmp(a->sync, b->sync) == 0 &&
           a->batch * a->accumulate == b->batch * b->accumulate;
}

/* A copy of `from`, to be changed. */
static eff_row *add(eff *e, eff_part part, const eff_row *from, const char *key,
                    const char *format, ...) TAC_PRINTF(5, 6);
static eff_row *add(eff *e, eff_part part, const eff_row *from, const char *key,
                    const char *format, ...)
{
    eff_row *row = &e->rows[e->n_rows++];
    va_list args;

    if (from) *row = *from;
    row->part = part;
    snprintf(row->key, sizeof row->key, "%s", key);
    va_start(args, format);
    vsnprintf(row->label, sizeof row->label, format, args);
    va_end(args);
    return row;
}

static void add_baseline(eff *e)
{
    eff_row *b = add(e, EFF_BASELINE, NULL, "baseline",
                     "fp32, AdamW, gradients averaged every step");

    b->batch = e->o->batch;
    b->accumulate = b->every = 1;
    b->steps = e->step_count;
    snprintf(b->sync, sizeof b->sync, "grad");
    snprintf(b->precision, sizeof b->precision, "fp32");
    snprintf(b->optimizer, sizeof b->optimizer, "adamw");
    snprintf(b->compress, sizeof b->compress, "none");
}

static void accumulate(const eff *e, eff_row *row)
{
    row->accumulate = e->o->accumulate;
    row->batch = e->o->batch / e->o->accumulate;
}

static void go_local(const eff *e, eff_row *row)
{
    snprintf(row->sync, sizeof row->sync, "local");
    row->every = e->o->sync_every;
}

static void set_precision(eff_row *row, const char *precision)
{
    snprintf(row->precision, sizeof row->precision, "%s", precision);
}

static void set_optimizer(eff_row *row, const char *optimizer)
{
    snprintf(row->optimizer, sizeof row->optimizer, "%s", optimizer);
}

static void set_codec(const eff *e, eff_row *row)
{
    snprintf(row->compress, sizeof row->compress, "%s", e->o->compress);
}

static const char *const optimizers[][2] = {{"sgd", "SGD with momentum"},
                                            {"adafactor", "Adafactor"},
                                            {"adamw8bit", "8-bit AdamW"}};
enum { OPTIMIZERS = 3 };

static void add_alone(eff *e)
{
    const eff_row *b = &e->rows[0];
    const long long k = (long long)e->o->accumulate,
                    h = (long long)e->o->sync_every;

    if (k > 1)
        accumulate(e, add(e, EFF_ALONE, b, "accumulate",
                          "accumulation, %lld micro-batches of %lld", k,
                          (long long)e->o->batch / k));
    add(e, EFF_ALONE, b, "recompute", "checkpointing (recompute)")->recompute =
        1;
    go_local(e, add(e, EFF_ALONE, b, "local", "local SGD, H=%lld", h));
    set_codec(e, add(e, EFF_ALONE, b, "compress", "gradients as %.30s",
                     e->o->compress));
    set_precision(add(e, EFF_ALONE, b, "fp16", "mixed precision, fp16"),
                  "fp16");
    set_precision(add(e, EFF_ALONE, b, "bf16", "mixed precision, bf16"),
                  "bf16");
    for (int i = 0; i < OPTIMIZERS; i++)
        set_optimizer(
            add(e, EFF_ALONE, b, optimizers[i][0], "%s", optimizers[i][1]),
            optimizers[i][0]);
}

/* Each begins with the row before it, but for the optimizers, which all begin
 * with mixed precision; compression begins with the last of them. */
static void add_added(eff *e)
{
    eff_row *row = &e->rows[0];
    char key[40];

    if (e->o->accumulate > 1) {
        row = add(e, EFF_ADDED, row, "added-accumulate", "+ accumulation, %lld",
                  (long long)e->o->accumulate);
        accumulate(e, row);
    }
    row = add(e, EFF_ADDED, row, "added-recompute", "+ checkpointing");
    row->recompute = 1;
    row = add(e, EFF_ADDED, row, "added-local", "+ local SGD, H=%lld",
              (long long)e->o->sync_every);
    go_local(e, row);
    row = add(e, EFF_ADDED, row, "added-mixed", "+ mixed precision, %s",
              e->o->mixed);
    set_precision(row, e->o->mixed);
    const eff_row *mixed = row;
    for (int i = 0; i < OPTIMIZERS; i++) {
        snprintf(key, sizeof key, "added-%s", optimizers[i][0]);
        row = add(e, EFF_ADDED, mixed, key, "+ %s instead of AdamW",
                  optimizers[i][1]);
        set_optimizer(row, optimizers[i][0]);
    }
    row = add(e, EFF_ADDED, row, "added-compress", "+ averages as %.30s",
              e->o->compress);
    set_codec(e, row);
}

/* Groups of micro-steps do not cross the end of an epoch. */
static void add_larger(eff *e)
{
    const int64_t k = e->o->accumulate, all = e->step_count,
                  epoch = e->epoch_steps;
    if (k < 2) return;
    eff_row *row =
        add(e, EFF_OTHER, &e->rows[0], "larger-batch",
            "accumulation for a %lld times larger batch", (long long)k);

    row->accumulate = k;
    row->steps =
        all / epoch * ((epoch + k - 1) / k) + (all % epoch + k - 1) / k;
}

static void share_rates(eff *e)
{
    for (size_t i = 0; i < e->n_rows; i++) {
        eff_row *row = &e->rows[i];

        row->lr_of = 0;
        while (row->lr_of < i && !same_step(&e->rows[row->lr_of], row))
            row->lr_of++;
        row->searches = row->lr_of == i;
        row->lr = NAN;
        for (int s = 0; s < EFF_SEEDS; s++)
            row->test[s] = row->eval[s] = row->time[s] = row->computing[s] =
                NAN;
        for (int k = 0; k < SWEEP_NETWORKS; k++) row->modelled[k] = NAN;
    }
}

tac_status eff_rows(eff *e)
{
    e->n_rows = 0;
    add_baseline(e);
    add_alone(e);
    add_added(e);
    add_larger(e);
    share_rates(e);
    return TAC_OK;
}
