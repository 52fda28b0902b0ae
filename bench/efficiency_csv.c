/* The table as CSV: bytes, seconds and shares, unrounded. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "efficiency.h"

/* Empty where there is no number. */
static void put(FILE *f, double v)
{
    if (isfinite(v))
        fprintf(f, ",%.17g", v);
    else
        fputc(',', f);
}

static void put_head(const eff *e, FILE *f)
{
    fputs("key,technique,batch,accumulate,recompute,sync,sync_every,precision,"
          "optimizer,compress,lr,steps,samples,syncs",
          f);
    for (int m = 0; m < EFF_MEMORY; m++)
        fprintf(f, ",memory_%s", eff_memory_name((eff_memory)m));
    fputs(",memory_total,bytes_step,bytes_sample,seconds_sample", f);
    for (size_t i = 0; i < e->n_networks; i++)
        fprintf(f, ",modelled_s_sample_%s", e->network_names[i]);
    fputs(",eval_accuracy,test_accuracy,test_error,change_accuracy,"
          "change_accuracy_error,diverged\n",
          f);
}

static void put_row(const eff *e, const eff_row *r, FILE *f)
{
    fprintf(f, "%s,\"%s\",%lld,%lld,%d,%s,%lld,%s,%s,\"%s\"", r->key, r->label,
            (long long)r->batch, (long long)r->accumulate, r->recompute,
            r->sync, (long long)r->every, r->precision, r->optimizer,
            r->compress);
    put(f, r->lr);
    fprintf(f, ",%lld,%lld,%lld", (long long)r->steps, (long long)r->samples,
            (long long)r->syncs);
    for (int m = 0; m < EFF_MEMORY; m++) put(f, r->memory[m]);
    put(f, r->memory_total);
    put(f, r->bytes_step);
    put(f, r->bytes_sample);
    put(f, r->seconds);
    for (size_t i = 0; i < e->n_networks; i++) put(f, r->modelled[i]);
    put(f, r->eval_mean);
    put(f, r->test_mean);
    put(f, r->test_error);
    put(f, r->gain);
    put(f, r->gain_error);
    fprintf(f, ",%zu\n", r->missing);
}

tac_status eff_write_csv(const eff *e, const char *path)
{
    FILE *f = fopen(path, "w");

    if (f) {
        put_head(e, f);
        for (size_t i = 0; i < e->n_rows; i++)
            if (e->rows[i].n + e->rows[i].missing > 0)
                put_row(e, &e->rows[i], f);
    }
    if (f && !(ferror(f) | fclose(f))) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_IO, "cannot write %s: %s; check the folder",
                    path, strerror(errno));
}
