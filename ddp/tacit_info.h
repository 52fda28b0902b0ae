/* What the parts of tacit_info share: a report that goes to the screen and, at
 * the same time, into a JSON object. */
#ifndef TAC_DDP_TACIT_INFO_H
#define TAC_DDP_TACIT_INFO_H

#include "tacit/context.h"
#include "tacit/json.h"

typedef struct tac__info {
    tac_context *ctx; /* logs nothing: failures are what is reported */
    tac_json *json;
    int quiet;
} tac__info;

/* How this build came to be; CMake writes it (build_info.c.in). */
typedef struct tac__build_info {
    const char *type, *compiler, *flags;
    const char *found; /* lines: components, and what is missing */
} tac__build_info;
extern const tac__build_info tac__build;

/* A heading, and an object (or array) of that key, until _end. */
void tac__info_begin(tac__info *i, const char *key, const char *heading);
void tac__info_begin_list(tac__info *i, const char *key, const char *heading);
void tac__info_end(tac__info *i);
void tac__info_end_list(tac__info *i);
/* A line "key  value". NULL: "unknown" and null. */
void tac__info_str(tac__info *i, const char *key, const char *value);
void tac__info_int(tac__info *i, const char *key, long long value,
                   const char *unit);
/* An entry of a list: there or not, and what it is, or why it is not. */
void tac__info_item(tac__info *i, const char *name, int available,
                    const char *text);

/* The sections. */
void tac__info_machine(tac__info *i);    /* info_machine.c */
void tac__info_memory(tac__info *i);     /* info_machine.c */
void tac__info_transports(tac__info *i); /* info_found.c */
void tac__info_algorithms(tac__info *i); /* info_found.c */
void tac__info_devices(tac__info *i);    /* info_found.c */
void tac__info_data(tac__info *i);       /* info_found.c */

#endif
