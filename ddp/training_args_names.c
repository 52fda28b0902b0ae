/* Words of training arguments, and the nearest one to a word that is none. */
#include "training_args_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to insert, remove or change (Levenshtein). */
static int distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    int row[MOST + 1];
    const int n = (int)strnlen(b, MOST);

    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 0; a[i] && i < MOST; i++) {
        int corner = row[0];

        row[0] = i + 1;
        for (int j = 0; j < n; j++) {
            const int above = row[j + 1];

            row[j + 1] =
                least(corner + (a[i] != b[j]), 1 + least(above, row[j]));
            corner = above;
        }
    }
    return row[n];
}

tac_status tac__word_find(tac_context *ctx, const char *argument,
                          const char *text, const tac__word *words, int *out)
{
    char all[256] = "";
    size_t used = 0;
    int nearest = 0;

    for (int i = 0; words[i].word; i++) {
        if (!strcmp(words[i].word, text)) {
            *out = i;
            return TAC_OK;
        }
        if (distance(text, words[i].word) < distance(text, words[nearest].word))
            nearest = i;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                     i ? ", " : "", words[i].word);
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "%s is '%.60s': did you mean %s? known are %s", argument,
                    text, words[nearest].word, all);
}

tac_status tac__args_set(const tac__args_reader *r, const char *key,
                         const char *value, const char *argument)
{
    char where[96];

    snprintf(where, sizeof where, "training argument %s", argument);
    return tac_options_set(r->o, key, value, TAC_SOURCE_CLI, where);
}

tac_status tac__args_set_int(const tac__args_reader *r, const char *key,
                             int64_t value, const char *argument)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, value);
    return tac__args_set(r, key, text, argument);
}

tac_status tac__args_set_f64(const tac__args_reader *r, const char *key,
                             double value, const char *argument)
{
    char text[40];

    snprintf(text, sizeof text, "%.17g", value);
    return tac__args_set(r, key, text, argument);
}

tac_status tac__args_set_word(const tac__args_reader *r, const char *key,
                              const char *text, const tac__word *words,
                              const char *argument)
{
    int i = 0;

    TAC_TRY(tac__word_find(r->ctx, argument, text ? text : "", words, &i));
    return words[i].value ? tac__args_set(r, key, words[i].value, argument)
                          : TAC_OK;
}
