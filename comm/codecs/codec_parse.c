/* codec_parse.c: specifications of codecs, "NAME[:ARGUMENT][,OPTION...]". */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_impl.h"

enum { WORD = 40, MOST_RANK = 4096, LEAST_CHUNK = 16, MOST_CHUNK = 65536 };

/* ---- words ----------------------------------------------------------------
 */

/* Edits that make a from b; both are cut to WORD. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD + 1];
    const size_t n = strnlen(a, WORD), m = strnlen(b, WORD);
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            const size_t edited =
                (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < edited ? replaced : edited;
        }
    }
    return row[m];
}

static const tac__codec_method *nearest(const char *word)
{
    const tac__codec_method *best = NULL;
    size_t least = strlen(word) / 2 + 1;
    for (size_t i = 0; tac__codec_methods[i]; i++) {
        const size_t d = distance(word, tac__codec_methods[i]->name);
        if (d > least || (best && d == least)) continue;
        best = tac__codec_methods[i];
        least = d;
    }
    return best;
}

static const tac__codec_method *by_name(const char *word)
{
    for (size_t i = 0; tac__codec_methods[i]; i++)
        if (strcmp(tac__codec_methods[i]->name, word) == 0)
            return tac__codec_methods[i];
    return NULL;
}

static int is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; *p;) {
        const size_t m = strcspn(p, " ");
        if (m == n && strncmp(p, word, n) == 0) return 1;
        p += m + (p[m] == ' ');
    }
    return 0;
}

/* ---- numbers --------------------------------------------------------------
 */

static int read_u64(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') return 0;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static int read_f64(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && *end == '\0' && isfinite(*out);
}

/* ---- parts ----------------------------------------------------------------
 */

static tac_status no_such_codec(tac_context *ctx, const char *text,
                                const char *word)
{
    const tac__codec_method *near_one = nearest(word);
    return tac_fail(ctx, TAC_ERR_ARG,
                    "compression '%s': there is no '%s'%s%s%s; possible are "
                    "none, fp16, bf16, int8, fp4, topk:F and powersgd:R",
                    text, word, near_one ? ", did you mean '" : "",
                    near_one ? near_one->name : "", near_one ? "'" : "");
}

static tac_status read_argument(tac_context *ctx, const char *text,
                                tac__codec_spec *s, const char *arg)
{
    const tac__codec_method *m = s->method;
    uint64_t rank = 0;
    if (!m->argument && arg)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': %s takes no argument ':%s'", text,
                        m->name, arg);
    if (m == &tac__codec_topk && (!arg || !read_f64(arg, &s->fraction) ||
                                  !(s->fraction > 0) || s->fraction > 1))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': topk needs the share of elements to "
                        "send, above 0 and at most 1, as in topk:0.01, not "
                        "'%s'",
                        text, arg ? arg : "");
    if (m == &tac__codec_powersgd &&
        (!arg || !read_u64(arg, &rank) || rank < 1 || rank > MOST_RANK))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': powersgd needs a rank from 1 to %d, "
                        "as in powersgd:4, not '%s'",
                        text, MOST_RANK, arg ? arg : "");
    s->rank = (size_t)rank;
    return TAC_OK;
}

/* "a b" as ", a, b" */
static void list_options(const char *options, char *buf, size_t bytes)
{
    size_t n = 0;
    buf[0] = '\0';
    while (*options && n + 3 < bytes) {
        const size_t m = strcspn(options, " ");
        snprintf(buf + n, bytes - n, ", %.*s", (int)m, options);
        n = strlen(buf);
        options += m + (options[m] == ' ');
    }
}

static tac_status bad_option(tac_context *ctx, const char *text,
                             const tac__codec_spec *s, const char *option)
{
    char own[64];
    list_options(s->method->options, own, sizeof own);
    return tac_fail(ctx, TAC_ERR_ARG,
                    "compression '%s': '%s' is no option of %s; possible are "
                    "ef, noef, start=N%s",
                    text, option, s->method->name, own);
}

static tac_status bad_value(tac_context *ctx, const char *text,
                            const char *word, const char *value)
{
    if (strcmp(word, "min-rate") == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': %s is a number of at least 0 "
                        "(min-rate=X), not '%s'",
                        text, word, value);
    if (strcmp(word, "bits") == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': %s is 2, 4, 8 or 32 (bits of a "
                        "value), not '%s'",
                        text, word, value);
    if (strcmp(word, "chunk") == 0)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression '%s': %s is a power of two from %d to %d "
                        "elements, or 0 for whole parameters, not '%s'",
                        text, word, LEAST_CHUNK, MOST_CHUNK, value);
    return tac_fail(ctx, TAC_ERR_ARG,
                    "compression '%s': %s is a whole number from 0 to %" PRIu64
                    " (%s=N), not '%s'",
                    text, word, UINT64_MAX, word, value);
}

/* Options without a value; all that is_option lets pass. */
static void set_flag(tac__codec_spec *s, const char *word)
{
    if (strcmp(word, "stochastic") == 0)
        s->stochastic = 1;
    else
        s->feedback = *word == 'e';
}

