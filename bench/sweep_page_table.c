/* sweep_page_table.c: one line a run, all that the JSON has of it. */
#include <math.h>

#include "sweep_page.h"

/* ---- columns ---------------------------------------------------------------
 */

typedef enum column_form {
    FORM_COUNT, /* whole, thousands apart */
    FORM_PLAIN,
    FORM_SHARE,
    FORM_SECONDS
} column_form;

typedef struct column {
    const char *key, *name, *unit;
    column_form form;
    size_t offset; /* of a double in sweep_row */
} column;

#define AT(field) offsetof(sweep_row, field)

static const column measured[] = {
    {"bytes_predicted", "bytes predicted", "B a rank", FORM_COUNT,
     AT(bytes_predicted)},
    {"bytes_counted", "bytes counted", "B a rank", FORM_COUNT,
     AT(bytes_counted)},
    {"wall_s", "wall", "s", FORM_SECONDS, AT(wall_s)},
    {"wall_predicted_s", "wall predicted", "s", FORM_SECONDS,
     AT(wall_predicted_s)},
    {"train_loss", "training loss", "", FORM_PLAIN, AT(train_loss)},
    {"eval_loss", "validation loss", "", FORM_PLAIN, AT(eval_loss)},
    {"eval_accuracy", "validation accuracy", "%", FORM_SHARE,
     AT(eval_accuracy)},
    {"test_accuracy", "test accuracy", "%", FORM_SHARE, AT(test_accuracy)},
    {"local_accuracy", "local accuracy", "%", FORM_SHARE, AT(local_accuracy)},
    {"consensus_distance", "consensus distance", "squared", FORM_PLAIN,
     AT(consensus_distance)},
};
enum { MEASURED = sizeof measured / sizeof *measured };

static void heading(sweep_page *p, const char *key, const char *name,
                    const char *unit, const char *class)
{
    fprintf(p->f, "<th%s title=\"%s\">%s<small>", class, key, name);
    tac__page_text(p, unit);
    fputs("</small></th>", p->f);
}

static void head(sweep_page *p)
{
    tac__page_html(p, "<thead><tr><th>case</th>");
    heading(p, "sync", "sync", "", " class=\"t\"");
    heading(p, "sync_every", "H", "steps", "");
    heading(p, "accumulate", "accumulate", "micro-steps", "");
    heading(p, "compress", "codec", "", " class=\"t\"");
    heading(p, "seed", "seed", "", "");
    heading(p, "lr", "learning rate", "", "");
    heading(p, "steps", "steps", "", "");
    heading(p, "samples", "samples", "", "");
    heading(p, "syncs", "exchanges", "", "");
    for (int i = 0; i < MEASURED; i++)
        heading(p, measured[i].key, measured[i].name, measured[i].unit, "");
    for (int k = 0; k < p->s->n_networks; k++) {
        tac__page_html(p, "<th title=\"modelled_s\">");
        tac__page_text(p, p->s->networks[k]->name);
        tac__page_html(p, "<small>modelled, s</small></th>");
    }
    tac__page_html(p, "</tr></thead>\n");
}

/* ---- cells -----------------------------------------------------------------
 */

static void value_text(sweep_page *p, column_form form, double v)
{
    char text[TAC_PAGE_TEXT];

    switch (form) {
    case FORM_COUNT: fputs(tac_page_count(v, text), p->f); break;
    case FORM_SHARE: fprintf(p->f, "%.2f", 100 * v); break;
    case FORM_SECONDS: fprintf(p->f, "%.4g", v); break;
    default: fprintf(p->f, "%.5g", v);
    }
}

/* data-v has all digits, for sorting and for programs. */
static void cell(sweep_page *p, column_form form, double v)
{
    if (!isfinite(v)) {
        tac__page_html(p, "<td data-v=\"\">-</td>");
        return;
    }
    fprintf(p->f, "<td data-v=\"%.17g\">", v);
    value_text(p, form, v);
    tac__page_html(p, "</td>");
}

static void text_cell(sweep_page *p, const char *text)
{
    tac__page_html(p, "<td class=\"t\">");
    tac__page_text(p, text);
    tac__page_html(p, "</td>");
}

static void configuration(sweep_page *p, const sweep_row *r)
{
    const sweep_case *k = &p->s->cases[r->of];
    text_cell(p, k->label);
    text_cell(p, k->sync);
    cell(p, FORM_COUNT, (double)k->every);
    cell(p, FORM_COUNT, (double)k->accumulate);
    text_cell(p, k->compress);
    cell(p, FORM_PLAIN, (double)r->seed);
    cell(p, FORM_PLAIN, r->lr);
    cell(p, FORM_COUNT, (double)r->steps);
    cell(p, FORM_COUNT, (double)r->samples);
    cell(p, FORM_COUNT, (double)r->syncs);
}

static double value(const sweep_row *r, const column *c)
{
    if (c->offset == AT(bytes_predicted) && !r->predictable) return NAN;
    return tac__sweep_field(r, c->offset);
}

static void run_row(sweep_page *p, const sweep_row *r)
{
    tac__page_html(p, "<tr>");
    configuration(p, r);
    for (int i = 0; i < MEASURED; i++)
        cell(p, measured[i].form, value(r, &measured[i]));
    for (int k = 0; k < p->s->n_networks; k++)
        cell(p, FORM_SECONDS, r->modelled_s[k]);
    tac__page_html(p, "</tr>\n");
}

void tac__page_table(sweep_page *p)
{
    tac__page_html(p, "<section id=\"runs\" aria-label=\"All runs\">\n"
                      "<h2>All runs</h2>\n");
    fprintf(p->f,
            "<p class=\"note\">%zu runs, one line each; a click on a "
            "heading sorts. What the columns mean: <a "
            "href=\"#terms\">terms</a>.</p>\n",
            p->s->n_rows);
    tac__page_html(p, "<div class=\"box\" tabindex=\"0\" role=\"region\" "
                      "aria-label=\"All runs\"><table class=\"all\" "
                      "id=\"rows\">\n");
    head(p);
    tac__page_html(p, "<tbody>\n");
    for (size_t i = 0; i < p->s->n_rows; i++) run_row(p, &p->s->rows[i]);
    tac__page_html(p, "</tbody></table></div>\n</section>\n");
}
