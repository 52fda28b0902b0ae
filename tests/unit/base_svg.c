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
    const tac_svg_mark marks[] = {{"limit", -7, 1, 0}, {NULL, -3, 2, 1}};
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
