/* split.c: the fixed division into training and validation.
 *
 * One permutation of 0..N-1, the same for every run and every rank: all tuning
 * looks at the same 1/12 of the data. Cost: O(N) once. */
#include <stdlib.h>

#include "tacit/dataset.h"
#include "tacit/rng.h"

size_t tac_split_validation_count(size_t count)
{
    return count / 12;
}

tac_status tac_dataset_split(tac_context *ctx, tac_dataset *set,
                             tac_dataset **train, tac_dataset **val)
{
    if (!set || !train || !val)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_dataset_split: set, train and val are needed");
    const size_t n = tac_dataset_get_info(set).count;
    const size_t v = tac_split_validation_count(n);
    uint32_t *order = malloc((n ? n : 1) * sizeof(*order));
    if (!order)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to split %zu samples",
                        n);
    const tac_rng_key key = {0, TAC_STREAM_SPLIT, 0};
    if (n) tac_rng_permutation(&key, order, n);

    tac_dataset *first = NULL, *second = NULL;
    tac_status status = tac_dataset_subset(ctx, set, n - v, order, &first);
    if (status < 0) goto done;
    status = tac_dataset_subset(ctx, set, v, order + (n - v), &second);
    if (status < 0) goto fail_second;
    *train = first;
    *val = second;
    goto done;

fail_second:
    tac_dataset_destroy(first);
done:
    free(order);
    return status;
}
