/* tacit/json.h: writing JSON. (Reading is jansson's job, above comm/.)
 *
 * A writer appends to a growing buffer; commas and quoting are its business.
 * Non-finite numbers are written as null. One thread at a time a writer. */
#ifndef TACIT_JSON_H
#define TACIT_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/export.h"
#include "tacit/status.h"

TAC_BEGIN_DECLS

typedef struct tac_json tac_json;

TAC_API tac_json *tac_json_create(void);    /* NULL: out of memory */
TAC_API void tac_json_destroy(tac_json *j); /* NULL is legal */

/* `key` is NULL inside arrays and for the outermost value. Strings are UTF-8;
 * bytes that are not become U+FFFD; a NULL string is null. Doubles are written
 * with as many digits as reading them back exactly needs. */
TAC_API void tac_json_begin_object(tac_json *j, const char *key);
TAC_API void tac_json_end_object(tac_json *j);
TAC_API void tac_json_begin_array(tac_json *j, const char *key);
TAC_API void tac_json_end_array(tac_json *j);
TAC_API void tac_json_str(tac_json *j, const char *key, const char *value);
TAC_API void tac_json_f64(tac_json *j, const char *key, double value);
TAC_API void tac_json_i64(tac_json *j, const char *key, int64_t value);
TAC_API void tac_json_u64(tac_json *j, const char *key, uint64_t value);
TAC_API void tac_json_bool(tac_json *j, const char *key, int value);
TAC_API void tac_json_null(tac_json *j, const char *key);

/* The text so far, terminated, owned by the writer until the next call; NULL
 * if memory ran out at any point (then every further call is a no-op). */
TAC_API const char *tac_json_text(const tac_json *j, size_t *bytes);
/* Empties it for the next line. */
TAC_API void tac_json_reset(tac_json *j);
/* Writes text and a newline to `path` through a temporary file and rename
 * (straight into pipes and devices; "-": to standard output). Does not report:
 * errno says why. Errors: IO, NOMEM. */
TAC_API tac_status tac_json_write_file(const tac_json *j, const char *path);

TAC_END_DECLS

#endif
