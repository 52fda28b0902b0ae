/* base_options.c: the option table: values, precedence, messages, printing. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options_impl.h"
#include "tac_json_check.h"
#include "tacit/options.h"

typedef struct target {
    int deterministic, verbose;
    int64_t batch, offset;
    double lr, clip, unset, rate;
    uint64_t bucket, small;
    const char *data, *json, *model;
} target;

#define AT(field) offsetof(target, field)
static const tac_option table[] = {
    {"batch", TAC_OPT_INT, "32", "images", "Images a rank and step.", AT(batch),
     1, 4096, NULL, "Training"},
    {"offset", TAC_OPT_INT, "-3", NULL, "Any number.", AT(offset), 0, 0, NULL,
     NULL},
    {"lr", TAC_OPT_F64, "0.01", NULL, "Learning rate.", AT(lr), 0, 10, NULL,
     NULL},
    {"clip-norm", TAC_OPT_F64, "inf", NULL,
     "Largest norm of the gradient; a longer explanation follows here so that "
     "the text must be wrapped over more than one line of the help.",
     AT(clip), 0, INFINITY, NULL, NULL},
    {"rate", TAC_OPT_F64, "auto", NULL, "Depends on others.", AT(rate), 0, 2,
     "auto", NULL},
    {"unset-number", TAC_OPT_F64, NULL, NULL, "Has no default.", AT(unset), 0,
     0, NULL, NULL},
    {"deterministic", TAC_OPT_BOOL, "false", NULL, "Same bits.",
     AT(deterministic), 0, 0, NULL, NULL},
    {"verbose", TAC_OPT_BOOL, "yes", NULL, "Say more.", AT(verbose), 0, 0, NULL,
     NULL},
    {"bucket-size", TAC_OPT_SIZE, "25M", "bytes", "Size of a bucket.",
     AT(bucket), 1, 1073741824, NULL, "Communication"},
    {"small", TAC_OPT_SIZE, "0", NULL, "Any size.", AT(small), 0, 0, NULL,
     NULL},
    {"model", TAC_OPT_ENUM, "cnn", NULL, "Architecture.", AT(model), 0, 0,
     "mlp|cnn|resnet20", "Files"},
    {"data", TAC_OPT_STR, "synth", NULL, "Where the data is.", AT(data), 0, 0,
     "fashion-mnist|idx:DIR|synth", NULL},
    {"json", TAC_OPT_STR, NULL, NULL, "Summary file.", AT(json), 0, 0, NULL,
     NULL},
    {NULL, TAC_OPT_BOOL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL},
};

typedef struct fixture {
    tac_context *ctx;
    tac_options *o;
    target t;
    int warnings;
    char warning[1024];
} fixture;

static void keep_warning(void *arg, tac_log_level level, const char *line)
{
    fixture *f = arg;
    if (level != TAC_LOG_WARN) return;
    ++f->warnings;
    snprintf(f->warning, sizeof f->warning, "%s", line);
}

static void setup(fixture *f)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    const tac_options_config options = {"ddp_train", "Trains a model.",
                                        "Exit codes: 0 ok.", table, &f->t};
    memset(f, 0xa5, sizeof *f);
    f->t.unset = 17;
    f->warnings = 0;
    config.log = keep_warning;
    config.log_arg = f;
    cr_assert_eq(tac_context_create(&config, &f->ctx), TAC_OK);
    cr_assert_eq(tac_options_create(f->ctx, &options, &f->o), TAC_OK);
}

static void teardown(fixture *f)
{
    tac_options_destroy(f->o);
    tac_context_destroy(f->ctx);
}

static const char *message(const fixture *f)
{
    static char text[4096];
    tac_context_error(f->ctx, text, sizeof text);
    return text;
}

static tac_status parse(fixture *f, int argc, const char *const *args,
                        tac_options_action *action)
{
    return tac_options_read_argv(f->o, argc, (char **)args, action);
}

#define ARGV(...)                                                          \
    (int)(sizeof((const char *[]){"prog", __VA_ARGS__}) / sizeof(char *)), \
        (const char *[])                                                   \
    {                                                                      \
        "prog", __VA_ARGS__                                                \
    }

static void expect_ok(fixture *f, int argc, const char *const *args)
{
    tac_options_action action = TAC_ACTION_HELP;
    const tac_status s = parse(f, argc, args, &action);
    cr_assert(s == TAC_OK, "%s", message(f));
    cr_assert_eq(action, TAC_ACTION_RUN);
}

static void expect_bad(fixture *f, int argc, const char *const *args,
                       const char *says)
{
    tac_options_action action = TAC_ACTION_VERSION;
    cr_assert_eq(parse(f, argc, args, &action), TAC_ERR_CONFIG, "%s", args[1]);
    cr_assert_eq(action, TAC_ACTION_VERSION, "written on failure");
    cr_assert(strstr(message(f), says), "\"%s\" lacks \"%s\"", message(f),
              says);
}

Test(options, defaults)
{
    fixture f;
    setup(&f);
    cr_assert_eq(f.t.batch, 32);
    cr_assert_eq(f.t.offset, -3);
    cr_assert_float_eq(f.t.lr, 0.01, 0);
    cr_assert(isinf(f.t.clip));
    cr_assert_float_eq(f.t.unset, 17, 0, "an unset number was written");
    cr_assert_eq(f.t.deterministic, 0);
    cr_assert_eq(f.t.verbose, 1);
    cr_assert_eq(f.t.bucket, 25 << 20);
    cr_assert_str_eq(f.t.model, "cnn");
    cr_assert_str_eq(f.t.data, "synth");
    cr_assert_null(f.t.json);
    cr_assert_str_eq(tac_options_value(f.o, "json"), "");
    cr_assert_str_eq(tac_options_value(f.o, "verbose"), "true");
    cr_assert_null(tac_options_value(f.o, "nonsense"));
    teardown(&f);
    tac_options_destroy(NULL);
}

Test(options, every_type_in_both_forms)
{
    fixture f;
    setup(&f);
    expect_ok(&f, ARGV("--batch", "7", "--offset=-9", "--lr", "1e-3",
                       "--clip-norm=0x1p3", "--deterministic", "--no-verbose",
                       "--bucket-size=1MiB", "--model", "resnet20",
                       "--data=a=b", "--json", "-"));
    cr_assert_eq(f.t.batch, 7);
    cr_assert_eq(f.t.offset, -9);
    cr_assert_float_eq(f.t.lr, 1e-3, 0);
    cr_assert_float_eq(f.t.clip, 8, 0);
    cr_assert_eq(f.t.deterministic, 1);
    cr_assert_eq(f.t.verbose, 0);
    cr_assert_eq(f.t.bucket, 1 << 20);
    cr_assert_str_eq(f.t.model, "resnet20");
    cr_assert_str_eq(f.t.data, "a=b");
    cr_assert_str_eq(f.t.json, "-");
    cr_assert_eq(tac_options_source(f.o, "lr"), TAC_SOURCE_CLI);
    cr_assert_eq(tac_options_source(f.o, "small"), TAC_SOURCE_DEFAULT);
    expect_ok(&f, ARGV("--offset", "-1", "--json="));
    cr_assert_eq(f.t.offset, -1);
    cr_assert_str_eq(f.t.json, "");
    teardown(&f);
}

Test(options, switches)
{
    static const char *const yes[] = {"true", "yes", "on", "1", "TRUE", "On"};
    static const char *const no[] = {"false", "no", "off", "0", "No"};
    fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; ++i) {
        f.t.deterministic = 9;
        expect_ok(&f, ARGV("--deterministic", yes[i], "--batch", "2"));
        cr_assert_eq(f.t.deterministic, 1);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; ++i) {
        f.t.deterministic = 9;
        cr_assert_eq(
            tac_options_set(f.o, "deterministic", no[i], TAC_SOURCE_CLI, NULL),
            TAC_OK);
        cr_assert_eq(f.t.deterministic, 0);
    }
    expect_bad(&f, ARGV("--deterministic=maybe"), "accepted: true, false");
    expect_bad(&f, ARGV("--no-verbose=1"), "--verbose=1");
    expect_bad(&f, ARGV("--no-batch", "3"), "unknown option --no-batch");
    teardown(&f);
}

Test(options, sizes)
{
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"1k", 1024},
        {"1K", 1024},
        {"3KB", 3072},
        {"3KiB", 3072},
        {"2m", 2 << 20},
        {"1.5M", 3 << 19},
        {"0.5 GiB", 1 << 29},
        {" 7B ", 7},
        {"1T", UINT64_C(1) << 40},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", UINT64_C(16777215) << 40},
    };
    static const char *const bad[] = {"",     "M",   "-1",  "1X",
                                      "1KiX", "1MM", "1.3", "0x10",
                                      "1e3",  "1 2", "nan", "1.5.2"};
    fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        f.t.small = 12345;
        expect_ok(&f, ARGV("--small", good[i].text));
        cr_assert(f.t.small == good[i].want, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        const uint64_t before = f.t.small;
        expect_bad(&f, ARGV("--small", bad[i]), "not a size in whole bytes");
        cr_assert_eq(f.t.small, before);
    }
    expect_bad(&f, ARGV("--small", "18446744073709551616"), "out of range");
    expect_bad(&f, ARGV("--small", "16777216T"), "out of range");
    expect_bad(&f, ARGV("--bucket-size", "2G"), "accepted: 1 to 1G bytes");
    teardown(&f);
}

Test(options, numbers_must_be_complete_and_in_range)
{
    fixture f;
    setup(&f);
    expect_bad(&f, ARGV("--batch", "0"),
               "--batch \"0\": out of range; accepted: 1 to 4096 images");
    expect_bad(&f, ARGV("--batch", "4097"), "1 to 4096");
    expect_bad(&f, ARGV("--batch", "3x"), "not a whole number");
    expect_bad(&f, ARGV("--batch", "3.0"), "not a whole number");
    expect_bad(&f, ARGV("--batch", ""), "not a whole number");
    expect_bad(&f, ARGV("--batch", "99999999999999999999"), "out of range");
    expect_bad(&f, ARGV("--offset", "99999999999999999999"), "64 bits");
    expect_bad(&f, ARGV("--lr", "fast"), "not a number");
    expect_bad(&f, ARGV("--lr", "nan"), "not a number");
    expect_bad(&f, ARGV("--lr", "inf"), "0 to 10");
    expect_bad(&f, ARGV("--lr=-0.1"), "0 to 10");
    expect_bad(&f, ARGV("--clip-norm", "-1"), "at least 0");
    expect_bad(&f, ARGV("--unset-number", "inf"), "out of range");
    expect_ok(&f, ARGV("--batch", "4096", "--lr", "10", "--clip-norm", "inf"));
    expect_ok(&f, ARGV("--batch", " 1 ", "--lr", "0"));
    cr_assert_str_eq(tac_options_value(f.o, "batch"), "1");
    teardown(&f);
}

Test(options, numbers_that_may_be_auto)
{
    fixture f;
    setup(&f);
    cr_assert(isnan(f.t.rate));
    cr_assert_str_eq(tac_options_value(f.o, "rate"), "auto");
    expect_ok(&f, ARGV("--rate", "0.5"));
    cr_assert_float_eq(f.t.rate, 0.5, 0);
    expect_bad(&f, ARGV("--rate", "automatic"),
               "not a number; accepted: auto, or 0 to 2");
    expect_bad(&f, ARGV("--rate", "aut"), "not a number");
    expect_bad(&f, ARGV("--rate", ""), "not a number");
    expect_bad(&f, ARGV("--rate", "nan"), "not a number");
    expect_bad(&f, ARGV("--rate", "3"), "out of range");
    expect_bad(&f, ARGV("--lr", "auto"), "not a number");
    cr_assert_float_eq(f.t.rate, 0.5, 0);
    expect_ok(&f, ARGV("--rate", " auto "));
    cr_assert(isnan(f.t.rate));
    cr_assert_str_eq(tac_options_value(f.o, "rate"), "auto");
    teardown(&f);
}

Test(options, choices)
{
    fixture f;
    setup(&f);
    expect_bad(&f, ARGV("--model", "cn"), "accepted: mlp, cnn, resnet20");
    expect_bad(&f, ARGV("--model", "mlp|cnn"), "accepted");
    expect_bad(&f, ARGV("--model="), "accepted");
    expect_ok(&f, ARGV("--model", "mlp"));
    expect_ok(&f, ARGV("--data", "anything"));
    teardown(&f);
}

Test(options, unknown_keys_name_the_nearest)
{
    fixture f;
    setup(&f);
    expect_bad(&f, ARGV("--bathc", "3"),
               "unknown option --bathc; did you mean --batch?");
    expect_bad(&f, ARGV("--bucket"), "--bucket-size?");
    expect_bad(&f, ARGV("--hlep"), "did you mean --help?");
    expect_bad(&f, ARGV("--print-confg"), "--print-config?");
    expect_bad(&f, ARGV("--zzzzzz"), "--help lists all of them");
    expect_bad(&f, ARGV("--"), "is no option");
    expect_bad(&f, ARGV("-b"), "is no option");
    expect_bad(&f, ARGV("--batch", "3", "left-over"), "\"left-over\"");
    expect_bad(&f, ARGV("--batch"), "--batch needs a value");
    expect_bad(&f, ARGV("--batch", "--lr"), "--batch needs a value");
    cr_assert_eq(tac_options_set(f.o, "bucket_siez", "1", TAC_SOURCE_FILE,
                                 "line 3 of run.ini"),
                 TAC_ERR_CONFIG);
    cr_assert_str_eq(message(&f), "line 3 of run.ini: unknown option "
                                  "bucket_siez; did you mean bucket-size?");
    teardown(&f);
}

Test(options, edit_distance)
{
    cr_assert_eq(tac__edit_distance("", ""), 0);
    cr_assert_eq(tac__edit_distance("", "abc"), 3);
    cr_assert_eq(tac__edit_distance("abc", "abc"), 0);
    cr_assert_eq(tac__edit_distance("abc", "acb"), 1);
    cr_assert_eq(tac__edit_distance("kitten", "sitting"), 3);
    cr_assert_eq(tac__edit_distance("sync-evry", "sync-every"), 1);
    char longer[300];
    memset(longer, 'x', sizeof longer - 1);
    longer[299] = 0;
    cr_assert_eq(tac__edit_distance(longer, longer), 0);
}

/* Whatever the order of reading. */
Test(options, precedence)
{
    fixture f;
    setup(&f);
    cr_assert_eq(tac_options_set(f.o, "batch", "5", TAC_SOURCE_ENV, NULL),
                 TAC_OK);
    cr_assert_eq(tac_options_set(f.o, "batch", "6", TAC_SOURCE_FILE, NULL),
                 TAC_OK);
    cr_assert_eq(f.t.batch, 5);
    cr_assert_eq(tac_options_source(f.o, "batch"), TAC_SOURCE_ENV);
    expect_ok(&f, ARGV("--batch", "8", "--batch=9"));
    cr_assert_eq(f.t.batch, 9, "the last one on the line wins");
    cr_assert_eq(tac_options_set(f.o, "batch", "5", TAC_SOURCE_ENV, NULL),
                 TAC_OK);
    cr_assert_eq(f.t.batch, 9);
    cr_assert_eq(tac_options_source(f.o, "batch"), TAC_SOURCE_CLI);
    cr_assert_eq(tac_options_set(f.o, "batch", "0", TAC_SOURCE_FILE, "x.ini"),
                 TAC_ERR_CONFIG, "hidden values are checked as well");
    cr_assert_eq(f.t.batch, 9);
    teardown(&f);
}

