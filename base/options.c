/* options.c: the options object: values with their sources, and precedence. */
#include "options_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int same_key(const char *a, const char *b)
{
    for (; *a && *b; ++a, ++b)
        if (*a != *b && !(*a == '-' && *b == '_')) return 0;
    return *a == *b;
}

int tac__options_find(const tac_options *o, const char *key)
{
    for (size_t i = 0; i < o->count; ++i)
        if (same_key(o->config.table[i].key, key)) return (int)i;
    return -1;
}

static void write_target(const tac_options *o, const tac_option *row,
                         const tac__option_value *v, const char *text)
{
    void *to = (char *)o->config.target + row->offset;
    switch (row->type) {
    case TAC_OPT_BOOL: *(int *)to = v->flag; break;
    case TAC_OPT_INT: *(int64_t *)to = v->i64; break;
    case TAC_OPT_F64: *(double *)to = v->f64; break;
    case TAC_OPT_SIZE: *(uint64_t *)to = v->size; break;
    case TAC_OPT_STR:
    case TAC_OPT_ENUM: *(const char **)to = text; break;
    }
}

/* The text kept for --print-config: switches in one spelling, others as given,
 * without white space around them. NULL: out of memory. */
static char *copy_text(const tac_option *row, const char *text,
                       const tac__option_value *v)
{
    if (row->type == TAC_OPT_BOOL) return strdup(v->flag ? "true" : "false");
    if (row->type == TAC_OPT_STR) return strdup(text);
    while (isspace((unsigned char)*text)) ++text;
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1])) --n;
    return strndup(text, n);
}

static tac_status store(tac_options *o, size_t i, const char *text,
                        const tac__option_value *v, tac_option_source source)
{
    const tac_option *row = &o->config.table[i];
    char *copy = copy_text(row, text, v);
    if (!copy)
        return tac_fail(o->ctx, TAC_ERR_NOMEM, "out of memory for option --%s",
                        row->key);
    write_target(o, row, v, copy);
    free(o->values[i]);
    o->values[i] = copy;
    o->sources[i] = source;
    return TAC_OK;
}

static tac_status unknown_key(tac_options *o, const char *key,
                              tac_option_source source, const char *where)
{
    const char *nearest = tac__options_suggest(o, key);
    const char *dashes = source == TAC_SOURCE_CLI ? "--" : "";
    if (nearest)
        return tac_fail(o->ctx, TAC_ERR_CONFIG,
                        "%s%sunknown option %s%s; did you mean %s%s?",
                        where ? where : "", where ? ": " : "", dashes, key,
                        dashes, nearest);
    return tac_fail(o->ctx, TAC_ERR_CONFIG,
                    "%s%sunknown option %s%s; --help lists all of them",
                    where ? where : "", where ? ": " : "", dashes, key);
}

static tac_status bad_value(tac_options *o, const tac_option *row,
                            const char *value, tac_option_source source,
                            const char *where, const char *why)
{
    return tac_fail(o->ctx, TAC_ERR_CONFIG, "%s%s%s%s \"%s\": %s",
                    where ? where : "", where ? ": " : "",
                    source == TAC_SOURCE_CLI ? "--" : "", row->key, value, why);
}

tac_status tac_options_set(tac_options *o, const char *key, const char *value,
                           tac_option_source source, const char *where)
{
    char why[TAC__WHY_BYTES];
    tac__option_value v = {0};
    const int i = tac__options_find(o, key);
    if (i < 0) return unknown_key(o, key, source, where);
    const tac_option *row = &o->config.table[i];
    if (!tac__option_parse(row, value, &v, why))
        return bad_value(o, row, value, source, where, why);
    if (source < o->sources[i]) return TAC_OK;
    return store(o, (size_t)i, value, &v, source);
}

static tac_status set_defaults(tac_options *o)
{
    for (size_t i = 0; i < o->count; ++i) {
        const tac_option *row = &o->config.table[i];
        if (tac__options_find(o, row->key) != (int)i)
            return tac_fail(o->ctx, TAC_ERR_CONFIG,
                            "option --%s is twice in %s's table", row->key,
                            o->config.program);
        if (row->def)
            TAC_TRY(tac_options_set(o, row->key, row->def, TAC_SOURCE_DEFAULT,
                                    "default"));
        else if (row->type == TAC_OPT_STR || row->type == TAC_OPT_ENUM)
            write_target(o, row, NULL, NULL);
    }
    return TAC_OK;
}

tac_status tac_options_create(tac_context *ctx,
                              const tac_options_config *config,
                              tac_options **out)
{
    tac_options *o = calloc(1, sizeof *o);
    if (!o) goto fail_memory;
    o->ctx = ctx;
    o->config = *config;
    while (config->table[o->count].key) ++o->count;
    o->sources = calloc(o->count + 1, sizeof *o->sources);
    o->values = calloc(o->count + 1, sizeof *o->values);
    if (!o->sources || !o->values) goto fail_options;
    const tac_status s = set_defaults(o);
    if (s != TAC_OK) {
        tac_options_destroy(o);
        return s;
    }
    *out = o;
    return TAC_OK;

fail_options:
    tac_options_destroy(o);
fail_memory:
    return tac_fail(ctx, TAC_ERR_NOMEM, "out of memory for %s's options",
                    config->program);
}

void tac_options_destroy(tac_options *o)
{
    if (!o) return;
    for (size_t i = 0; o->values && i < o->count; ++i) free(o->values[i]);
    free(o->values);
    free(o->sources);
    free(o);
}

tac_option_source tac_options_source(const tac_options *o, const char *key)
{
    const int i = tac__options_find(o, key);
    return i < 0 ? TAC_SOURCE_DEFAULT : o->sources[i];
}

const char *tac_options_value(const tac_options *o, const char *key)
{
    const int i = tac__options_find(o, key);
    if (i < 0) return NULL;
    return o->values[i] ? o->values[i] : "";
}
