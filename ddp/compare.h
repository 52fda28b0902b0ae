/* Do all ranks run the same configuration? */
#ifndef TAC_DDP_COMPARE_H
#define TAC_DDP_COMPARE_H

#include "tacit/comm.h"
#include "tacit/options.h"
#include "tacit/train_config.h"

/* config_text.c: the value of an option as it was resolved, which is not always
 * the one that was given. */
enum { TAC__VALUE_BYTES = 1024 };
void tac__config_value(const tac_train_config *c, const tac_option *row,
                       char out[TAC__VALUE_BYTES]);

/* "name=value" in lines, which must be equal on all ranks. */
typedef struct tac__lines {
    char text[8192];
    size_t used;
} tac__lines;

/* Cut if there is no more room. */
void tac__lines_add(tac__lines *l, const char *name, const char *value);
/* Every option that must be equal on all ranks. */
void tac__lines_config(tac__lines *l, const tac_train_config *c);

/* Collective. Compares with rank 0's. A rank that differs gets MISMATCH, and a
 * message that names the line and both values; the others get OK: agree on the
 * verdict next. */
tac_status tac__compare_lines(tac_comm *comm, const tac__lines *l);

#endif