Test(options, environment)
{
    const char *const ignore[] = {"TACIT_ISA", NULL};
    fixture f;
    setup(&f);
    setenv("TACIT_BUCKET_SIZE", "2M", 1);
    setenv("TACIT_DETERMINISTIC", "on", 1);
    setenv("TACIT_ISA", "ref", 1);
    cr_assert_eq(tac_options_read_env(f.o, ignore), TAC_OK);
    cr_assert_eq(f.warnings, 0, "%s", f.warning);
    cr_assert_eq(f.t.bucket, 2 << 20);
    cr_assert_eq(f.t.deterministic, 1);
    cr_assert_eq(tac_options_source(f.o, "bucket-size"), TAC_SOURCE_ENV);
    cr_assert_eq(tac_options_read_env(f.o, NULL), TAC_OK);
    cr_assert_eq(f.warnings, 1);
    cr_assert_not_null(strstr(f.warning, "TACIT_ISA"));
    setenv("TACIT_BATHC", "1", 1);
    cr_assert_eq(tac_options_read_env(f.o, ignore), TAC_OK);
    cr_assert_not_null(strstr(f.warning, "the nearest is --batch"));
    setenv("TACIT_BATCH", "none", 1);
    cr_assert_eq(tac_options_read_env(f.o, ignore), TAC_ERR_CONFIG);
    cr_assert_eq(strncmp(message(&f), "environment variable TACIT_BATCH: ", 34),
                 0);
    teardown(&f);
}

