/* experiment_names.c: which experiments a command line names. Names stand
 * before, between or behind the options. */
#include <string.h>
#include <strings.h>

#include "experiment.h"

const experiment *exp_find(const char *name)
{
    for (const experiment *e = exp_experiments; e->name; e++)
        if (strcasecmp(e->name, name) == 0) return e;
    return NULL;
}

int exp_is_wanted(const exp_wanted *w, const experiment *e)
{
    for (size_t k = 0; k < w->n; k++)
        if (w->list[k] == e) return 1;
    return 0;
}

static void want(exp_wanted *w, const experiment *e)
{
    if (!exp_is_wanted(w, e) && w->n < EXP_NAMES) w->list[w->n++] = e;
}

/* Does this word take the next one for its value? An option that is not known
 * does, so that it is what is complained about. */
static int takes_value(const char *word)
{
    static const char *const alone[] = {"--help", "--version", "--print-config",
                                        NULL};
    if (strncmp(word, "--", 2) != 0 || strchr(word, '=')) return 0;
    for (const char *const *a = alone; *a; a++)
        if (strcmp(*a, word) == 0) return 0;
    for (const tac_option *o = exp_option_table; o->key; o++)
        if (strcmp(o->key, word + 2) == 0) return o->type != TAC_OPT_BOOL;
    return strncmp(word, "--no-", 5) != 0;
}

static tac_status take_name(tac_context *ctx, exp_wanted *w, const char *name)
{
    const experiment *e = exp_find(name);
    char names[256] = "";
    if (e) want(w, e);
    if (e) return TAC_OK;
    for (e = exp_experiments; e->name; e++) {
        if (strcasecmp(name, "all") == 0) want(w, e);
        strcat(strcat(names, e->name), ", ");
    }
    if (w->n > 0 && strcasecmp(name, "all") == 0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "there is no experiment %s; there are %sall", name, names);
}

tac_status exp_take_names(tac_context *ctx, int *argc, char **argv,
                          exp_wanted *w)
{
    int kept = 1, value = 0;
    for (int i = 1; i < *argc; i++) {
        if (!value && strncmp(argv[i], "--", 2) != 0) {
            TAC_TRY(take_name(ctx, w, argv[i]));
            continue;
        }
        value = !value && takes_value(argv[i]);
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return TAC_OK;
}
