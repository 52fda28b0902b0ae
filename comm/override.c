/* override.c: the parser of override.h's little language. */
#include "override.h"

#include <stdio.h>
#include <string.h>

/* A stretch of the text. */
typedef struct token {
    const char *at;
    size_t n;
} token;

/* Up to one of `ends` or the end of the text; *text goes behind the token. */
static token take(const char **text, const char *ends)
{
    const char *p = *text + strspn(*text, " ");
    size_t n = strcspn(p, ends);
    *text = p + n;
    while (n > 0 && p[n - 1] == ' ') n--;
    return (token){p, n};
}

static int same(token t, const char *name)
{
    return strlen(name) == t.n && memcmp(t.at, name, t.n) == 0;
}

/* Room for a token in a message. */
static int shown(token t)
{
    return t.n < 40 ? (int)t.n : 40;
}

static void append(char *buf, size_t bytes, const char *name)
{
    const size_t at = strlen(buf);
    snprintf(buf + at, bytes - at, "%s%s", at ? ", " : "", name);
}

static tac_status find_coll(token t, tac_coll *out, char *why, size_t bytes)
{
    char names[120] = "";
    for (int k = 0; k <= TAC_COLL_BARRIER; k++) {
        if (same(t, tac_coll_name((tac_coll)k))) {
            *out = (tac_coll)k;
            return TAC_OK;
        }
        append(names, sizeof names, tac_coll_name((tac_coll)k));
    }
    snprintf(why, bytes, "algorithms: there is no collective '%.*s' (%s)",
             shown(t), t.at, names);
    return TAC_ERR_ARG;
}

static tac_status find_algorithm(token t, tac__override *rule, char *why,
                                 size_t bytes)
{
    char names[160] = "";
    for (size_t i = 0; tac__algs[i]; i++) {
        if (tac__algs[i]->coll != rule->coll) continue;
        if (same(t, tac__algs[i]->name)) {
            rule->algorithm = tac__algs[i]->name;
            return TAC_OK;
        }
        append(names, sizeof names, tac__algs[i]->name);
    }
    snprintf(why, bytes, "algorithms: %s has no '%.*s' (%s)",
             tac_coll_name(rule->coll), shown(t), t.at, names);
    return TAC_ERR_ARG;
}

static int parse_size(token t, size_t *out)
{
    size_t v = 0, i = 0;
    int shift = 0;
    for (; i < t.n && t.at[i] >= '0' && t.at[i] <= '9'; i++) {
        const size_t digit = (size_t)(t.at[i] - '0');
        if (v > (SIZE_MAX - digit) / 10) return 0;
        v = v * 10 + digit;
    }
    if (i == 0) return 0;
    if (i < t.n) {
        const char *units = "KMG", *u = strchr(units, t.at[i++]);
        if (!u) return 0;
        shift = 10 * (int)(u - units + 1);
    }
    if (i != t.n || v > SIZE_MAX >> shift) return 0;
    *out = v << shift;
    return 1;
}

/* "from-to", "from-" */
static tac_status parse_range(token t, tac__override *rule, char *why,
                              size_t bytes)
{
    const char *dash = memchr(t.at, '-', t.n);
    if (dash) {
        const token from = {t.at, (size_t)(dash - t.at)};
        const token to = {dash + 1, t.n - from.n - 1};
        rule->to = SIZE_MAX;
        if (parse_size(from, &rule->from) &&
            (to.n == 0 || parse_size(to, &rule->to)) && rule->from <= rule->to)
            return TAC_OK;
    }
    snprintf(why, bytes,
             "algorithms: '%.*s' is no range of sizes (0-64K, 64K-, 1M-1G)",
             shown(t), t.at);
    return TAC_ERR_ARG;
}

static tac_status parse_rule(const char **text, tac_coll coll,
                             tac__overrides *out, char *why, size_t bytes)
{
    tac__override rule = {coll, NULL, 0, SIZE_MAX};
    TAC_TRY(find_algorithm(take(text, ":,;"), &rule, why, bytes));
    if (**text == ':') {
        ++*text;
        TAC_TRY(parse_range(take(text, ",;"), &rule, why, bytes));
    }
    if (out->n == TAC__OVERRIDES) {
        snprintf(why, bytes, "algorithms: more than %d rules", TAC__OVERRIDES);
        return TAC_ERR_ARG;
    }
    out->rule[out->n++] = rule;
    return TAC_OK;
}

static tac_status check_new(tac_coll coll, const tac__overrides *out, char *why,
                            size_t bytes)
{
    for (int i = 0; i < out->n; i++) {
        if (out->rule[i].coll != coll) continue;
        snprintf(why, bytes,
                 "algorithms: %s is given twice; put its rules behind one '=', "
                 "separated by commas",
                 tac_coll_name(coll));
        return TAC_ERR_ARG;
    }
    return TAC_OK;
}

static tac_status parse_item(const char **text, tac__overrides *out, char *why,
                             size_t bytes)
{
    tac_coll coll = TAC_COLL_ALLREDUCE;
    const token name = take(text, "=;");
    if (name.n == 0 && **text == ';') {
        snprintf(why, bytes,
                 "algorithms: an item is empty (a ';' too many); write "
                 "collective=algorithm;collective=algorithm");
        return TAC_ERR_ARG;
    }
    TAC_TRY(find_coll(name, &coll, why, bytes));
    TAC_TRY(check_new(coll, out, why, bytes));
    if (**text != '=') {
        snprintf(why, bytes, "algorithms: '%.*s' lacks '=' and an algorithm",
                 shown(name), name.at);
        return TAC_ERR_ARG;
    }
    do {
        ++*text;
        TAC_TRY(parse_rule(text, coll, out, why, bytes));
    } while (**text == ',');
    return TAC_OK;
}

tac_status tac__overrides_parse(const char *text, tac__overrides *out,
                                char *why, size_t bytes)
{
    tac__overrides o = {0};
    while (*(text += strspn(text, " "))) {
        TAC_TRY(parse_item(&text, &o, why, bytes));
        if (*text == ';') text++; /* also behind the last */
    }
    *out = o;
    return TAC_OK;
}
