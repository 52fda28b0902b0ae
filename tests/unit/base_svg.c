/* base_svg.c: plots: what is drawn and what is left out, in well-formed XML. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/svg.h"

/* The figure as text; to be freed. */
static char *draw(const tac_svg_panel *panels, size_t n)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    cr_assert_not_null(f);
    cr_assert_eq(tac_svg_write(f, panels, n), 0);
    fclose(f);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; ++at) ++n;
    return n;
}

/* Every tag is closed, in order: enough for what we write. */
static int well_formed(const char *text)
{
    char open[32][16];
    int depth = 0;
    for (const char *at = text; (at = strchr(at, '<')) != NULL; ++at) {
        const char *end = strchr(at, '>');
        char name[16] = "";
        if (!end || depth >= 31) return 0;
        if (sscanf(at, "</%15[a-z]", name) == 1) {
            if (depth == 0 || strcmp(open[--depth], name) != 0) return 0;
        } else if (end[-1] != '/') {
            if (sscanf(at, "<%15[a-z]", name) != 1) return 0;
            strcpy(open[depth++], name);
        }
    }
    return depth == 0;
}

/* Attribute `key` of the first element that begins with `element`. */
static double attribute(const char *text, const char *element, const char *key)
{
    const char *at = strstr(text, element);
    cr_assert_not_null(at, "no %s", element);
    at = strstr(at, key);
    cr_assert_not_null(at);
    return atof(at + strlen(key));
}

Test(svg, lines_break_where_nothing_can_be_drawn)
{
    const double x[] = {1, 2, 3, 4, 5}, y[] = {1, 10, NAN, -1, 1000};
    const tac_svg_series s = {.name = "a<b & \"c\"", .n = 5, .x = x, .y = y};
    const tac_svg_panel p = {.title = "t",
                             .x = {.label = "x"},
                             .y = {.label = "y", .log = 1},
                             .series = &s,
                             .n = 1};
    char *text = draw(&p, 1);
    cr_assert(well_formed(text), "%s", text);
    /* Three points and the legend's; the line starts twice. */
    cr_assert_eq(count(text, "<circle"), 4);
    const char *line = strstr(text, "stroke-width=\"2\" d=\"");
    cr_assert_not_null(line);
    char path[200];
    cr_assert_eq(sscanf(line, "stroke-width=\"2\" d=\"%199[^\"]", path), 1);
    cr_assert_eq(count(path, "M"), 2, "%s", path);
    cr_assert_eq(count(path, "L"), 1, "%s", path);
    cr_assert_eq(count(text, "a&lt;b &amp; &quot;c&quot;"), 1);
    free(text);
}

Test(svg, areas_marks_and_names)
{
    static const char *const names[] = {"conv1.weight", "fc.bias"};
    const double x[] = {-4, -3, -2}, y0[] = {0.5, 0, 0.9}, y1[] = {1, 1.9, NAN};
    const tac_svg_series s[] = {
        {.n = 3, .x = x, .y = y0, .style = TAC_SVG_AREA},
        {.n = 3, .x = x, .y = y1, .style = TAC_SVG_AREA, .base = 1}};
    const tac_svg_mark marks[] = {{.name = "limit", .x = -7, .colour = 1},
                                  {.x = -3, .colour = 2, .dashed = 1}};
    const tac_svg_panel p = {.title = "t",
                             .x = {.label = "x"},
                             .y = {.names = names, .n_names = 2, .label = "y"},
                             .series = s,
                             .n = 2,
                             .marks = marks,
                             .n_marks = 2,
                             .height = 200};
    char *text = draw(&p, 1);
    cr_assert(well_formed(text), "%s", text);
    cr_assert_eq(attribute(text, "<svg", "height=\""), 200);
    cr_assert_eq(count(text, ">conv1.weight<"), 1);
    cr_assert_eq(count(text, ">fc.bias<"), 1);
    cr_assert_eq(count(text, ">limit<"), 1);
    /* Steps: two of the first series (0 has no area), one of the second. */
    cr_assert_eq(count(text, " Z "), 3, "%s", text);
    /* The axis reaches the mark on the left, the last step's end on the right:
     * a mark at the low edge is at the plot's left. */
    char mark[64];
    snprintf(mark, sizeof mark, "<path d=\"M%d.0 54 V144\" stroke=\"#d55e00\"",
             36 + 7 * 12);
    cr_assert_eq(count(text, mark), 1, "%s", text);
    cr_assert_eq(count(text, "stroke-dasharray"), 1);
    free(text);
}

