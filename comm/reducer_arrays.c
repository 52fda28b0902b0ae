/* reducer_arrays.c: a reducer from plain arrays, for trainers without a list of
 * parameters. */
#include <stdlib.h>

#include "tacit/reducer.h"

tac_status tac_reducer_create_arrays(tac_comm *comm, float *const *grads,
                                     const size_t *counts, size_t n,
                                     tac_reducer **out)
{
    tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    if (!comm || !out || (n > 0 && (!grads || !counts))) return TAC_ERR_ARG;
    tac_param_desc *p = calloc(n + 1, sizeof *p);
    /* Without memory this rank lists nothing, so that the others are told. */
    for (size_t i = 0; p && i < n; i++)
        p[i] = (tac_param_desc){
            .name = "", .count = counts[i], .dtype = TAC_F32, .grad = grads[i]};
    config.order = TAC_REDUCER_ORDER_REVERSE;
    const tac_status s = tac_reducer_create(comm, p, p ? n : 0, &config, out);
    free(p);
    return s;
}
