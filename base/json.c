/* json.c: the JSON writer, an appending buffer.
 *
 * A comma goes before a value unless the text is empty or ends with one of
 * "{[": everything the writer appends ends with another character. */
#include "json_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

struct tac_json {
    char *text; /* always terminated; NULL: memory ran out */
    size_t used, room;
};

enum { FIRST_ROOM = 256 };

tac_json *tac_json_create(void)
{
    tac_json *j = malloc(sizeof *j);
    if (!j) return NULL;
    *j = (tac_json){malloc(FIRST_ROOM), 0, FIRST_ROOM};
    if (!j->text) {
        free(j);
        return NULL;
    }
    j->text[0] = 0;
    return j;
}

void tac_json_destroy(tac_json *j)
{
    if (!j) return;
    free(j->text);
    free(j);
}

/* Makes room for `bytes` more and the terminator. */
static int reserve(tac_json *j, size_t bytes)
{
    if (!j->text) return 0;
    if (bytes < j->room - j->used) return 1;
    size_t room = j->room;
    while (room - j->used <= bytes && room <= SIZE_MAX / 2) room *= 2;
    char *text = room - j->used > bytes ? realloc(j->text, room) : NULL;
    if (!text) {
        free(j->text);
        j->text = NULL;
        return 0;
    }
    j->text = text;
    j->room = room;
    return 1;
}

static void put(tac_json *j, const char *s, size_t n)
{
    if (!reserve(j, n)) return;
    memcpy(j->text + j->used, s, n);
    j->used += n;
    j->text[j->used] = 0;
}

static void put_text(tac_json *j, const char *s)
{
    put(j, s, strlen(s));
}

/* One character of a string; returns the bytes of input that it took. */
static size_t put_character(tac_json *j, const char *s)
{
    static const char special[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const unsigned char c = (unsigned char)*s;
    const char *found = strchr(special, c);
    char escape[8];
    const size_t n = tac__utf8_length(s);
    if (found)
        snprintf(escape, sizeof escape, "\\%c", letters[found - special]);
    else if (c < 0x20)
        snprintf(escape, sizeof escape, "\\u%04x", c);
    else if (n == 0) /* not UTF-8, as a file name may be */
        strcpy(escape, "\\ufffd");
    else {
        put(j, s, n);
        return n;
    }
    put_text(j, escape);
    return 1;
}

static void put_quoted(tac_json *j, const char *s)
{
    put_text(j, "\"");
    while (*s) s += put_character(j, s);
    put_text(j, "\"");
}

/* What goes before a value: comma and key. */
static void put_key(tac_json *j, const char *key)
{
    if (j->text && j->used > 0 && !strchr("{[", j->text[j->used - 1]))
        put_text(j, ",");
    if (!key) return;
    put_quoted(j, key);
    put_text(j, ":");
}

static void put_value(tac_json *j, const char *key, const char *text)
{
    put_key(j, key);
    put_text(j, text);
}

void tac_json_begin_object(tac_json *j, const char *key)
{
    put_value(j, key, "{");
}

void tac_json_end_object(tac_json *j)
{
    put_text(j, "}");
}

void tac_json_begin_array(tac_json *j, const char *key)
{
    put_value(j, key, "[");
}

void tac_json_end_array(tac_json *j)
{
    put_text(j, "]");
}

void tac_json_str(tac_json *j, const char *key, const char *value)
{
    if (!value) {
        tac_json_null(j, key);
        return;
    }
    put_key(j, key);
    put_quoted(j, value);
}

void tac_json_f64(tac_json *j, const char *key, double value)
{
    char text[TAC__NUMBER_BYTES];
    tac__json_number(text, value);
    put_value(j, key, text);
}

void tac_json_i64(tac_json *j, const char *key, int64_t value)
{
    char text[TAC__NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_value(j, key, text);
}

void tac_json_u64(tac_json *j, const char *key, uint64_t value)
{
    char text[TAC__NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_value(j, key, text);
}

void tac_json_bool(tac_json *j, const char *key, int value)
{
    put_value(j, key, value ? "true" : "false");
}

void tac_json_null(tac_json *j, const char *key)
{
    put_value(j, key, "null");
}

const char *tac_json_text(const tac_json *j, size_t *bytes)
{
    if (bytes) *bytes = j->text ? j->used : 0;
    return j->text;
}

void tac_json_reset(tac_json *j)
{
    if (!j->text) return;
    j->used = 0;
    j->text[0] = 0;
}

tac_status tac_json_write_file(const tac_json *j, const char *path)
{
    if (!j->text) return TAC_ERR_NOMEM;
    return tac__file_replace(path, j->text, j->used);
}