Test(options, actions)
{
    fixture f;
    tac_options_action a = TAC_ACTION_RUN;
    setup(&f);
    cr_assert_eq(parse(&f, ARGV("--wrong", "--help"), &a), TAC_OK);
    cr_assert_eq(a, TAC_ACTION_HELP);
    cr_assert_eq(parse(&f, ARGV("--version"), &a), TAC_OK);
    cr_assert_eq(a, TAC_ACTION_VERSION);
    cr_assert_eq(parse(&f, ARGV("--print-config", "--batch", "3"), &a), TAC_OK);
    cr_assert_eq(a, TAC_ACTION_PRINT_CONFIG);
    cr_assert_eq(f.t.batch, 3);
    expect_bad(&f, ARGV("--print-config", "--batch", "0"), "out of range");
    cr_assert_eq(tac_options_read_argv(f.o, 0, NULL, &a), TAC_OK);
    cr_assert_eq(a, TAC_ACTION_RUN);
    teardown(&f);
}

static const char *peek(int argc, const char *const *args, const char *key)
{
    return tac_options_peek_argv(argc, (char **)args, key);
}

Test(options, peek)
{
    cr_assert_str_eq(peek(ARGV("--config", "a.ini"), "config"), "a.ini");
    cr_assert_str_eq(peek(ARGV("--x", "--config=b"), "config"), "b");
    cr_assert_str_eq(peek(ARGV("--config=a", "--config", "c"), "config"), "c");
    cr_assert_null(peek(ARGV("--config"), "config"));
    cr_assert_null(peek(ARGV("--configs=1", "config"), "config"));
}

