/* tacit_info: what this build is, what it finds on this machine, and why it
 * does not find the rest. */
#include "tacit_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_page.h"
#include "tacit/options_ini.h"
#include "tacit/train_config.h"

typedef struct info_options {
    const char *json, *config, *report;
    int quiet;
} info_options;

static const char summary[] =
    "Shows version and build, the machine, the transports, algorithms, devices "
    "and data sets that were found, and why others were not.";

static const char epilogue[] =
    "Exit codes: 0 ok, 1 run-time failure, 2 usage, configuration or data.\n";

#define AT(field) offsetof(info_options, field)

static const tac_option table[] = {
    {"json", TAC_OPT_STR, NULL, NULL, "Write the same as one JSON object.",
     AT(json), 0, 0, "FILE", NULL},
    {"report", TAC_OPT_STR, NULL, NULL,
     "Make report.html of a run folder once more, and show nothing else.",
     AT(report), 0, 0, "DIR", NULL},
    {"quiet", TAC_OPT_BOOL, "false", NULL, "Print nothing but failures.",
     AT(quiet), 0, 0, NULL, NULL},
    {"config", TAC_OPT_STR, NULL, NULL, "Read options from this file.",
     AT(config), 0, 0, "FILE.ini", NULL},
    {0},
};

/* ---- the report ---------------------------------------------------------- */

static void heading(const tac__info *i, const char *text)
{
    if (!i->quiet) printf("\n%s\n", text);
}

void tac__info_begin(tac__info *i, const char *key, const char *text)
{
    heading(i, text);
    tac_json_begin_object(i->json, key);
}

void tac__info_begin_list(tac__info *i, const char *key, const char *text)
{
    heading(i, text);
    tac_json_begin_array(i->json, key);
}

void tac__info_end(tac__info *i)
{
    tac_json_end_object(i->json);
}

void tac__info_end_list(tac__info *i)
{
    tac_json_end_array(i->json);
}

void tac__info_str(tac__info *i, const char *key, const char *value)
{
    tac_json_str(i->json, key, value);
    if (!i->quiet) printf("  %-20s %s\n", key, value ? value : "unknown");
}

void tac__info_int(tac__info *i, const char *key, long long value,
                   const char *unit)
{
    tac_json_i64(i->json, key, value);
    if (!i->quiet)
        printf("  %-20s %lld%s%s\n", key, value, *unit ? " " : "", unit);
}

void tac__info_item(tac__info *i, const char *name, int available,
                    const char *text)
{
    tac_json_begin_object(i->json, NULL);
    tac_json_str(i->json, "name", name);
    tac_json_bool(i->json, "available", available);
    tac_json_str(i->json, available ? "what" : "why_not", text);
    tac_json_end_object(i->json);
    if (!i->quiet)
        printf("  [%c] %-28s %s\n", available ? 'x' : ' ', name, text);
}

/* ---- sections of its own ------------------------------------------------- */

static void show_found(tac__info *i)
{
    const char *at = tac__build.found;

    tac_json_begin_array(i->json, "components");
    while (*at) {
        char line[256];
        const size_t n = strcspn(at, "\n");

        snprintf(line, sizeof line, "%.*s", (int)(n < 255 ? n : 255), at);
        tac_json_str(i->json, NULL, line + strspn(line, " "));
        if (!i->quiet) printf("%s\n", line);
        at += n + (at[n] == '\n');
    }
    tac_json_end_array(i->json);
}

static void show_build(tac__info *i)
{
    if (!i->quiet) printf("tacit %s\n", TAC_VERSION_STRING);
    tac_json_str(i->json, "version", TAC_VERSION_STRING);
    tac__info_begin(i, "build", "build");
    tac__info_str(i, "type", tac__build.type);
    tac__info_str(i, "compiler", tac__build.compiler);
    tac__info_str(i, "flags", tac__build.flags);
    tac__info_int(i, "abi", TAC_ABI, "");
    show_found(i);
    tac__info_end(i);
}

static void show_option(tac__info *i, const tac_option *row, size_t *column)
{
    char text[128];
    const int n = snprintf(text, sizeof text, "--%s%s%s", row->key,
                           row->def ? "=" : "", row->def ? row->def : "");

    tac_json_str(i->json, row->key, row->def);
    if (i->quiet || n < 0) return;
    if (*column + (size_t)n + 2 > 78) {
        printf("\n");
        *column = 0;
    }
    *column += (size_t)printf("  %s", text);
}

static void show_options(tac__info *i)
{
    size_t column = 0;

    tac__info_begin(i, "ddp_train_options",
                    "options of ddp_train and their defaults (ddp_train "
                    "--help explains them; so does bench/comm_bench --help)");
    for (const tac_option *row = tac_train_config_options(); row->key; row++)
        show_option(i, row, &column);
    if (!i->quiet) printf("\n");
    tac__info_end(i);
}

static void show_all(tac__info *i)
{
    tac_json_begin_object(i->json, NULL);
    show_build(i);
    tac__info_machine(i);
    tac__info_memory(i);
    tac__info_transports(i);
    tac__info_algorithms(i);
    tac__info_devices(i);
    tac__info_data(i);
    show_options(i);
    tac_json_end_object(i->json);
}

/* ---- the program --------------------------------------------------------- */

static void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static tac_status make_report(tac_context *ctx, const info_options *o)
{
    TAC_TRY(tac__report_page_write(ctx, o->report));
    if (!o->quiet) printf("%s/report.html\n", o->report);
    return TAC_OK;
}

static tac_status run(const info_options *o)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac__info i = {.json = tac_json_create(), .quiet = o->quiet};
    tac_status s = TAC_OK;

    cc.log = drop_line;
    cc.threads = 1;
    if (!i.json || tac_context_create(&cc, &i.ctx) < 0) {
        tac_json_destroy(i.json);
        return tac_fail(NULL, TAC_ERR_NOMEM, "no memory");
    }
    show_all(&i);
    if (o->json) s = tac_json_write_file(i.json, o->json);
    if (s < 0) s = tac_fail(NULL, s, "cannot write %s: %m", o->json);
    tac_json_destroy(i.json);
    tac_context_destroy(i.ctx);
    return s;
}

static tac_status read_options(tac_context *ctx, tac_options *o, int argc,
                               char **argv, tac_options_action *action)
{
    const char *config = tac_options_peek_argv(argc, argv, "config");

    TAC_TRY(tac_options_read_argv(o, argc, argv, action));
    if (config && *config) return tac_options_read_ini(ctx, o, config);
    return TAC_OK;
}

static int act(const tac_options *o, tac_options_action action)
{
    if (action == TAC_ACTION_RUN) return 0;
    if (action == TAC_ACTION_HELP)
        tac_options_print_help(o, stdout);
    else if (action == TAC_ACTION_VERSION)
        printf("tacit_info (tacit) %s\n", TAC_VERSION_STRING);
    else
        tac_options_print_config(o, stdout);
    return 1;
}

int main(int argc, char **argv)
{
    info_options opt;
    const tac_options_config config = {"tacit_info", summary, epilogue, table,
                                       &opt};
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;
    tac_status s;

    if (tac_context_create(NULL, &ctx) < 0) return 1;
    s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = read_options(ctx, o, argc, argv, &action);
    if (s >= 0 && !act(o, action))
        s = opt.report ? make_report(ctx, &opt) : run(&opt);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    if (s >= 0) return tac_options_end("tacit_info", 0);
    return s == TAC_ERR_CONFIG || s == TAC_ERR_ARG || s == TAC_ERR_DATA ? 2 : 1;
}
