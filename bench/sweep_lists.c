/* Lists in options: words between commas, names, codecs, numbers. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"
#include "tacit/codec.h"

/* Room for pointers to all words and for the words, in one block. */
static char **make_block(const char *text, char **words)
{
    const size_t bytes = strlen(text) + 1;
    size_t most = 2;

    for (const char *p = text; *p; p++) most += *p == ',' || *p == ';';
    char **block = malloc(most * sizeof *block + bytes);
    if (!block) return NULL;
    *words = (char *)(block + most);
    memcpy(*words, text, bytes);
    return block;
}

static char *trim(char *word)
{
    while (isspace((unsigned char)*word)) word++;
    for (size_t n = strlen(word); n && isspace((unsigned char)word[n - 1]); n--)
        word[n - 1] = 0;
    return word;
}

static tac_status split(tac_context *ctx, const char *text, const char *at,
                        char ***out, size_t *n)
{
    char *words, *rest = NULL;
    char **list = make_block(text ? text : "", &words);

    *n = 0;
    if (!list) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a list");
    for (char *w = strtok_r(words, at, &rest); w; w = strtok_r(NULL, at, &rest))
        if (*trim(w)) list[(*n)++] = trim(w);
    *out = list;
    return TAC_OK;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Levenshtein's distance of the first 31 letters. */
static size_t distance(const char *a, const char *b, size_t n)
{
    enum { MOST = 31 };
    size_t row[MOST + 1];

    n = n < MOST ? n : MOST;
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 1; a[i - 1] && i <= MOST; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1,
                              corner + (a[i - 1] != b[j - 1]));
            corner = above;
        }
    }
    return row[n];
}

/* The nearest of "a|b|c". */
static const char *nearest(const char *word, const char *known, size_t *length)
{
    const char *best = known;
    size_t least = SIZE_MAX;

    for (const char *at = known; *at;) {
        const size_t n = strcspn(at, "|"), d = distance(word, at, n);

        if (d < least) {
            least = d;
            best = at;
            *length = n;
        }
        at += n + (at[n] == '|');
    }
    return best;
}

static tac_status check_name(tac_context *ctx, const char *option,
                             const char *word, const char *known)
{
    size_t n = 0;
    const char *best = nearest(word, known, &n);

    if (strlen(word) == n && strncmp(word, best, n) == 0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s: unknown name '%s'; did you mean '%.*s'? (there are "
                    "%s)",
                    option, word, (int)n, best, known);
}

static tac_status check_some(tac_context *ctx, const char *option, size_t n)
{
    if (n > 0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--%s is empty; give at least one, or leave it out",
                    option);
}

/* A list that is refused is nobody's. */
static tac_status give_up(tac_status s, char ***list)
{
    if (s >= 0) return s;
    free(*list);
    *list = NULL;
    return s;
}

static tac_status once(tac_context *ctx, const char *option, char **list,
                       size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(list[i], list[k]) == 0)
                return tac_fail(ctx, TAC_ERR_CONFIG,
                                "--%s: '%s' is twice; leave one out", option,
                                list[i]);
    return TAC_OK;
}

tac_status sweep_list_words(tac_context *ctx, const char *option,
                            const char *text, char ***out, size_t *n)
{
    TAC_TRY(split(ctx, text, ",", out, n));
    return give_up(once(ctx, option, *out, *n), out);
}

tac_status sweep_list_names(tac_context *ctx, const char *option,
                            const char *text, const char *known, char ***out,
                            size_t *n)
{
    tac_status s;

    TAC_TRY(sweep_list_words(ctx, option, text, out, n));
    s = check_some(ctx, option, *n);
    for (size_t i = 0; s >= 0 && i < *n; i++)
        s = check_name(ctx, option, (*out)[i], known);
    return give_up(s, out);
}

/* Does a codec begin here, and not an option of the one before? */
static int is_codec(const char *word)
{
    static const char *const heads[] = {"none", "fp16", "bf16",     "int8",
                                        "fp4",  "topk", "powersgd", NULL};

    for (const char *const *h = heads; *h; h++) {
        const size_t n = strlen(*h);

        if (strncmp(word, *h, n) == 0 && (word[n] == 0 || word[n] == ':'))
            return 1;
    }
    return 0;
}

/* The words lie one after the other in one block, so there is room. */
static void join(char *before, const char *word)
{
    char *end = before + strlen(before);

    *end = ',';
    memmove(end + 1, word, strlen(word) + 1);
}

static tac_status check_codec(tac_context *ctx, const char *option,
                              const char *spec)
{
    tac_codec *codec = NULL;
    const tac_status s = tac_codec_create(ctx, spec, &codec);

    tac_codec_destroy(codec);
    if (s == TAC_ERR_ARG) return TAC_ERR_CONFIG;
    if (s < 0 || strcmp(option, "compress") != 0 ||
        strncmp(spec, "powersgd", 8))
        return s;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--compress: powersgd needs the shapes of parameters, "
                    "which a delta has not; use it in --baseline-compress, and "
                    "topk, int8 or fp4 here");
}

tac_status sweep_list_codecs(tac_context *ctx, const char *option,
                             const char *text, char ***out, size_t *n)
{
    size_t kept = 0;

    TAC_TRY(split(ctx, text, ",;", out, n));
    for (size_t i = 0; i < *n; i++) {
        char *word = (*out)[i];

        if (kept == 0 || is_codec(word))
            (*out)[kept++] = word;
        else
            join((*out)[kept - 1], word);
    }
    *n = kept;
    tac_status s = once(ctx, option, *out, *n);
    for (size_t i = 0; s >= 0 && i < *n; i++)
        s = check_codec(ctx, option, (*out)[i]);
    return give_up(s, out);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static tac_status read_numbers(tac_context *ctx, const char *option,
                               char **words, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        char *end;

        out[i] = strtod(words[i], &end);
        if (*end || !(out[i] > 0) || isinf(out[i]))
            return tac_fail(ctx, TAC_ERR_CONFIG,
                            "--%s: '%s' is no number above 0", option,
                            words[i]);
    }
    return TAC_OK;
}

static size_t unique(double *list, size_t n)
{
    size_t kept = 0;

    qsort(list, n, sizeof *list, ascending);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || list[i] > list[kept - 1]) list[kept++] = list[i];
    return kept;
}

tac_status sweep_list_numbers(tac_context *ctx, const char *option,
                              const char *text, double **out, size_t *n)
{
    char **words;

    TAC_TRY(split(ctx, text, ",", &words, n));
    double *list = calloc(*n + 1, sizeof *list);
    tac_status s = list ? check_some(ctx, option, *n)
                        : tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a list");
    if (s >= 0) s = read_numbers(ctx, option, words, *n, list);
    free(words);
    if (s < 0) {
        free(list);
        return s;
    }
    *n = unique(list, *n);
    *out = list;
    return TAC_OK;
}