static void capture(void (*print)(const tac_options *, FILE *),
                    const tac_options *o, char *text, size_t bytes)
{
    FILE *f = tmpfile();
    cr_assert_not_null(f);
    print(o, f);
    rewind(f);
    const size_t n = fread(text, 1, bytes - 1, f);
    text[n] = 0;
    cr_assert(n > 0 && n < bytes - 1);
    fclose(f);
}

Test(options, help_fits_and_tells_all)
{
    static const char *const parts[] = {
        "Usage: ddp_train [OPTION]...",
        "Trains a model.",
        "\nTraining:\n",
        "\nCommunication:\n",
        "  --batch N                 Images a rank and step. (images; 1 to "
        "4096;"
        "\n                            default 32)\n",
        "  --[no-]deterministic      Same bits. (default false)\n",
        "  --bucket-size SIZE        Size of a bucket. (bytes; 1 to 1G; "
        "default 25M)\n",
        "  --model NAME              Architecture. (mlp, cnn, resnet20; "
        "default "
        "cnn)\n",
        "  --data fashion-mnist|idx:DIR|synth\n                            "
        "Where the data is. (default synth)\n",
        "  --json TEXT               Summary file. (no default)\n",
        "  --rate X                  Depends on others. (0 to 2; or auto; "
        "default auto)\n",
        "help. (at least 0;\n                            default inf)\n",
        "--print-config",
        "\nExit codes: 0 ok.\n",
    };
    static char text[16384];
    fixture f;
    setup(&f);
    capture(tac_options_print_help, f.o, text, sizeof text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        cr_assert(strstr(text, parts[i]), "no \"%s\" in\n%s", parts[i], text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        cr_assert(strlen(line) <= 80, "%s", line);
    teardown(&f);
}

/* Reads lines as an INI reader does: comments begin with '#' at the start of a
 * line, or with ';' after white space. */
static void read_back(tac_options *o, char *text)
{
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); line;
         line = strtok_r(NULL, "\n", &state)) {
        char *comment = strstr(line, " ;"), *equals = strstr(line, " = ");
        if (line[0] == '#') continue;
        cr_assert(equals, "%s", line);
        if (comment) *comment = 0;
        *equals = 0;
        char *value = equals + 3;
        size_t n = strlen(value);
        while (n > 0 && value[n - 1] == ' ') value[--n] = 0;
        cr_assert_eq(tac_options_set(o, line, value, TAC_SOURCE_FILE, NULL),
                     TAC_OK);
    }
}

