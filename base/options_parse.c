/* options_parse.c: values from text, complete and in range, or a reason. */
#include "options_impl.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int tac__option_parse_bool(const char *text, int *out)
{
    static const char *const words[2][4] = {{"false", "no", "off", "0"},
                                            {"true", "yes", "on", "1"}};
    for (int value = 0; value < 2; ++value)
        for (int i = 0; i < 4; ++i)
            if (strcasecmp(text, words[value][i]) == 0) {
                *out = value;
                return 1;
            }
    return 0;
}

static int any_value(const tac_option *row)
{
    return row->min == 0 && row->max == 0;
}

/* Limits that stand for "none": infinity, or beyond what the type holds. */
static int is_open(double limit)
{
    return fabs(limit) >= 9e18;
}

static void put_limit(const tac_option *row, double limit, char out[40])
{
    static const char suffixes[] = "KMG";
    int power = -1;
    if (row->type == TAC_OPT_SIZE)
        while (limit >= 1024 && fmod(limit, 1024) == 0 && power < 2) {
            limit /= 1024;
            ++power;
        }
    snprintf(out, 40, "%.15g%.*s", limit, power >= 0,
             suffixes + (power > 0 ? power : 0));
}

void tac__option_range(const tac_option *row, char *out, size_t bytes)
{
    char low[40], high[40];
    out[0] = 0;
    if (any_value(row)) return;
    put_limit(row, row->min, low);
    put_limit(row, row->max, high);
    if (is_open(row->min) && is_open(row->max)) return;
    if (is_open(row->max))
        snprintf(out, bytes, "at least %s", low);
    else if (is_open(row->min))
        snprintf(out, bytes, "at most %s", high);
    else
        snprintf(out, bytes, "%s to %s", low, high);
}

static int in_range(const tac_option *row, double x)
{
    if (any_value(row)) return isfinite(x);
    if (isinf(x)) return isinf(row->max) && x > 0;
    return x >= row->min && x <= row->max;
}

static int out_of_range(const tac_option *row, char *why)
{
    char range[96];
    tac__option_range(row, range, sizeof range);
    snprintf(why, TAC__WHY_BYTES, "out of range; accepted: %s%s%s",
             range[0] ? range : "what fits into 64 bits", row->unit ? " " : "",
             row->unit ? row->unit : "");
    return 0;
}

static int not_a(const tac_option *row, const char *what, char *why)
{
    char range[96];
    tac__option_range(row, range, sizeof range);
    const char *word = row->choices ? row->choices : "";
    snprintf(why, TAC__WHY_BYTES, "not %s%s%s%s%s", what,
             *word || range[0] ? "; accepted: " : "", word,
             *word && range[0] ? ", or " : "", range);
    return 0;
}

static const char *skip_space(const char *s)
{
    while (isspace((unsigned char)*s)) ++s;
    return s;
}

/* Did the conversion take something and leave at most white space? */
static int complete(const char *text, const char *end)
{
    return end != text && *skip_space(end) == 0;
}

static int parse_bool(const char *text, tac__option_value *out, char *why)
{
    if (tac__option_parse_bool(text, &out->flag)) return 1;
    snprintf(why, TAC__WHY_BYTES,
             "not a switch; accepted: true, false, yes, no, on, off, 1, 0");
    return 0;
}

static int parse_int(const tac_option *row, const char *text,
                     tac__option_value *out, char *why)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (!complete(text, end)) return not_a(row, "a whole number", why);
    if (errno == ERANGE || !in_range(row, (double)value))
        return out_of_range(row, why);
    out->i64 = value;
    return 1;
}

/* Is the text the one word that a row of numbers may have? */
static int is_word(const tac_option *row, const char *text)
{
    const size_t n = row->choices ? strlen(row->choices) : 0;
    text = skip_space(text);
    return n > 0 && strncmp(text, row->choices, n) == 0 &&
           *skip_space(text + n) == 0;
}