static int set_bits(tac__codec_spec *s, uint64_t n)
{
    s->bits = (unsigned)n;
    return n == 2 || n == 4 || n == 8 || n == 32;
}

static int set_chunk(tac__codec_spec *s, uint64_t n)
{
    s->chunk = (size_t)n;
    return n == 0 || (n >= LEAST_CHUNK && n <= MOST_CHUNK && !(n & (n - 1)));
}

/* 0 if the value is wrong. */
static int set_value(tac__codec_spec *s, const char *word, const char *value)
{
    uint64_t n;
    if (strcmp(word, "min-rate") == 0)
        return read_f64(value, &s->min_rate) && s->min_rate >= 0;
    if (!read_u64(value, &n)) return 0;
    if (strcmp(word, "bits") == 0) return set_bits(s, n);
    if (strcmp(word, "chunk") == 0) return set_chunk(s, n);
    if (strcmp(word, "start") == 0)
        s->start = n;
    else if (strcmp(word, "seed") == 0)
        s->seed = n;
    else if (strcmp(word, "warmup") == 0)
        s->warmup = n;
    else
        s->min = (size_t)n;
    return 1;
}

/* Is it one that this codec has? The list shows values: "seed=N". */
static int is_option(const tac__codec_spec *s, const char *word, int has_value)
{
    char shown[WORD + 8];
    if (!has_value && (strcmp(word, "ef") == 0 || strcmp(word, "noef") == 0))
        return 1;
    if (has_value && strcmp(word, "start") == 0) return 1;
    snprintf(shown, sizeof shown, "%s%s", word,
             !has_value                      ? ""
             : strcmp(word, "min-rate") == 0 ? "=X"
                                             : "=N");
    return is_listed(s->method->options, shown);
}

static tac_status read_option(tac_context *ctx, const char *text,
                              tac__codec_spec *s, const char *option)
{
    char word[WORD + 1];
    const char *equals = strchr(option, '=');
    const size_t n = equals ? (size_t)(equals - option) : strlen(option);
    if (n > WORD) return bad_option(ctx, text, s, option);
    memcpy(word, option, n);
    word[n] = '\0';
    if (!is_option(s, word, equals != NULL))
        return bad_option(ctx, text, s, option);
    if (!equals)
        set_flag(s, word);
    else if (!set_value(s, word, equals + 1))
        return bad_value(ctx, text, word, equals + 1);
    return TAC_OK;
}

/* `seen`: bit 0 for ef, bit 1 for noef. */
static tac_status check_feedback(tac_context *ctx, const char *text,
                                 const char *option, int *seen)
{
    if (strcmp(option, "ef") == 0) *seen |= 1;
    if (strcmp(option, "noef") == 0) *seen |= 2;
    if (*seen != 3) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_ARG,
                    "compression '%s': ef and noef contradict each other; "
                    "give one of them",
                    text);
}

/* ---- all of it ------------------------------------------------------------
 */

static tac_status parse_words(tac_context *ctx, const char *text, char *copy,
                              tac__codec_spec *s)
{
    char *rest = copy;
    char *head = strsep(&rest, ",");
    char *argument = head;
    const char *name = strsep(&argument, ":");
    s->method = by_name(name);
    if (!s->method) return no_such_codec(ctx, text, name);
    s->feedback = s->method->feedback;
    s->start = s->method->start;
    s->min = 1;
    s->bits = 32;
    s->min_rate = 2;
    TAC_TRY(read_argument(ctx, text, s, argument));
    int seen = 0;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        TAC_TRY(read_option(ctx, text, s, word));
        TAC_TRY(check_feedback(ctx, text, word, &seen));
    }
    return TAC_OK;
}

tac_status tac__codec_parse(tac_context *ctx, const char *text,
                            tac__codec_spec *out)
{
    tac__codec_spec s = {0};
    char copy[200];
    if (strlen(text) >= sizeof copy)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "compression: %zu characters are too many for a codec",
                        strlen(text));
    strcpy(copy, text);
    TAC_TRY(parse_words(ctx, text, copy, &s));
    *out = s;
    return TAC_OK;
}

void tac__codec_print(const tac__codec_spec *s, char *buf, size_t bytes)
{
    const tac__codec_method *m = s->method;
    char arg[32] = "", own[96] = "";
    if (m == &tac__codec_topk) {
        snprintf(arg, sizeof arg, ":%.6g", s->fraction);
        snprintf(own, sizeof own, ",bits=%u,chunk=%zu,min=%zu,warmup=%llu",
                 s->bits, s->chunk, s->min, (unsigned long long)s->warmup);
    } else if (m == &tac__codec_powersgd) {
        snprintf(arg, sizeof arg, ":%zu", s->rank);
        snprintf(own, sizeof own, ",seed=%llu,min-rate=%.6g",
                 (unsigned long long)s->seed, s->min_rate);
    } else if (s->stochastic) {
        snprintf(own, sizeof own, ",stochastic,seed=%llu",
                 (unsigned long long)s->seed);
    }
    snprintf(buf, bytes, "%s%s%s%s,start=%llu", m->name, arg,
             s->feedback ? ",ef" : ",noef", own, (unsigned long long)s->start);
}