Test(options, printed_config_reads_back)
{
    static char text[8192], again[8192];
    fixture a, b;
    setup(&a);
    setup(&b);
    expect_ok(&a, ARGV("--batch", "17", "--lr", "0.1", "--bucket-size", "3MiB",
                       "--no-verbose", "--data", "idx:/a b/c#d", "--model",
                       "mlp", "--clip-norm", "2.5"));
    cr_assert_eq(tac_options_set(a.o, "small", "9K", TAC_SOURCE_ENV, NULL),
                 TAC_OK);
    capture(tac_options_print_config, a.o, text, sizeof text);
    cr_assert(strstr(text, "batch = 17 "), "%s", text);
    cr_assert(strstr(text, "; command line\n"), "%s", text);
    cr_assert(strstr(text, "; environment\n"), "%s", text);
    cr_assert(strstr(text, "; default\n"), "%s", text);
    cr_assert(strstr(text, "# json is unset\n"), "%s", text);
    read_back(b.o, text);
    for (const tac_option *row = table; row->key; ++row)
        cr_assert_str_eq(tac_options_value(a.o, row->key),
                         tac_options_value(b.o, row->key));
    cr_assert_eq(b.t.batch, 17);
    cr_assert_eq(b.t.small, 9 << 10);
    cr_assert_str_eq(b.t.data, "idx:/a b/c#d");
    cr_assert_null(b.t.json);
    capture(tac_options_print_config, b.o, again, sizeof again);
    cr_assert_not_null(strstr(again, "; file\n"));
    teardown(&a);
    teardown(&b);
}

