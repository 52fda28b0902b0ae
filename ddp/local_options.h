/* The options of local modes, from text to what localsgd/ takes. */
#ifndef TAC_DDP_LOCAL_OPTIONS_H
#define TAC_DDP_LOCAL_OPTIONS_H

#include "tacit/params.h"
#include "tacit/train_config.h"

/* local_check.c: refuses options that the mode has no use for, and fills in
 * what it leaves open, except what depends on the length of the run and on the
 * layers. Errors: CONFIG. */
tac_status tac__local_resolve(tac_context *ctx, tac_train_config *c, int world);

/* local_parse.c: "fixed|qsr:ALPHA[,POWER]|adacomm|budget:BYTES" into kind and
 * numbers; "RANKS:EVERY,..." into levels; "wait|drop:SECONDS". Errors:
 * CONFIG. */
tac_status tac__local_schedule(tac_context *ctx, const char *text,
                               tac_sync_schedule *out);
tac_status tac__local_levels(tac_context *ctx, const char *text,
                             tac_localsgd_config *out);
tac_status tac__local_late(tac_context *ctx, const char *text,
                           tac_localsgd_config *out);

/* local_config.c: layer[i] of each parameter, in the order of registration:
 * those that are called alike up to the last dot ("fc1.weight", "fc1.bias") are
 * one layer; `layer` may be NULL. Returns how many layers there are. */
int64_t tac__local_layers(const tac_params *p, int64_t *layer);

#endif
