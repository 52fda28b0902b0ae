/* options_print.c: --help, --print-config and the options as JSON. */
#include "options_impl.h"

#include <stdarg.h>
#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 28, DESCRIPTION_BYTES = 1024 };
#define HARD_SPACE "\x1f" /* printed as a space where no line may break */

/* Prints words from column `column` on, breaking lines before WIDTH and
 * starting them at `indent`. Returns the column reached. */
static size_t print_words(FILE *f, const char *text, size_t column,
                          size_t indent)
{
    int first = 1;
    for (;;) {
        text += strspn(text, " \n");
        const size_t n = strcspn(text, " \n");
        if (n == 0) return column;
        if (!first && column + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', f);
            ++column;
        }
        column += n;
        for (const char *end = text + n; text < end; ++text)
            fputc(*text == HARD_SPACE[0] ? ' ' : *text, f);
        first = 0;
    }
}

typedef struct text_buffer {
    char text[DESCRIPTION_BYTES];
    size_t used;
} text_buffer;

TAC_PRINTF(2, 3)
static void add(text_buffer *b, const char *fmt, ...)
{
    const size_t room = sizeof b->text - b->used;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(b->text + b->used, room, fmt, args);
    va_end(args);
    if (n > 0) b->used += (size_t)n < room ? (size_t)n : room - 1;
}

static const char *value_form(const tac_option *row)
{
    switch (row->type) {
    case TAC_OPT_BOOL: return "";
    case TAC_OPT_INT: return " N";
    case TAC_OPT_F64: return " X";
    case TAC_OPT_SIZE: return " SIZE";
    case TAC_OPT_ENUM: return " NAME";
    case TAC_OPT_STR: return row->choices ? " " : " TEXT";
    }
    return "";
}

static void describe_option(const tac_option *row, text_buffer *b)
{
    const int flag = row->type == TAC_OPT_BOOL;
    const char *form = row->type == TAC_OPT_STR ? row->choices : NULL;
    add(b, "  --%s%s%s%s", flag ? "[no-]" : "", row->key, value_form(row),
        form ? form : "");
}

/* "(unit; 1 to 64; one of: a, b; default 8)" */
static void describe_value(const tac_option *row, text_buffer *b)
{
    char range[96], choices[DESCRIPTION_BYTES / 2];
    const char *gap = "";
    tac__option_range(row, range, sizeof range);
    add(b, " (");
    if (row->unit) {
        add(b, "%s", row->unit);
        gap = "; ";
    }
    if (range[0]) {
        add(b, "%s%s", gap, range);
        gap = "; ";
    }
    if (row->type == TAC_OPT_F64 && row->choices) {
        add(b, "%sor %s", gap, row->choices);
        gap = "; ";
    }
    if (row->type == TAC_OPT_ENUM) {
        tac__option_choices(row, choices, sizeof choices);
        add(b, "%s%s", gap, choices);
        gap = "; ";
    }
    if (row->def && row->def[0])
        add(b, "%sdefault" HARD_SPACE "%s)", gap, row->def);
    else
        add(b, "%sno" HARD_SPACE "default)", gap);
}

static void print_row(FILE *f, const char *left, const char *right)
{
    const size_t n = strlen(left);
    fputs(left, f);
    if (n + 2 > HELP_COLUMN)
        fprintf(f, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(f, "%*s", HELP_COLUMN - (int)n, "");
    print_words(f, right, HELP_COLUMN, HELP_COLUMN);
    fputc('\n', f);
}

static void print_option_help(FILE *f, const tac_option *row)
{
    text_buffer left = {{0}, 0}, right = {{0}, 0};
    describe_option(row, &left);
    add(&right, "%s", row->help ? row->help : "");
    describe_value(row, &right);
    print_row(f, left.text, right.text);
}

void tac_options_print_help(const tac_options *o, FILE *f)
{
    fprintf(f, "Usage: %s [OPTION]...\n\n", o->config.program);
    if (o->config.summary) {
        print_words(f, o->config.summary, 0, 0);
        fputc('\n', f);
    }
    for (size_t i = 0; i < o->count; ++i) {
        const tac_option *row = &o->config.table[i];
        if (row->group || i == 0)
            fprintf(f, "\n%s:\n", row->group ? row->group : "Options");
        print_option_help(f, row);
    }
    fprintf(f, "\nInformation:\n");
    print_row(f, "  --help, -h", "Print this text.");
    print_row(f, "  --version", "Print the version.");
    print_row(f, "  --print-config",
              "Print the value of each option and where it comes from; the "
              "output can be used as a configuration file.");
    if (o->config.epilogue) fprintf(f, "\n%s\n", o->config.epilogue);
}

static const char *source_name(tac_option_source source)
{
    switch (source) {
    case TAC_SOURCE_DEFAULT: return "default";
    case TAC_SOURCE_FILE: return "file";
    case TAC_SOURCE_ENV: return "environment";
    case TAC_SOURCE_CLI: return "command line";
    }
    return "?";
}

/* INI readers take "; " after white space for a comment; "#" at the beginning
 * of a line only. */
void tac_options_print_config(const tac_options *o, FILE *f)
{
    for (size_t i = 0; i < o->count; ++i) {
        const tac_option *row = &o->config.table[i];
        if (row->group) fprintf(f, "%s# %s\n", i > 0 ? "\n" : "", row->group);
        if (!o->values[i]) {
            fprintf(f, "# %s is unset\n", row->key);
            continue;
        }
        const int n = fprintf(f, "%s = %s", row->key, o->values[i]);
        const int gap = n < 0 || n >= 37 ? 2 : 39 - n;
        fprintf(f, "%*s; %s\n", gap, "", source_name(o->sources[i]));
    }
}

void tac_options_to_json(const tac_options *o, tac_json *j, const char *key)
{
    tac_json_begin_object(j, key);
    for (size_t i = 0; i < o->count; ++i)
        tac_json_str(j, o->config.table[i].key, o->values[i]);
    tac_json_end_object(j);
}

int tac_options_end(const char *program, int code)
{
    const int failed = fflush(stdout) != 0 || ferror(stdout);

    if (!failed || code != 0) return code;
    fprintf(stderr, "%s: what was printed could not be written: %m\n", program);
    return 1;
}
