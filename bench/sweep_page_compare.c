/* sweep_page_compare.c: each method at each H, and whether it beats, equals or
 * loses to accumulation of H, which sends the same bytes and sees the same
 * samples. */
#include <math.h>

#include "sweep_page.h"

static const char *verdict_name(sweep_verdict v)
{
    switch (v) {
    case SWEEP_MORE: return "beats";
    case SWEEP_LESS: return "loses";
    default: return "equals";
    }
}

/* ---- sentences -------------------------------------------------------------
 */

static int met(const sweep_page *p, const sweep_group *g,
               const sweep_group *rival, int64_t every, sweep_verdict *out)
{
    const size_t a = tac__sweep_at(p, g, every),
                 b = tac__sweep_at(p, rival, every);
    if (a == p->s->n_cases || b == p->s->n_cases) return 0;
    *out = tac__sweep_judge(p->s, a, b);
    return *out != SWEEP_UNKNOWN;
}

/* Returns how many. */
static int list_intervals(sweep_page *p, const sweep_group *g,
                          const sweep_group *rival, sweep_verdict want,
                          int before, const char *words)
{
    sweep_verdict v;
    int n = 0;
    for (size_t i = 0; i < p->n_intervals; i++) {
        if (!met(p, g, rival, p->intervals[i], &v) || v != want) continue;
        if (n == 0)
            tac__page_print(p, "%s%s at H = ", before ? "; " : "", words);
        tac__page_print(p, "%s%lld", n ? ", " : "", (long long)p->intervals[i]);
        n++;
    }
    return n;
}

static void sentence(sweep_page *p, const sweep_group *g)
{
    const sweep_group *rival = tac__sweep_rival(p, g);
    int n = 0;
    if (g->kind != SWEEP_LOCAL || !rival) return;
    tac__page_html(p, "<li><strong>");
    tac__page_text(p, g->name);
    tac__page_html(p, "</strong> ");
    tac__page_print(p, "against %s: ", rival->name);
    n += list_intervals(p, g, rival, SWEEP_MORE, n, "beats it");
    n += list_intervals(p, g, rival, SWEEP_EQUAL, n, "equals it");
    n += list_intervals(p, g, rival, SWEEP_LESS, n, "loses to it");
    tac__page_print(p, n ? "." : "at no H both.");
    tac__page_html(p, "</li>\n");
}

/* ---- the table -------------------------------------------------------------
 */

static void head(sweep_page *p)
{
    tac__page_html(p, "<thead><tr><th>H</th><th>bytes a rank</th>"
                      "<th>than per-step</th>");
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        if (g->kind != SWEEP_LOCAL && g->kind != SWEEP_ACCUMULATE) continue;
        tac__page_html(p, "<th>");
        tac__page_text(p, g->name);
        tac__page_html(p, "</th>");
        if (g->kind == SWEEP_LOCAL && tac__sweep_rival(p, g))
            tac__page_html(p, "<th class=\"t\">against accumu&shy;lation</th>");
    }
    tac__page_html(p, "</tr></thead>\n");
}

static void cell_against(sweep_page *p, const sweep_group *g, int64_t every)
{
    const sweep_group *rival = tac__sweep_rival(p, g);
    sweep_verdict v;
    char text[SWEEP_TEXT];
    if (!rival) return;
    if (!met(p, g, rival, every, &v)) {
        tac__page_html(p, "<td class=\"t\"></td>");
        return;
    }
    const sweep_mean a = tac__sweep_accuracy(p->s, tac__sweep_at(p, g, every)),
                     b = tac__sweep_accuracy(p->s,
                                             tac__sweep_at(p, rival, every));
    fprintf(p->f, "<td class=\"t %s\">%s: ",
            v == SWEEP_MORE   ? "beats"
            : v == SWEEP_LESS ? "loses"
                              : "",
            verdict_name(v));
    tac__page_text(p, tac__sweep_points(a.mean - b.mean, text));
    tac__page_html(p, "</td>");
}

static void cell_accuracy(sweep_page *p, size_t of)
{
    char text[SWEEP_TEXT];
    tac__page_html(p, "<td>");
    if (of < p->s->n_cases) {
        const sweep_mean m = tac__sweep_accuracy(p->s, of);
        tac__page_text(p, tac__sweep_share_mean(&m, text));
    }
    tac__page_html(p, "</td>");
}

