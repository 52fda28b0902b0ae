/* safetensors_scan.c: cutting a JSON object into pairs.
 *
 * A tree of the whole header would cost some twenty times its text, which a
 * hostile file could make 100 MB. So the object is cut here into its pairs,
 * knowing only strings and brackets, and each piece is parsed by itself. */
#include "safetensors_impl.h"

#include <string.h>

enum { MAX_DEPTH = 8 }; /* a tensor's description has 2 */

static void skip_space(tac__pairs *it)
{
    while (it->at < it->end && memchr(" \t\r\n", *it->at, 4)) it->at++;
}

static int fail(tac__pairs *it, const char *problem)
{
    it->problem = problem;
    return -1;
}

/* it->at is at a quote. */
static int skip_string(tac__pairs *it)
{
    for (it->at++; it->at < it->end; it->at++) {
        if (*it->at == '"') {
            it->at++;
            return 1;
        }
        if (*it->at == '\\') it->at++;
    }
    it->at = it->end;
    return fail(it, "a text does not end");
}

/* it->at is at a bracket. */
static int skip_nested(tac__pairs *it)
{
    int depth = 0;

    while (it->at < it->end) {
        const char c = *it->at;

        if (c == '"') {
            if (skip_string(it) < 0) return -1;
            continue;
        }
        it->at++;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        if (depth > MAX_DEPTH) return fail(it, "brackets nest too deeply");
        if (depth == 0) return 1;
    }
    return fail(it, "a bracket is not closed");
}

/* Numbers and words: whoever parses the value refuses them. */
static int skip_word(tac__pairs *it)
{
    const char *begin = it->at;

    while (it->at < it->end && !memchr(",}] \t\r\n", *it->at, 7)) it->at++;
    return it->at > begin ? 1 : fail(it, "a value is missing");
}

static int skip_value(tac__pairs *it)
{
    if (it->at == it->end) return fail(it, "a value is missing");
    if (*it->at == '"') return skip_string(it);
    if (*it->at == '{' || *it->at == '[') return skip_nested(it);
    return skip_word(it);
}

static int finish(tac__pairs *it)
{
    it->at++;
    skip_space(it);
    return it->at == it->end ? 0 : fail(it, "text follows the last bracket");
}

tac__pairs tac__pairs_of(tac__span object)
{
    return (tac__pairs){object.p, object.p + object.n, NULL, 0};
}

/* To the key of the next pair: 1, or 0 behind the last. */
static int go_to_key(tac__pairs *it)
{
    const char open = it->begun ? ',' : '{';

    skip_space(it);
    if (it->begun && it->at < it->end && *it->at == '}') return finish(it);
    if (it->at == it->end || *it->at != open)
        return fail(it, it->begun ? "a comma is missing"
                                  : "it does not begin with '{'");
    it->at++;
    skip_space(it);
    if (!it->begun && it->at < it->end && *it->at == '}') return finish(it);
    it->begun = 1;
    if (it->at == it->end || *it->at != '"')
        return fail(it, "a key is missing");
    return 1;
}

int tac__pairs_next(tac__pairs *it, tac__span *key, tac__span *value)
{
    const int more = go_to_key(it);

    if (more <= 0) return more;
    key->p = it->at;
    if (skip_string(it) < 0) return -1;
    key->n = (size_t)(it->at - key->p);
    skip_space(it);
    if (it->at == it->end || *it->at != ':')
        return fail(it, "a colon is missing");
    it->at++;
    skip_space(it);
    value->p = it->at;
    if (skip_value(it) < 0) return -1;
    value->n = (size_t)(it->at - value->p);
    return 1;
}
