/* sweep_page.c: the sweep as one HTML file that needs nothing else: no network,
 * no script to be read, no colour to be understood. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep_page.h"

static void begin(sweep_page *p)
{
    const sweep_options *o = p->s->o;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<title>",
          p->f);
    tac__page_print(p, "Local SGD sweep: %s on %s, %d rank%s",
                    o->model ? o->model : "?", o->data ? o->data : "?",
                    p->s->world, p->s->world == 1 ? "" : "s");
    fputs("</title>\n<style>\n", p->f);
    fputs(tac_page_style(), p->f);
    fputs("</style>\n</head>\n<body>\n", p->f);
}

static tac_status pictures(sweep_page *p)
{
    fputs(
        "<section id=\"pictures\" aria-label=\"Pictures\">\n"
        "<h2>Pictures</h2>\n<p class=\"note\">A pointer on a marker shows its "
        "values. Bars and bands are sample standard deviations over seeds, "
        "where there are several; curves are means over seeds.</p>\n",
        p->f);
    TAC_TRY(tac__page_losses(p));
    tac__page_html(p, "<div class=\"pair\">\n");
    TAC_TRY(tac__page_accuracy(p));
    TAC_TRY(tac__page_front(p));
    tac__page_html(p, "</div>\n<div class=\"pair third\">\n");
    TAC_TRY(tac__page_consensus(p));
    TAC_TRY(tac__page_checks(p));
    tac__page_html(p, "</div>\n");
    TAC_TRY(tac__page_rates(p));
    fputs("</section>\n", p->f);
    return TAC_OK;
}

static tac_status document(sweep_page *p)
{
    begin(p);
    tac__page_head(p);
    tac__page_finding(p);
    TAC_TRY(pictures(p));
    tac__page_table(p);
    tac__page_terms(p);
    fputs("<script>\n", p->f);
    fputs(tac__page_script(), p->f);
    fputs("</script>\n</body>\n</html>\n", p->f);
    return TAC_OK;
}

tac_status tac__page_prepare(sweep_page *p, const sweep *s)
{
    *p = (sweep_page){.s = s};
    p->front = calloc(p->s->n_cases + 1, sizeof *p->front);
    if (!p->front)
        return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory for the page");
    sweep_pareto(p->s, p->front);
    TAC_TRY(tac__sweep_groups(p));
    return tac__sweep_curves(p);
}

void tac__page_free(sweep_page *p)
{
    tac__sweep_curves_free(p);
    tac__sweep_groups_free(p);
    free(p->front);
}

static tac_status failed(const sweep *s, const char *path)
{
    return tac_fail(s->ctx, TAC_ERR_IO, "can't write %s: %s; check the folder",
                    path, strerror(errno));
}

/* Whole or not at all: whoever looks while it is written sees the page before.
 */
static tac_status write_file(sweep_page *p, const char *path)
{
    char *beside = NULL;
    if (asprintf(&beside, "%s.tmp", path) < 0)
        return tac_fail(p->s->ctx, TAC_ERR_NOMEM, "no memory");
    p->f = fopen(beside, "w");
    tac_status status = p->f ? document(p) : failed(p->s, beside);
    if (p->f && (ferror(p->f) | fclose(p->f)) && status >= 0)
        status = failed(p->s, beside);
    if (status >= 0 && rename(beside, path) != 0) status = failed(p->s, path);
    if (status < 0) remove(beside);
    free(beside);
    return status;
}

tac_status sweep_write_page(const sweep *s, const char *path)
{
    sweep_page p;
    tac_status status = tac__page_prepare(&p, s);
    if (status >= 0) status = write_file(&p, path);
    tac__page_free(&p);
    return status;
}
