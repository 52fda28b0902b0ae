/* The table for docs/efficiency.md. */
#include <math.h>

#include "efficiency.h"

static void put(FILE *f, int digits, double v)
{
    if (isfinite(v))
        fprintf(f, " %.*f |", digits, v);
    else
        fputs(" - |", f);
}

static void put_head(const eff *e, FILE *f)
{
    fputs("| |", f);
    for (int m = 0; m < EFF_MEMORY; m++)
        fprintf(f, " %s |", eff_memory_title((eff_memory)m));
    fputs(" MiB a rank | kB a sample | \xc2\xb5s a sample |", f);
    for (size_t k = 0; k < e->n_networks; k++)
        fprintf(f, " %s |", e->network_names[k]);
    fprintf(f, " %s, %% | change |\n|---|", e->tested ? "test" : "validation");
    for (size_t k = 0; k < EFF_MEMORY + 5 + e->n_networks; k++)
        fputs("---|", f);
    fputs("\n", f);
}

static void put_row(const eff *e, const eff_row *r, FILE *f)
{
    static const char *const marks[] = {"**", "", "", "*"};

    fprintf(f, "| %s%s%s |", marks[r->part], r->label, marks[r->part]);
    for (int m = 0; m < EFF_MEMORY; m++) put(f, 2, r->memory[m] / 1048576);
    put(f, 2, r->memory_total / 1048576);
    put(f, 2, r->bytes_sample / 1e3);
    put(f, 0, r->seconds * 1e6);
    for (size_t k = 0; k < e->n_networks; k++) put(f, 0, r->modelled[k] * 1e6);
    fprintf(f, " %.2f \xc2\xb1 %.2f |", 100 * r->test_mean,
            100 * r->test_error);
    if (r == &e->rows[0])
        fputs(" |\n", f);
    else
        fprintf(f, " %+.2f \xc2\xb1 %.2f |\n", 100 * r->gain,
                100 * r->gain_error);
}

void eff_print_markdown(const eff *e, FILE *f)
{
    put_head(e, f);
    for (size_t i = 0; i < e->n_rows; i++)
        if (e->rows[i].n > 0) put_row(e, &e->rows[i], f);
    fputs("\n", f);
    eff_finding(e, f);
}