Test(svg, panels_add_up_and_none_is_legal)
{
    const tac_svg_panel p[] = {
        {.title = "a", .x = {.label = ""}, .y = {.label = ""}, .height = 300},
        {.title = "b", .x = {.label = ""}, .y = {.label = ""}}};
    char *text = draw(p, 2);
    cr_assert(well_formed(text));
    cr_assert_eq(attribute(text, "<svg", "height=\""), 760);
    cr_assert_eq(count(text, "translate(0 300)"), 1);
    free(text);
    text = draw(NULL, 0);
    cr_assert(well_formed(text));
    free(text);
}

/* ---- in a page -------------------------------------------------------------
 */

static char *draw_inline(const tac_svg_panel *p, const char *label)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    cr_assert_not_null(f);
    cr_assert_eq(tac_svg_inline(f, p, label), 0);
    fclose(f);
    return text;
}

static tac_svg_panel panel_of(const tac_svg_series *s, size_t n)
{
    return (tac_svg_panel){.title = "t",
                           .x = {.label = "x"},
                           .y = {.label = "y"},
                           .series = s,
                           .n = n};
}

Test(svg, a_page_gives_colours_and_hears_what_a_point_is)
{
    static const char *const notes[] = {"a < b", NULL, "never drawn"};
    const double x[] = {1, 2, 3}, y[] = {1, 2, NAN}, low[] = {0.5, 2, 0},
                 high[] = {1.5, 2, 1};
    const tac_svg_series s = {.n = 3,
                              .x = x,
                              .y = y,
                              .low = low,
                              .high = high,
                              .notes = notes,
                              .colour = 12,
                              .marker = TAC_SVG_OPEN_DIAMOND};
    const tac_svg_panel p = panel_of(&s, 1);
    char *text = draw_inline(&p, "what \"it\" shows");
    cr_assert(well_formed(text), "%s", text);
    cr_assert_eq(count(text, "aria-label=\"what &quot;it&quot; shows\""), 1);
    cr_assert_eq(count(text, "var(--tac-c12)"), 4, "%s", text);
    cr_assert_eq(count(text, "<title>a &lt; b</title>"), 1);
    cr_assert_eq(count(text, "<title>"), 1);
    /* Two diamonds; one error bar, as the other's ends are equal. */
    cr_assert_eq(count(text, "l4 4l-4 4l-4 -4z"), 2);
    cr_assert_eq(count(text, "h6M"), 1);
    cr_assert_eq(count(text, "#"), 0, "a colour that no page can change");
    free(text);
}

/* Where the first text with this content stands. */
static double place_of(const char *text, const char *content, char axis)
{
    char want[40];
    snprintf(want, sizeof want, ">%s</text>", content);
    const char *end = strstr(text, want), *at = NULL;
    cr_assert_not_null(end, "no tick %s", content);
    for (const char *k = text; (k = strstr(k, "<text ")) && k < end; k++)
        at = k;
    double xy[2];
    cr_assert_eq(sscanf(at, "<text x=\"%lf\" y=\"%lf\"", &xy[0], &xy[1]), 2);
    return xy[axis == 'y'];
}