Test(options, json)
{
    fixture f;
    setup(&f);
    tac_json *j = tac_json_create();
    tac_options_to_json(f.o, j, NULL);
    const char *text = tac_json_text(j, NULL);
    cr_assert(tac_json_is_valid(text));
    cr_assert_not_null(strstr(text, "\"batch\":\"32\""));
    cr_assert_not_null(strstr(text, "\"json\":null"));
    tac_json_destroy(j);
    teardown(&f);
}

Test(options, bad_tables_are_named)
{
    static const tac_option wrong_default[] = {
        {"steps", TAC_OPT_INT, "many", NULL, "x", 0, 0, 0, NULL, NULL},
        {NULL, TAC_OPT_BOOL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL}};
    static const tac_option twice[] = {
        {"steps", TAC_OPT_INT, "1", NULL, "x", 0, 0, 0, NULL, NULL},
        {"steps", TAC_OPT_INT, "1", NULL, "x", 0, 0, 0, NULL, NULL},
        {NULL, TAC_OPT_BOOL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL}};
    fixture f;
    int64_t steps;
    tac_options *o = NULL;
    setup(&f);
    tac_options_config config = {"p", NULL, NULL, wrong_default, &steps};
    cr_assert_eq(tac_options_create(f.ctx, &config, &o), TAC_ERR_CONFIG);
    cr_assert_not_null(strstr(message(&f), "steps \"many\""));
    config.table = twice;
    cr_assert_eq(tac_options_create(f.ctx, &config, &o), TAC_ERR_CONFIG);
    cr_assert_not_null(strstr(message(&f), "steps is twice"));
    teardown(&f);
}
