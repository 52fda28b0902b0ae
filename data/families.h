/* families.h: the rows of the table of named data. */
#ifndef TAC_DATA_FAMILIES_H
#define TAC_DATA_FAMILIES_H

#include "tacit/data.h"

tac_status tac__data_open_fashion_mnist(tac_context *ctx, const char *arg,
                                        const tac_data_config *config,
                                        tac_data *out);
tac_status tac__data_open_idx(tac_context *ctx, const char *arg,
                              const tac_data_config *config, tac_data *out);
tac_status tac__data_open_synth(tac_context *ctx, const char *arg,
                                const tac_data_config *config, tac_data *out);

/* Splits `all` into out->train and out->val and adds `test`. Takes both over,
 * also on failure. */
tac_status tac__data_assemble(tac_context *ctx, tac_dataset *all,
                              tac_dataset *test, tac_data *out);

#endif