Test(svg, narrow_logarithmic_axes_still_have_numbers)
{
    const double spans[][2] = {{1, 1e6}, {3, 80}, {2.1, 2.4}, {7, 7}};
    static const char *const one[] = {"100", "10", "2.2", "5"};
    const double y[] = {1, 1};
    for (size_t i = 0; i < 4; i++) {
        const tac_svg_series s = {.n = 2, .x = spans[i], .y = y};
        tac_svg_panel p = panel_of(&s, 1);
        p.x.log = 1;
        char *text = draw_inline(&p, "");
        cr_assert_gt(count(text, "text-anchor=\"middle\">"), 3, "%s", text);
        place_of(text, one[i], 'x');
        free(text);
    }
}

Test(svg, units_of_ticks)
{
    static const struct {
        tac_svg_unit unit;
        double to;
        const char *tick;
    } k[] = {{TAC_SVG_UNIT_S, 1e4, "10000 s"},
             {TAC_SVG_UNIT_S, 2e-2, "10 ms"},
             {TAC_SVG_UNIT_TRAFFIC, 2e6, "1 MB"},
             {TAC_SVG_UNIT_BYTES, 1 << 20, "1M"},
             {TAC_SVG_UNIT_POWER2, 64, "64"},
             {TAC_SVG_UNIT_PERCENT, 1, "100 %"}};
    const double y[] = {1, 1};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        const double x[] = {k[i].to / 64, k[i].to};
        const tac_svg_series s = {.n = 2, .x = x, .y = y};
        tac_svg_panel p = panel_of(&s, 1);
        p.x.log = k[i].unit != TAC_SVG_UNIT_PERCENT;
        p.x.unit = k[i].unit;
        char *text = draw_inline(&p, "");
        place_of(text, k[i].tick, 'x');
        free(text);
    }
}

Test(svg, what_is_beyond_a_fixed_axis_stands_at_its_edge)
{
    const double x[] = {1, 2}, y[] = {0.1, 0.85};
    const tac_svg_series s = {.n = 2, .x = x, .y = y, .style = TAC_SVG_POINTS};
    const tac_svg_mark beyond = {.across = 1, .y = 0.5, .colour = 5};
    tac_svg_panel p = panel_of(&s, 1);
    p.y.from = 0.8;
    p.y.to = 0.9;
    p.marks = &beyond;
    p.n_marks = 1;
    char *text = draw_inline(&p, "");
    /* At the bottom, 270 - 40, a triangle that points down. */
    cr_assert_eq(count(text, " 234.3l4 -6.8h-8z"), 1, "%s", text);
    cr_assert_eq(count(text, "<circle"), 1);
    cr_assert_eq(count(text, "var(--tac-c5)"), 0);
    /* 0.85 is in the middle: (26 + 230) / 2. */
    cr_assert_eq(count(text, "cy=\"128.0\""), 1, "%s", text);
    free(text);
}

Test(svg, a_line_across_has_a_band)
{
    const double x[] = {1, 2}, y[] = {0.5, 0.9};
    const tac_svg_series s = {.n = 2, .x = x, .y = y};
    const tac_svg_mark m = {
        .across = 1, .y = 0.7, .low = 0.6, .high = 0.8, .colour = 3};
    tac_svg_panel p = panel_of(&s, 1);
    p.y.from = 0.5;
    p.y.to = 0.9;
    p.marks = &m;
    p.n_marks = 1;
    char *text = draw_inline(&p, "");
    cr_assert_eq(attribute(text, "fill-opacity", "fill-opacity=\""), 0.15);
    cr_assert_eq(count(text, "y=\"77.0\" width=\"300\" height=\"102.0\""), 1,
                 "%s", text);
    cr_assert_eq(count(text, "M66 128.0 H366\" stroke="), 1);
    free(text);
}

Test(svg, a_key_for_the_page_s_own_legend)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    const tac_svg_series s = {.colour = 4, .dashed = 2, .marker = TAC_SVG_UP};
    cr_assert_eq(tac_svg_inline_key(f, &s), 0);
    fclose(f);
    cr_assert(well_formed(text));
    cr_assert_eq(count(text, "stroke-dasharray=\"2 3\""), 1);
    cr_assert_eq(count(text, "var(--tac-c4)"), 2);
    free(text);
}
