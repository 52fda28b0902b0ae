/* json_text.c: numbers and characters as JSON wants them (RFC 8259). */
#include "json_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tac__json_number(char out[TAC__NUMBER_BYTES], double value)
{
    char text[TAC__NUMBER_BYTES] = "null"; /* 24 are the most */
    for (int digits = 15; isfinite(value) && digits <= 17; ++digits) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    char *comma = strchr(text, ',');
    if (comma) *comma = '.';
    memcpy(out, text, sizeof text);
}

/* Refuses what RFC 3629 does: overlong forms, surrogates, above U+10FFFF. The
 * terminating 0 is no continuation byte, so this never reads beyond it. */
size_t tac__utf8_length(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = 0;
    if (u[0] < 0x80) return 1;
    if (u[0] >= 0xc2 && u[0] <= 0xdf) n = 2;
    if (u[0] >= 0xe0 && u[0] <= 0xef) n = 3;
    if (u[0] >= 0xf0 && u[0] <= 0xf4) n = 4;
    for (size_t i = 1; i < n; ++i)
        if ((u[i] & 0xc0) != 0x80) return 0;
    if (u[0] == 0xe0 && u[1] < 0xa0) return 0;
    if (u[0] == 0xed && u[1] > 0x9f) return 0;
    if (u[0] == 0xf0 && u[1] < 0x90) return 0;
    if (u[0] == 0xf4 && u[1] > 0x8f) return 0;
    return n;
}