static int parse_f64(const tac_option *row, const char *text,
                     tac__option_value *out, char *why)
{
    char *end;
    if (is_word(row, text)) {
        out->f64 = NAN;
        return 1;
    }
    const double value = strtod(text, &end);
    if (!complete(text, end) || isnan(value))
        return not_a(row, "a number", why);
    if (!in_range(row, value)) return out_of_range(row, why);
    out->f64 = value;
    return 1;
}

/* The power of 1024 that a suffix stands for: "", "K", "KB", "KiB", "B", in any
 * case; -1 for another text. */
static int suffix_power(const char *s)
{
    static const char letters[] = "KMGT";
    int power = 0;
    s = skip_space(s);
    const char *found = *s ? strchr(letters, toupper((unsigned char)*s)) : NULL;
    if (found) {
        power = (int)(found - letters) + 1;
        ++s;
        if (*s == 'i' && toupper((unsigned char)s[1]) == 'B') ++s;
    }
    if (toupper((unsigned char)*s) == 'B') ++s;
    return *skip_space(s) == 0 ? power : -1;
}

/* Whole numbers are exact up to 2^64 - 1. */
int tac_options_parse_size(const char *text, uint64_t *out)
{
    char *end;
    const char *start = skip_space(text);
    if (!isdigit((unsigned char)*start)) return 0;
    errno = 0;
    const unsigned long long whole = strtoull(start, &end, 10);
    const int overflow = errno == ERANGE;
    if (*end == '.') {
        const double value = strtod(start, &end);
        const int power = suffix_power(end);
        const double bytes = ldexp(value, 10 * power);
        if (power < 0 || bytes != floor(bytes)) return 0;
        if (bytes >= 0x1p64) return -1;
        *out = (uint64_t)bytes;
        return 1;
    }
    const int power = suffix_power(end);
    if (power < 0) return 0;
    if (overflow || whole > UINT64_MAX >> 10 * power) return -1;
    *out = (uint64_t)whole << 10 * power;
    return 1;
}

static int parse_size(const tac_option *row, const char *text,
                      tac__option_value *out, char *why)
{
    uint64_t bytes = 0;
    const int rc = tac_options_parse_size(text, &bytes);
    if (rc == 0)
        return not_a(row, "a size in whole bytes (4096, 64K, 25M, 1.5G)", why);
    if (rc < 0 || !in_range(row, (double)bytes)) return out_of_range(row, why);
    out->size = bytes;
    return 1;
}

void tac__option_choices(const tac_option *row, char *out, size_t bytes)
{
    size_t used = 0;
    for (const char *c = row->choices; *c && used + 3 < bytes; ++c) {
        out[used++] = *c == '|' ? ',' : *c;
        if (*c == '|') out[used++] = ' ';
    }
    out[used] = 0;
}

static int is_choice(const char *choices, const char *text)
{
    const size_t n = strlen(text);
    while (n > 0 && *choices) {
        const size_t length = strcspn(choices, "|");
        if (length == n && strncmp(choices, text, n) == 0) return 1;
        choices += length + (choices[length] == '|');
    }
    return 0;
}

static int parse_enum(const tac_option *row, const char *text, char *why)
{
    char choices[TAC__WHY_BYTES - 40];
    if (is_choice(row->choices, text)) return 1;
    tac__option_choices(row, choices, sizeof choices);
    snprintf(why, TAC__WHY_BYTES, "unknown; accepted: %s", choices);
    return 0;
}

int tac__option_parse(const tac_option *row, const char *text,
                      tac__option_value *out, char why[TAC__WHY_BYTES])
{
    switch (row->type) {
    case TAC_OPT_BOOL: return parse_bool(text, out, why);
    case TAC_OPT_INT: return parse_int(row, text, out, why);
    case TAC_OPT_F64: return parse_f64(row, text, out, why);
    case TAC_OPT_SIZE: return parse_size(row, text, out, why);
    case TAC_OPT_ENUM: return parse_enum(row, text, why);
    case TAC_OPT_STR: return 1;
    }
    snprintf(why, TAC__WHY_BYTES, "the option's type %d does not exist",
             (int)row->type);
    return 0;
}
