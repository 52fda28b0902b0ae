/* From the configuration's text to what engine/ and amp/ take. */
#ifndef TAC_DDP_SETTINGS_H
#define TAC_DDP_SETTINGS_H

#include "tacit/optim.h"
#include "tacit/scaler.h"
#include "tacit/train_config.h"

/* settings_check.c: fills in what is left to the optimizer and refuses what it
 * does not have; precision, loss scale, groups and injection as far as they can
 * be checked without a model. Errors: CONFIG. */
tac_status tac__settings_resolve(tac_context *ctx, tac_train_config *c,
                                 int world);

/* config_range.c: every option's value is one that its table accepts. Errors:
 * CONFIG. */
tac_status tac__config_check_ranges(tac_context *ctx,
                                    const tac_train_config *c);

/* An optimizer's configuration with the groups that it points to: not to be
 * copied. */
enum { TAC__MAX_GROUPS = 32 };
typedef struct tac__optimizer_settings {
    tac_optimizer_config config;
    tac_param_group groups[TAC__MAX_GROUPS];
    char patterns[1024];
} tac__optimizer_settings;

/* settings.c: everything but where its state is allocated. `c` is resolved.
 * Errors: CONFIG. */
tac_status tac__settings_optimizer(tac_context *ctx, const tac_train_config *c,
                                   tac__optimizer_settings *out);
/* max_skips is 0: the replica gives up by itself, since it knows more to say.
 */
tac_status tac__settings_scaler(tac_context *ctx, const tac_train_config *c,
                                tac_scaler_config *out);
tac_status tac__settings_schedule(tac_context *ctx, const tac_train_config *c,
                                  uint64_t total_steps, tac_schedule *out);

/* groups.c: "GLOB:lr=2,wd=0,bits=32;GLOB:..." into out->groups and
 * out->config. Errors: CONFIG, with what is wrong where. */
tac_status tac__settings_groups(tac_context *ctx, const char *text,
                                tac__optimizer_settings *out);

/* An option that was given for a (dynamic) loss scale which this run lacks, for
 * a warning; NULL: none. Without a scale --init-scale is that of the underflow
 * report. */
const char *tac__settings_unused_scale(tac_context *ctx,
                                       const tac_train_config *c);

/* --inject-inf: attempts first..last (from 1; 0: none) on a rank. */
typedef struct tac__inject {
    uint64_t first, last;
    int rank;
} tac__inject;
tac_status tac__settings_inject(tac_context *ctx, const char *text, int world,
                                tac__inject *out);

#endif
