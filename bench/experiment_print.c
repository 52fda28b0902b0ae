/* experiment_print.c: a report as text for a terminal, or as the Markdown that
 * docs/experiments.md is made of. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "experiment.h"

enum { COLUMNS_MAX = 24, CELL = 96, WIDTH = 80 };

void exp_say(const exp_bench *b, const char *format, ...)
{
    va_list args;
    if (b->o->quiet) return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static const char *get(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static const char *text_at(const json_t *array, size_t i)
{
    const char *s = json_string_value(json_array_get(array, i));
    return s ? s : "";
}

/* One double and nothing else, in a few digits: formats come from files, too.
 */
static int is_format(const char *format)
{
    size_t n = strspn(format, "%+- ");

    if (format[0] != '%' || n > 3 || strchr(format + 1, '%')) return 0;
    for (int digits = 0; digits < 2; digits++) {
        const size_t k = strspn(format + n, "0123456789");

        if (k > 2) return 0;
        n += k;
        if (digits == 0 && format[n] == '.') n++;
    }
    return format[n] && strchr("efg", format[n]) && !format[n + 1];
}

static void cell_text(const json_t *column, const json_t *row, char *out)
{
    const json_t *v = json_object_get(row, get(column, "key"));
    const char *format = json_string_value(json_object_get(column, "format"));
    if (json_is_string(v))
        snprintf(out, CELL, "%s", json_string_value(v));
    else if (json_is_number(v) && format && is_format(format))
        snprintf(out, CELL, format, json_number_value(v));
    else
        snprintf(out, CELL, "-");
}

/* Words of `text`, broken before the 80th column; all lines begin alike. */
static void print_wrapped(FILE *f, const char *first, const char *text)
{
    const int indent = (int)strlen(first);
    int at = indent;
    fputs(first, f);
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (at > indent && at + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            at += fprintf(f, " ");
        }
        at += fprintf(f, "%.*s", n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', f);
}

static void print_table(const json_t *table, FILE *f)
{
    const json_t *columns = json_object_get(table, "columns");
    const json_t *rows = json_object_get(table, "rows");
    size_t width[COLUMNS_MAX] = {0}, n = json_array_size(columns);
    char cell[CELL];
    if (n > COLUMNS_MAX) n = COLUMNS_MAX;
    for (size_t c = 0; c < n; c++) {
        const json_t *column = json_array_get(columns, c);
        width[c] = strlen(get(column, "head"));
        for (size_t i = 0; i < json_array_size(rows); i++) {
            cell_text(column, json_array_get(rows, i), cell);
            if (strlen(cell) > width[c]) width[c] = strlen(cell);
        }
    }
    print_wrapped(f, "  ", get(table, "caption"));
    for (size_t c = 0; c < n; c++)
        fprintf(f, "  %*s", (int)width[c],
                get(json_array_get(columns, c), "head"));
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        for (size_t c = 0; c < n; c++) {
            cell_text(json_array_get(columns, c), json_array_get(rows, i),
                      cell);
            fprintf(f, "  %*s", (int)width[c], cell);
        }
        fputc('\n', f);
    }
    fputc('\n', f);
}

static const char *verdict(const exp_report *r)
{
    return exp_holds(r) ? "the claim holds" : "the claim does not hold";
}

void exp_print_text(const exp_report *r, FILE *f)
{
    const json_t *ran = json_object_get(r->json, "ran");
    const json_t *tables = json_object_get(r->json, "tables");
    const json_t *conditions = json_object_get(r->json, "conditions");
    fprintf(f, "%s: %s\n\n", get(r->json, "experiment"), get(r->json, "title"));
    print_wrapped(f, "  claim  ", get(r->json, "claim"));
    print_wrapped(f, "         ", get(r->json, "source"));
    print_wrapped(f, "  pass   ", get(r->json, "pass"));
    for (size_t i = 0; i < json_array_size(ran); i++)
        print_wrapped(f, i ? "         " : "  ran    ", text_at(ran, i));
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(tables); i++)
        print_table(json_array_get(tables, i), f);
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *c = json_array_get(conditions, i);
        print_wrapped(f,
                      json_is_true(json_object_get(c, "holds")) ? "  yes    "
                                                                : "  NO     ",
                      get(c, "text"));
    }
    fprintf(f, "\n%s: %s, as measured (%.0f s)\n\n", get(r->json, "experiment"),
            verdict(r), json_number_value(json_object_get(r->json, "seconds")));
    fflush(f);
}

static void print_table_markdown(const json_t *table, FILE *f)
{
    const json_t *columns = json_object_get(table, "columns");
    const json_t *rows = json_object_get(table, "rows");
    const size_t n = json_array_size(columns);
    char cell[CELL];
    fprintf(f, "%s\n\n|", get(table, "caption"));
    for (size_t c = 0; c < n; c++)
        fprintf(f, " %s |", get(json_array_get(columns, c), "head"));
    fprintf(f, "\n|");
    for (size_t c = 0; c < n; c++) fprintf(f, "---|");
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        fputc('|', f);
        for (size_t c = 0; c < n; c++) {
            cell_text(json_array_get(columns, c), json_array_get(rows, i),
                      cell);
            fprintf(f, " %s |", cell);
        }
        fputc('\n', f);
    }
    fputc('\n', f);
}

void exp_print_markdown(const exp_report *r, FILE *f)
{
    const json_t *ran = json_object_get(r->json, "ran");
    const json_t *tables = json_object_get(r->json, "tables");
    const json_t *conditions = json_object_get(r->json, "conditions");
    fprintf(f, "## %s: %s\n\n", get(r->json, "experiment"),
            get(r->json, "title"));
    fprintf(f, "```sh\nbuild/bench/localsgd_experiments %s%s\n```\n\n",
            get(r->json, "experiment"),
            json_is_true(json_object_get(r->json, "quick")) ? " --quick" : "");
    fprintf(f, "**Claim.** %s (%s)\n\n", get(r->json, "claim"),
            get(r->json, "source"));
    fprintf(f, "**Passes if** %s\n\n**Ran.**", get(r->json, "pass"));
    for (size_t i = 0; i < json_array_size(ran); i++)
        fprintf(f, " %s", text_at(ran, i));
    fputs("\n\n", f);
    for (size_t i = 0; i < json_array_size(tables); i++)
        print_table_markdown(json_array_get(tables, i), f);
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *c = json_array_get(conditions, i);
        fprintf(f, "- %s: %s\n",
                json_is_true(json_object_get(c, "holds")) ? "yes" : "**no**",
                get(c, "text"));
    }
    fprintf(f, "\n**As measured, %s.**\n\n", verdict(r));
    fflush(f);
}

void exp_print_verdicts(const json_t *all, int markdown, FILE *f)
{
    if (markdown)
        fputs("## Verdicts\n\n| | | the claim, as measured |\n|---|---|---|\n",
              f);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *e = json_array_get(all, i);
        const int holds = json_is_true(json_object_get(e, "holds"));
        fprintf(f, markdown ? "| %s | %s | %s |\n" : "%-4s %-48s %s\n",
                get(e, "experiment"), get(e, "title"),
                holds ? "holds" : "does not hold");
    }
    fflush(f);
}
