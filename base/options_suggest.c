/* options_suggest.c: the nearest key to one that does not exist.
 *
 * Distance: optimal string alignment, O(|a| |b|) time; keys are short. */
#include "options_impl.h"

#include <string.h>

enum { MAX_KEY = 63 }; /* longer texts are compared by their beginning */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t key_length(const char *s)
{
    return min_size(strlen(s), MAX_KEY);
}

size_t tac__edit_distance(const char *a, const char *b)
{
    size_t d[MAX_KEY + 1][MAX_KEY + 1];
    const size_t na = key_length(a), nb = key_length(b);
    for (size_t i = 0; i <= na; ++i) d[i][0] = i;
    for (size_t j = 0; j <= nb; ++j) d[0][j] = j;
    for (size_t i = 1; i <= na; ++i)
        for (size_t j = 1; j <= nb; ++j) {
            const size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            size_t best = min_size(d[i - 1][j], d[i][j - 1]) + 1;
            best = min_size(best, replaced);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_size(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    return d[na][nb];
}

/* Writes the key as the table has it: '-' for '_', lower case. */
static void normalise(char *out, const char *key)
{
    size_t i = 0;
    for (; key[i] && i < MAX_KEY; ++i) {
        const char c = key[i];
        out[i] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    out[i] = 0;
}

/* Near: at most a third of the letters differ, or two of a short key; or one is
 * the beginning of the other ("--optim", "--batch-size"). */
static int is_near(const char *key, const char *candidate, size_t distance)
{
    const size_t n = strlen(key), m = strlen(candidate);
    if (n >= 3 && strncmp(candidate, key, n) == 0) return 1;
    if (m >= 4 && strncmp(key, candidate, m) == 0) return 1;
    return distance <= (n < 4 ? 1 : n < 9 ? 2 : n / 3);
}

const char *tac__options_suggest(const tac_options *o, const char *key)
{
    static const char *const built_in[] = {"help", "version", "print-config"};
    const size_t extra = sizeof built_in / sizeof built_in[0];
    char wanted[MAX_KEY + 1];
    const char *best = NULL;
    size_t least = SIZE_MAX;
    normalise(wanted, key);
    for (size_t i = 0; i < o->count + extra; ++i) {
        const char *name =
            i < o->count ? o->config.table[i].key : built_in[i - o->count];
        const size_t distance = tac__edit_distance(wanted, name);
        if (distance >= least || !is_near(wanted, name, distance)) continue;
        least = distance;
        best = name;
    }
    return best;
}
