/* What makes a sweep fair and its figures right, looked at in every row: the
 * same samples, and the bytes that were predicted. */
#include <math.h>
#include <string.h>

#include "localsgd_sweep.h"

static tac_status check_bytes(const sweep *s, const sweep_row *row)
{
    if (row->diverged || !row->predictable) return TAC_OK;
    if (row->bytes_predicted == row->bytes_counted) return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_MISMATCH,
                    "BYTES DIFFER: %s, seed %lld: %.17g bytes a rank were "
                    "predicted, %.17g counted; please report it with %s",
                    s->cases[row->of].label, (long long)row->seed,
                    row->bytes_predicted, row->bytes_counted, row->result.name);
}

/* Of the first row that trained to its end. */
static int64_t samples_of_all(const sweep *s)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (!s->rows[i].diverged) return s->rows[i].samples;
    return 0;
}

static tac_status check_samples(const sweep *s, const sweep_row *row,
                                int64_t samples)
{
    if (row->diverged || row->samples == samples) return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_MISMATCH,
                    "SAMPLES DIFFER: %s, seed %lld trained on %lld samples, "
                    "the others on %lld: it can't be compared with them",
                    s->cases[row->of].label, (long long)row->seed,
                    (long long)row->samples, (long long)samples);
}

tac_status sweep_check(sweep *s)
{
    const int64_t samples = samples_of_all(s);
    tac_status worst = TAC_OK;

    for (size_t i = 0; i < s->n_rows; i++) {
        const tac_status bytes = check_bytes(s, &s->rows[i]);
        const tac_status same = check_samples(s, &s->rows[i], samples);

        if (bytes < 0 || same < 0) worst = TAC_ERR_MISMATCH;
    }
    return worst;
}
