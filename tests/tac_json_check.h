/* tac_json_check.h: is a text one valid JSON value (RFC 8259)? Recursive
 * descent, independent of the writer in base/. For tests. */
#ifndef TAC_JSON_CHECK_H
#define TAC_JSON_CHECK_H

#include <ctype.h>
#include <string.h>

static inline const char *tac_json_skip(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Each tac_json_read_* returns the end of what it read, or NULL. */
static inline const char *tac_json_read_string(const char *s)
{
    if (*s++ != '"') return NULL;
    while (*s != '"') {
        if ((unsigned char)*s < 0x20) return NULL;
        if (*s != '\\') {
            ++s;
        } else if (s[1] == 'u') {
            for (int i = 2; i < 6; ++i)
                if (!isxdigit((unsigned char)s[i])) return NULL;
            s += 6;
        } else {
            if (!s[1] || !strchr("\"\\/bfnrt", s[1])) return NULL;
            s += 2;
        }
    }
    return s + 1;
}

static inline const char *tac_json_read_digits(const char *s)
{
    if (!isdigit((unsigned char)*s)) return NULL;
    while (isdigit((unsigned char)*s)) ++s;
    return s;
}

static inline const char *tac_json_read_number(const char *s)
{
    if (*s == '-') ++s;
    s = *s == '0' ? s + 1 : tac_json_read_digits(s);
    if (s && *s == '.') s = tac_json_read_digits(s + 1);
    if (s && (*s == 'e' || *s == 'E')) {
        ++s;
        if (*s == '+' || *s == '-') ++s;
        s = tac_json_read_digits(s);
    }
    return s;
}

static inline const char *tac_json_read_value(const char *s);

static inline const char *tac_json_read_list(const char *s, char close,
                                             int with_keys)
{
    s = tac_json_skip(s + 1);
    if (*s == close) return s + 1;
    for (;;) {
        if (with_keys) {
            s = tac_json_read_string(tac_json_skip(s));
            if (!s) return NULL;
            s = tac_json_skip(s);
            if (*s++ != ':') return NULL;
        }
        s = tac_json_read_value(s);
        if (!s) return NULL;
        s = tac_json_skip(s);
        if (*s == close) return s + 1;
        if (*s++ != ',') return NULL;
    }
}

static inline const char *tac_json_read_value(const char *s)
{
    static const char *const words[] = {"true", "false", "null"};
    s = tac_json_skip(s);
    if (*s == '{') return tac_json_read_list(s, '}', 1);
    if (*s == '[') return tac_json_read_list(s, ']', 0);
    if (*s == '"') return tac_json_read_string(s);
    for (int i = 0; i < 3; ++i)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return tac_json_read_number(s);
}

static inline int tac_json_is_valid(const char *text)
{
    const char *end = text ? tac_json_read_value(text) : NULL;
    return end && *tac_json_skip(end) == 0;
}

#endif
