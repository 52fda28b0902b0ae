/* json_impl.h: text helpers of the JSON writer. Private to base/. */
#ifndef TAC_JSON_IMPL_H
#define TAC_JSON_IMPL_H

#include <stddef.h>

#include "tacit/json.h"

enum { TAC__NUMBER_BYTES = 40 };

/* The shortest of %.15g, %.16g and %.17g that reads back as the same value,
 * whatever the locale's decimal point; "null" if not finite. */
void tac__json_number(char out[TAC__NUMBER_BYTES], double value);
/* Bytes of the valid UTF-8 character at s (1 to 4); 0 if it is not one. */
size_t tac__utf8_length(const char *s);

#endif
