/* tune.h: the tuning file: the cost model's constants as measured.
 *
 *     tacit-tune 1
 *     # comments and empty lines are skipped
 *     shared.alpha 2.1e-06
 *     shared.beta 1.3e-10
 *     ...
 *
 * Keys are {shared,local,network}.{alpha,beta,gamma}, values seconds or seconds
 * a byte; what is missing keeps its built-in value. Written by comm_bench
 * --tune, read at creation; the reader trusts nothing. */
#ifndef TACIT_COMM_TUNE_H
#define TACIT_COMM_TUNE_H

#include "cost.h"

/* Overwrites what the file has in *params (only if all of it is right). Errors:
 * IO, ARG with the line in `why`. */
tac_status tac__tune_read(const char *path, tac__cost_params *params, char *why,
                          size_t bytes);
tac_status tac__tune_write(const char *path, const tac__cost_params *params);

#endif
