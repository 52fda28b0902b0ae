/* experiments_fit.c: least squares, means and spreads against closed forms; how
 * a report judges and prints what was measured. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"

#define NEAR(a, b) cr_assert_float_eq(a, b, 1e-12, "%.17g, %.17g", a, b)

Test(fit, a_line_is_found_exactly)
{
    const double x[] = {1, 0.5, 0.25, 0.125}, a = 3, b = 40;
    double y[4];
    for (int i = 0; i < 4; i++) y[i] = a + b * x[i];
    const exp_line line = exp_fit(x, y, 4);
    NEAR(line.a, a);
    NEAR(line.b, b);
    NEAR(line.r2, 1.0);
}

/* Points (0,0) (1,1) (2,1) (3,2): b = 3/5, a = 1/10, and of the total square
 * of 2 the line leaves 1/5. */
Test(fit, worked_example)
{
    const double x[] = {0, 1, 2, 3}, y[] = {0, 1, 1, 2};
    const exp_line line = exp_fit(x, y, 4);
    NEAR(line.a, 0.1);
    NEAR(line.b, 0.6);
    NEAR(line.r2, 0.9);
}

/* R^2 is the square of the correlation, and does not change with units. */
Test(fit, units_do_not_matter)
{
    const double x[] = {1, 2, 4, 8, 16}, y[] = {5, 4, 7, 3, 9};
    double u[5], v[5], xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < 5; i++) {
        u[i] = 1e6 + 1e-3 * x[i];
        v[i] = -50 * y[i] + 1e4;
        xy += (x[i] - 6.2) * (y[i] - 5.6);
        xx += (x[i] - 6.2) * (x[i] - 6.2);
        yy += (y[i] - 5.6) * (y[i] - 5.6);
    }
    const exp_line one = exp_fit(x, y, 5), other = exp_fit(u, v, 5);
    NEAR(one.r2, xy * xy / xx / yy);
    cr_assert_float_eq(other.r2, one.r2, 1e-6);
    cr_assert_float_eq(other.b, -50e3 * one.b, 1e-3);
}

Test(fit, constant_values_have_no_r2)
{
    const double x[] = {1, 2, 3}, y[] = {7, 7, 7};
    const exp_line line = exp_fit(x, y, 3);
    NEAR(line.a, 7.0);
    NEAR(line.b, 0.0);
    cr_assert(isnan(line.r2));
}

Test(fit, mean_and_deviation)
{
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    NEAR(exp_mean(x, 8), 5.0);
    NEAR(exp_deviation(x, 8), sqrt(32.0 / 7));
    NEAR(exp_mean(x, 1), 2.0);
    NEAR(exp_deviation(x, 1), 0.0);
    NEAR(exp_deviation(x, 0), 0.0);
    cr_assert(isnan(exp_mean(x, 0)));
}

/* ---- reports --------------------------------------------------------------
 */

static const experiment made_up = {"E0",     "a title", "A claim.",
                                   "source", "a pass.", NULL};

static exp_report begin(const exp_options *o)
{
    const exp_bench b = {.o = o};
    exp_report r;
    cr_assert_eq(exp_report_begin(&r, &b, &made_up), TAC_OK);
    return r;
}

static char *printed(const exp_report *r,
                     void (*print)(const exp_report *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    cr_assert(f);
    print(r, f);
    fclose(f);
    return text;
}

static int has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

Test(report, holds_only_if_all_conditions_do)
{
    const exp_options o = {0};
    exp_report r = begin(&o);
    cr_assert(!exp_holds(&r), "nothing was measured");
    exp_condition(&r, 1, "one %d", 1);
    cr_assert(exp_holds(&r));
    exp_condition(&r, 0, "two");
    exp_condition(&r, 1, "three");
    cr_assert(!exp_holds(&r));
    exp_report_free(&r);
}

Test(report, prints_what_it_has)
{
    const exp_options o = {.quick = 1};
    exp_report r = begin(&o);
    exp_ran(&r, "Ran %d.", 7);
    exp_table(&r, "Table %d:", 1);
    exp_column(&r, "h", "H", "%.0f");
    exp_column(&r, "name", "name", NULL);
    exp_column(&r, "x", "x", "%.2f");
    exp_row(&r);
    exp_number(&r, 16);
    exp_text(&r, "first");
    exp_number(&r, 0.125);
    exp_row(&r);
    exp_number(&r, 2);
    exp_text(&r, "second");
    exp_number(&r, NAN);
    exp_condition(&r, 0, "because of %.1f", 2.5);
    exp_report_end(&r, 1.25);

    char *text = printed(&r, exp_print_text);
    cr_assert(has(text, "   H    name     x\n"), "%s", text);
    cr_assert(has(text, "  16   first  0.12\n"), "%s", text);
    cr_assert(has(text, "   2  second     -\n"), "%s", text);
    cr_assert(has(text, "  NO     because of 2.5\n"), "%s", text);
    cr_assert(has(text, "E0: the claim does not hold"), "%s", text);
    free(text);
    text = printed(&r, exp_print_markdown);
    cr_assert(has(text, "| 16 | first | 0.12 |\n"), "%s", text);
    cr_assert(has(text, "localsgd_experiments E0 --quick\n"), "%s", text);
    cr_assert(has(text, "- **no**: because of 2.5\n"), "%s", text);
    free(text);
    const json_t *rows = json_object_get(
        json_array_get(json_object_get(r.json, "tables"), 0), "rows");
    cr_assert(json_is_null(json_object_get(json_array_get(rows, 1), "x")));
    cr_assert_eq(
        json_number_value(json_object_get(json_array_get(rows, 0), "x")),
        0.125);
    cr_assert(json_is_false(json_object_get(r.json, "holds")));
    exp_report_free(&r);
}

Test(report, every_experiment_says_what_it_is)
{
    size_t n = 0;
    for (const experiment *e = exp_experiments; e->name; e++, n++) {
        cr_assert(e->run && e->title && e->claim && e->source && e->pass);
        for (const experiment *f = exp_experiments; f < e; f++)
            cr_assert_str_neq(e->name, f->name);
    }
    cr_assert_geq(n, 6);
}
