/* options_read.c: options from the environment and the command line. */
#include "options_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 128 };
static const char env_prefix[] = "TACIT_";

/* "TACIT_SYNC_EVERY=8" to "TACIT_SYNC_EVERY" and "sync-every"; 0 if the entry
 * is no TACIT_ variable or its name is too long for any option. */
static int split_variable(const char *entry, char name[NAME_BYTES],
                          char key[NAME_BYTES])
{
    const size_t prefix = sizeof env_prefix - 1;
    const char *equals = strchr(entry, '=');
    const size_t n = equals ? (size_t)(equals - entry) : 0;
    if (n <= prefix || n >= NAME_BYTES) return 0;
    if (strncmp(entry, env_prefix, prefix) != 0) return 0;
    memcpy(name, entry, n);
    name[n] = 0;
    for (size_t i = prefix; i <= n; ++i)
        key[i - prefix] =
            (char)(name[i] == '_' ? '-' : tolower((unsigned char)name[i]));
    return 1;
}

static int is_listed(const char *const *list, const char *name)
{
    for (; list && *list; ++list)
        if (strcmp(*list, name) == 0) return 1;
    return 0;
}

static void warn_unknown(const tac_options *o, const char *name,
                         const char *key)
{
    const char *nearest = tac__options_suggest(o, key);
    if (nearest)
        tac_log(o->ctx, TAC_LOG_WARN,
                "%s is no option of %s and has no effect; the nearest is "
                "--%s",
                name, o->config.program, nearest);
    else
        tac_log(o->ctx, TAC_LOG_WARN,
                "%s is no option of %s and has no effect; unset it", name,
                o->config.program);
}

tac_status tac_options_read_env(tac_options *o, const char *const *ignore)
{
    char name[NAME_BYTES], key[NAME_BYTES], where[NAME_BYTES + 32];
    for (char **entry = environ; entry && *entry; ++entry) {
        if (!split_variable(*entry, name, key)) continue;
        if (tac__options_find(o, key) < 0) {
            if (!is_listed(ignore, name)) warn_unknown(o, name, key);
            continue;
        }
        snprintf(where, sizeof where, "environment variable %s", name);
        TAC_TRY(tac_options_set(o, key, strchr(*entry, '=') + 1, TAC_SOURCE_ENV,
                                where));
    }
    return TAC_OK;
}

/* One argument of the form --name or --name=value. */
typedef struct argument {
    char name[NAME_BYTES];
    const char *value; /* NULL: none attached */
} argument;

static int split_argument(const char *text, argument *a)
{
    if (strncmp(text, "--", 2) != 0 || text[2] == 0) return 0;
    const char *equals = strchr(text + 2, '=');
    const size_t n = equals ? (size_t)(equals - text - 2) : strlen(text + 2);
    if (n == 0 || n >= NAME_BYTES) return 0;
    memcpy(a->name, text + 2, n);
    a->name[n] = 0;
    a->value = equals ? equals + 1 : NULL;
    return 1;
}

/* The row that --no-KEY switches off, or -1. */
static int find_negated(const tac_options *o, const char *name)
{
    if (strncmp(name, "no-", 3) != 0) return -1;
    const int i = tac__options_find(o, name + 3);
    return i >= 0 && o->config.table[i].type == TAC_OPT_BOOL ? i : -1;
}

/* The value of a switch: attached, or a following word such as "off", or true
 * alone. */
static const char *switch_value(const argument *a, const char *next, int *used)
{
    int ignored;
    if (a->value) return a->value;
    if (!next || !tac__option_parse_bool(next, &ignored)) return "true";
    *used = 2;
    return next;
}

static tac_status read_negated(tac_options *o, int row, const argument *a)
{
    const char *key = o->config.table[row].key;
    if (a->value)
        return tac_fail(o->ctx, TAC_ERR_CONFIG,
                        "--no-%s takes no value; write --%s=%s", key, key,
                        a->value);
    return tac_options_set(o, key, "false", TAC_SOURCE_CLI, NULL);
}

static tac_status missing_value(tac_options *o, const tac_option *row)
{
    return tac_fail(o->ctx, TAC_ERR_CONFIG,
                    "--%s needs a value%s%s; write --%s VALUE or --%s=VALUE",
                    row->key, row->choices ? ": " : "",
                    row->choices ? row->choices : "", row->key, row->key);
}

/* Reads the option at args[0]; *used becomes the number of arguments taken. */
static tac_status read_option(tac_options *o, const argument *a,
                              const char *next, int *used)
{
    const int i = tac__options_find(o, a->name);
    const int negated = i < 0 ? find_negated(o, a->name) : -1;
    const char *value = a->value;
    *used = 1;
    if (negated >= 0) return read_negated(o, negated, a);
    if (i >= 0 && o->config.table[i].type == TAC_OPT_BOOL)
        value = switch_value(a, next, used);
    else if (i >= 0 && !value) {
        if (!next || strncmp(next, "--", 2) == 0)
            return missing_value(o, &o->config.table[i]);
        value = next;
        *used = 2;
    }
    return tac_options_set(o, a->name, value ? value : "", TAC_SOURCE_CLI,
                           NULL);
}

static tac_status no_option(tac_options *o, const char *text)
{
    return tac_fail(o->ctx, TAC_ERR_CONFIG,
                    "argument \"%s\" is no option; options are written --key "
                    "value, see --help",
                    text);
}

static int asks_for(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], option) == 0) return 1;
    return 0;
}

tac_status tac_options_read_argv(tac_options *o, int argc, char **argv,
                                 tac_options_action *action)
{
    tac_options_action wanted = TAC_ACTION_RUN;
    if (asks_for(argc, argv, "--help") || asks_for(argc, argv, "-h")) {
        *action = TAC_ACTION_HELP;
        return TAC_OK;
    }
    if (asks_for(argc, argv, "--version")) {
        *action = TAC_ACTION_VERSION;
        return TAC_OK;
    }
    for (int i = 1, used = 1; i < argc; i += used) {
        argument a;
        if (!split_argument(argv[i], &a)) return no_option(o, argv[i]);
        used = 1;
        if (strcmp(argv[i], "--print-config") == 0)
            wanted = TAC_ACTION_PRINT_CONFIG;
        else
            TAC_TRY(
                read_option(o, &a, i + 1 < argc ? argv[i + 1] : NULL, &used));
    }
    *action = wanted;
    return TAC_OK;
}

const char *tac_options_peek_argv(int argc, char **argv, const char *key)
{
    const char *found = NULL;
    for (int i = 1; i < argc; ++i) {
        argument a;
        if (!split_argument(argv[i], &a) || strcmp(a.name, key) != 0) continue;
        if (a.value)
            found = a.value;
        else if (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
            found = argv[++i];
    }
    return found;
}