/* Of the first group that has this H, a plain one where there is one. */
static double bytes_at(const sweep_page *p, int64_t every)
{
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        const size_t of = tac__sweep_at(p, g, every);
        if (of == p->s->n_cases || g->dashed) continue;
        return tac__sweep_mean(p->s, of, offsetof(sweep_row, bytes_counted))
            .mean;
    }
    return NAN;
}

static void cells_bytes(sweep_page *p, int64_t every)
{
    const double bytes = bytes_at(p, every);
    double whole = NAN;
    char text[SWEEP_TEXT];
    if (p->per_step < p->s->n_cases)
        whole = tac__sweep_mean(p->s, p->per_step,
                                offsetof(sweep_row, bytes_counted))
                    .mean;
    tac__page_html(p, "<td>");
    tac__page_text(p, tac_page_bytes(bytes, text));
    tac__page_html(p, "</td><td>");
    if (bytes > 0 && isfinite(whole))
        tac__page_print(
            p, fabs(whole / bytes - 1) < 0.005 ? "the same" : "%.3g %s fewer",
            whole / bytes, "\xc3\x97");
    tac__page_html(p, "</td>");
}

static void table_row(sweep_page *p, int64_t every)
{
    fprintf(p->f, "<tr><td>%lld</td>", (long long)every);
    cells_bytes(p, every);
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        if (g->kind != SWEEP_LOCAL && g->kind != SWEEP_ACCUMULATE) continue;
        cell_accuracy(p, tac__sweep_at(p, g, every));
        if (g->kind == SWEEP_LOCAL) cell_against(p, g, every);
    }
    tac__page_html(p, "</tr>\n");
}

/* What has no H: a line each. */
static void others(sweep_page *p)
{
    const char *comma = "";
    char t[2][SWEEP_TEXT];
    tac__page_html(p, "<p>Without an H: ");
    for (size_t i = 0; i < p->n_groups; i++) {
        const sweep_group *g = &p->groups[i];
        if (g->kind == SWEEP_LOCAL || g->kind == SWEEP_ACCUMULATE) continue;
        const sweep_mean a = tac__sweep_accuracy(p->s, g->cases[0]),
                         b = tac__sweep_mean(
                             p->s, g->cases[0],
                             offsetof(sweep_row, bytes_counted));
        tac__page_print(p, "%s%s %s with %s a rank", comma, g->name,
                        tac__sweep_share_mean(&a, t[0]),
                        tac_page_bytes(b.mean, t[1]));
        comma = "; ";
    }
    tac__page_html(p, ".</p>\n");
}

static void explanation(sweep_page *p)
{
    tac__page_html(
        p, "<h3>Accuracy at each H, and against accumulation</h3>\n"
           "<p>Accumulation of H micro-steps sends as many bytes as averaging "
           "every H steps without a codec, for the same samples. Beats and "
           "loses: accuracies "
           "differ by more than chance explains, ");
    tac__page_html(p, p->s->o->seeds > 1
                          ? "which is the spread of the seeds (t-test, 95 %)"
                          : "which is that of so many images (95 %), as one "
                            "seed says nothing about seeds");
    tac__page_html(p, "; equals: they do not.</p>\n");
}

static void table(sweep_page *p)
{
    tac__page_html(
        p, "<div class=\"box\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"Accuracy at each H\"><table class=\"narrow\">\n");
    fprintf(p->f, "<caption>%s accuracy</caption>\n",
            tac__sweep_tested(p->s) ? "Test" : "Validation");
    head(p);
    tac__page_html(p, "<tbody>\n");
    for (size_t i = 0; i < p->n_intervals; i++) table_row(p, p->intervals[i]);
    tac__page_html(p, "</tbody></table></div>\n");
}

void tac__page_compare(sweep_page *p)
{
    explanation(p);
    tac__page_html(p, "<ul>\n");
    for (size_t i = 0; i < p->n_groups; i++) sentence(p, &p->groups[i]);
    tac__page_html(p, "</ul>\n");
    table(p);
    others(p);
}
