/* sweep_page_networks.c: what would be fastest on each network. */
#include <math.h>

#include "sweep_page.h"

double tac__sweep_standard(const sweep_page *p)
{
    double best = NAN;
    if (p->per_step < p->s->n_cases)
        return tac__sweep_accuracy(p->s, p->per_step).mean;
    for (size_t i = 0; i < p->s->n_cases; i++)
        best = fmax(best, tac__sweep_accuracy(p->s, i).mean);
    return best;
}

int tac__sweep_good_enough(const sweep_page *p, size_t of)
{
    const sweep_mean m = tac__sweep_accuracy(p->s, of);
    return m.n > 0 && m.missing == 0 &&
           !(m.mean < tac__sweep_standard(p) - 0.005 - 1e-12);
}

static size_t faster(const sweep_page *p, size_t best, size_t of, int k)
{
    const double t = tac__sweep_modelled(p->s, of, k).mean;
    if (!isfinite(t) || !tac__sweep_good_enough(p, of)) return best;
    if (best == p->s->n_cases) return of;
    return t < tac__sweep_modelled(p->s, best, k).mean ? of : best;
}

size_t tac__sweep_fastest(const sweep_page *p, const sweep_group *g, int k)
{
    size_t best = p->s->n_cases;
    for (size_t i = 0; g && i < g->n; i++)
        best = faster(p, best, g->cases[i], k);
    for (size_t i = 0; !g && i < p->s->n_cases; i++)
        if (tac__sweep_kind(&p->s->cases[i]) != SWEEP_ALONE)
            best = faster(p, best, i, k);
    return best;
}

/* ---- the table -------------------------------------------------------------
 */

static size_t fastest_of_kind(const sweep_page *p, sweep_kind kind, int k)
{
    size_t best = p->s->n_cases;
    for (size_t i = 0; i < p->s->n_cases; i++)
        if (tac__sweep_kind(&p->s->cases[i]) == kind)
            best = faster(p, best, i, k);
    return best;
}

/* Its label and modelled time, and how often the best goes into it. */
static void cell(sweep_page *p, size_t of, int k, double best)
{
    char text[SWEEP_TEXT];
    tac__page_html(p, "<td class=\"t\">");
    if (of < p->s->n_cases) {
        const double t = tac__sweep_modelled(p->s, of, k).mean;
        tac__page_print(p, "%s: %s", p->s->cases[of].label,
                        tac_page_seconds(t, text));
        if (best > 0 && t > best)
            tac__page_print(p, " (%.2f %s)", t / best, "\xc3\x97");
    } else {
        tac__page_html(p, "<span class=\"note\">none</span>");
    }
    tac__page_html(p, "</td>");
}

static void network_row(sweep_page *p, int k)
{
    const size_t best = tac__sweep_fastest(p, NULL, k);
    const double t =
        best < p->s->n_cases ? tac__sweep_modelled(p->s, best, k).mean : NAN;
    char text[SWEEP_TEXT];
    tac__page_html(p, "<tr><td>");
    tac__page_text(p, p->s->networks[k]->name);
    tac__page_html(p, "</td><td class=\"t\">");
    tac__page_text(p, tac__sweep_link(&p->s->networks[k]->net, text));
    tac__page_html(p, "</td>");
    cell(p, best, k, NAN);
    cell(p, fastest_of_kind(p, SWEEP_LOCAL, k), k, t);
    cell(p, p->per_step, k, t);
    cell(p, fastest_of_kind(p, SWEEP_PER_STEP, k), k, t);
    cell(p, fastest_of_kind(p, SWEEP_ACCUMULATE, k), k, t);
    tac__page_html(p, "</tr>\n");
}

static void explanation(sweep_page *p)
{
    char text[SWEEP_TEXT];
    tac__page_html(p, "<p>");
    tac__page_print(p,
                    "Modelled time of the whole run, the same samples for all. "
                    "Fastest of those whose accuracy is at most half a point "
                    "below %s (%s). In parentheses: times the fastest.",
                    p->per_step < p->s->n_cases ? "that of per-step"
                                                : "the best",
                    tac_page_share(tac__sweep_standard(p), text));
    tac__page_html(p, "</p>\n");
}

void tac__page_networks(sweep_page *p)
{
    tac__page_html(p, "<h3>Fastest on each network</h3>\n");
    if (p->s->n_networks == 0 || !(p->s->compute_s > 0)) {
        tac__page_html(p, "<p class=\"note\">Not modelled.</p>\n");
        return;
    }
    explanation(p);
    tac__page_html(
        p, "<div class=\"box\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"Fastest on each network\"><table>\n<thead><tr>"
           "<th>network</th><th class=\"t\">bandwidth, latency</th>"
           "<th class=\"t\">fastest</th><th class=\"t\">best local "
           "mode</th><th class=\"t\">per-step</th>"
           "<th class=\"t\">best per-step</th>"
           "<th class=\"t\">best accumulation</th></tr></thead>\n<tbody>\n");
    for (int k = 0; k < p->s->n_networks; k++) network_row(p, k);
    tac__page_html(p, "</tbody></table></div>\n");
}
