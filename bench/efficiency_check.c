/* What makes the table fair and its figures right, looked at in every row. */
#include <math.h>

#include "efficiency.h"

static tac_status check_bytes(const eff *e, const eff_row *row)
{
    if (!isfinite(row->bytes_predicted) || row->bytes_predicted == row->bytes)
        return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_MISMATCH,
                    "BYTES DIFFER: %s: %.17g bytes a rank were predicted, "
                    "%.17g counted; please report it with its runs",
                    row->label, row->bytes_predicted, row->bytes);
}

static tac_status check_samples(const eff *e, const eff_row *row)
{
    if (row->samples == e->rows[0].samples || e->rows[0].n == 0) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_MISMATCH,
                    "SAMPLES DIFFER: %s trained on %lld samples, the baseline "
                    "on %lld: it can't be compared with it",
                    row->label, (long long)row->samples,
                    (long long)e->rows[0].samples);
}

tac_status eff_check(const eff *e)
{
    tac_status worst = TAC_OK;

    for (size_t i = 0; i < e->n_rows; i++) {
        if (e->rows[i].n == 0) continue;
        const tac_status bytes = check_bytes(e, &e->rows[i]);
        const tac_status samples = check_samples(e, &e->rows[i]);

        if (bytes < 0 || samples < 0) worst = TAC_ERR_MISMATCH;
    }
    return worst;
}
