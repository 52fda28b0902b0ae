/* experiment_report.c: what an experiment found, as one JSON object.
 *
 *   {experiment, title, claim, source, pass, quick, seeds, seconds,
 *    ran: [text], tables: [{caption, columns: [{key, head, format}],
 *    rows: [{key: value}]}], conditions: [{text, holds}], holds}
 *
 * Text and Markdown are printed from it, so that none of the three can say
 * something else. Running out of memory leaves values out, and is found when
 * the object is written. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiment.h"

static json_t *text_of(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) return NULL;
    json_t *s = json_string(text);
    free(text);
    return s;
}

tac_status exp_report_begin(exp_report *r, const exp_bench *b,
                            const experiment *e)
{
    *r = (exp_report){0};
    r->json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:[], s:[], s:[]}",
                        "experiment", e->name, "title", e->title, "claim",
                        e->claim, "source", e->source, "pass", e->pass, "quick",
                        b->o->quick, "seeds", (json_int_t)exp_seeds(b), "ran",
                        "tables", "conditions");
    if (r->json) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for a report");
}

void exp_report_end(exp_report *r, double seconds)
{
    json_object_set_new(r->json, "holds", json_boolean(exp_holds(r)));
    json_object_set_new(r->json, "seconds", json_real(seconds));
}

void exp_report_seeds(exp_report *r, int64_t seeds)
{
    json_object_set_new(r->json, "seeds", json_integer(seeds));
}

void exp_report_free(exp_report *r)
{
    json_decref(r->json);
    *r = (exp_report){0};
}

void exp_ran(exp_report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_array_append_new(json_object_get(r->json, "ran"),
                          text_of(format, args));
    va_end(args);
}

void exp_table(exp_report *r, const char *format, ...)
{
    va_list args;
    json_t *table = json_object();
    va_start(args, format);
    json_object_set_new(table, "caption", text_of(format, args));
    va_end(args);
    r->columns = json_array();
    r->rows = json_array();
    r->row = NULL;
    json_object_set_new(table, "columns", r->columns);
    json_object_set_new(table, "rows", r->rows);
    json_array_append_new(json_object_get(r->json, "tables"), table);
}

void exp_column(exp_report *r, const char *key, const char *head,
                const char *format)
{
    json_array_append_new(r->columns,
                          json_pack("{s:s, s:s, s:s?}", "key", key, "head",
                                    head, "format", format));
}

void exp_row(exp_report *r)
{
    r->row = json_object();
    r->column = 0;
    json_array_append_new(r->rows, r->row);
}

static void put(exp_report *r, json_t *value)
{
    const json_t *column = json_array_get(r->columns, r->column++);
    const char *key = json_string_value(json_object_get(column, "key"));
    json_object_set_new(r->row, key ? key : "more", value);
}

void exp_number(exp_report *r, double value)
{
    put(r, isfinite(value) ? json_real(value) : json_null());
}

void exp_text(exp_report *r, const char *text)
{
    put(r, json_string(text));
}

void exp_condition(exp_report *r, int holds, const char *format, ...)
{
    va_list args;
    json_t *c = json_object();
    va_start(args, format);
    json_object_set_new(c, "text", text_of(format, args));
    va_end(args);
    json_object_set_new(c, "holds", json_boolean(holds));
    json_array_append_new(json_object_get(r->json, "conditions"), c);
}

int exp_holds(const exp_report *r)
{
    const json_t *conditions = json_object_get(r->json, "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++)
        if (!json_is_true(
                json_object_get(json_array_get(conditions, i), "holds")))
            return 0;
    return json_array_size(conditions) > 0;
}
