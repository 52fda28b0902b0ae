/* The page: one HTML file that needs nothing else. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efficiency.h"

static void fact(FILE *f, const char *name, const char *format, ...)
    TAC_PRINTF(3, 4);
static void fact(FILE *f, const char *name, const char *format, ...)
{
    char words[600];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    fprintf(f, "<dt>%s</dt><dd>", name);
    tac_svg_text(f, words);
    fputs("</dd>\n", f);
}

static void put_head(const eff *e, FILE *f)
{
    const eff_row *b = &e->rows[0];

    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<title>",
          f);
    tac_page_print(f, "Efficiency: %s on %s", e->model, e->data);
    fprintf(f,
            "</title>\n<style>\n%s"
            ".wide svg{width:100%%;min-width:900px;height:auto;display:block}"
            "tr.part th{text-align:left;padding-top:.9em}"
            "</style>\n</head>\n<body>\n<h1>",
            tac_page_style());
    tac_page_print(f, "What each technique saves: %s on %s", e->model, e->data);
    fputs("</h1>\n<dl class=\"facts\">\n", f);
    fact(f, "Model", "%s, %.0f parameters", e->model, e->params);
    fact(f, "Ranks", "%s", e->how);
    fact(f, "Batch",
         "%lld samples an optimizer step over all ranks, %lld of each, in all "
         "rows but the last: accumulation cuts them into micro-batches",
         (long long)b->batch * e->world, (long long)b->batch);
    fact(f, "Samples",
         "%lld in every row, in the same order; accuracy on %zu test images "
         "that no choice looked at, learning rates by %zu validation images",
         (long long)b->samples, e->test_count, e->val_count);
    fact(f, "Seeds",
         "%lld; a seed's runs of all rows begin with the same "
         "weights",
         (long long)e->o->seeds);
    fputs("</dl>\n", f);
    if (e->oversubscribed)
        fputs("<p class=\"warn\">Ranks share cores, so times contain other "
              "ranks' computing.</p>\n",
              f);
}

/* Sentences come a line each. */
static void put_finding(const eff *e, FILE *f)
{
    char *words = NULL, *rest = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&words, &bytes);

    if (!memory) return;
    eff_finding(e, memory);
    fclose(memory);
    fputs("<h2>What came out</h2>\n<ul>\n", f);
    for (char *line = strtok_r(words, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        fputs("<li>", f);
        tac_page_print(f, "%s", line + strspn(line, " "));
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
    free(words);
}

/* ---- the table -------------------------------------------------------------
 */

static void cell(FILE *f, int digits, double v)
{
    if (isfinite(v))
        fprintf(f, "<td>%.*f</td>", digits, v);
    else
        fputs("<td>-</td>", f);
}

static void cell_change(FILE *f, double v)
{
    if (isfinite(v))
        fprintf(f, "<td>%+.0f&nbsp;%%</td>", 100 * v + 0.0);
    else
        fputs("<td>-</td>", f);
}

static void cell_error(FILE *f, const char *format, double v, double error)
{
    fputs("<td>", f);
    if (isfinite(v)) {
        fprintf(f, format, 100 * v);
        fprintf(f, " &#177; %.2f", 100 * error);
    } else {
        fputs("-", f);
    }
    fputs("</td>", f);
}

static void put_columns(const eff *e, FILE *f)
{
    fputs("<thead><tr><th>technique", f);
    for (int m = 0; m < EFF_MEMORY; m++)
        fprintf(f, "<th>%s<small>MiB a rank</small>",
                eff_memory_title((eff_memory)m));
    fputs("<th>memory<small>MiB a rank</small><th>change"
          "<th>sent<small>kB a step and rank</small>"
          "<th>sent<small>kB a sample</small>"
          "<th>time here<small>&#181;s a sample</small><th>change",
          f);
    for (size_t k = 0; k < e->n_networks; k++) {
        fputs("<th>", f);
        tac_page_print(f, "%s", e->network_names[k]);
        fputs("<small>&#181;s, modelled</small>", f);
    }
    fprintf(f,
            "<th>%s accuracy<small>%% &#177; SE</small>"
            "<th>change<small>points &#177; SE</small>"
            "<th>learning rate</tr></thead>\n<tbody>\n",
            e->tested ? "test" : "validation");
}

static void put_row(const eff *e, const eff_row *r, FILE *f)
{
    const eff_row *b = &e->rows[0];

    fputs("<tr><td>", f);
    tac_page_print(f, "%s", r->label);
    if (r->missing > 0) tac_page_print(f, " (%zu diverged)", r->missing);
    fputs("</td>", f);
    for (int m = 0; m < EFF_MEMORY; m++) cell(f, 2, r->memory[m] / 1048576);
    cell(f, 2, r->memory_total / 1048576);
    cell_change(f, r->memory_total / b->memory_total - 1);
    cell(f, 1, r->bytes_step / 1e3);
    cell(f, 3, r->bytes_sample / 1e3);
    cell(f, 1, r->seconds * 1e6);
    cell_change(f, r->seconds / b->seconds - 1);
    for (size_t k = 0; k < e->n_networks; k++) cell(f, 1, r->modelled[k] * 1e6);
    cell_error(f, "%.2f", r->test_mean, r->test_error);
    cell_error(f, "%+.2f", r->gain, r->gain_error);
    fprintf(f, "<td>%g</td></tr>\n", r->lr);
}

static void put_table(const eff *e, FILE *f)
{
    static const char *const parts[] = {
        "Baseline", "Each alone",
        "Each added to the one before, the optimizers to mixed precision",
        "Another convention: the batch grows, steps get fewer"};

    fputs("<h2>Table</h2>\n<div class=\"box\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"Table\"><table class=\"all\">\n",
          f);
    put_columns(e, f);
    for (size_t i = 0; i < e->n_rows; i++) {
        const eff_row *r = &e->rows[i];

        if (r->n + r->missing == 0) continue;
        if (i == 0 || r->part != e->rows[i - 1].part)
            fprintf(f, "<tr class=\"part\"><th colspan=\"%zu\">%s</tr>\n",
                    17 + e->n_networks, parts[r->part]);
        put_row(e, r, f);
    }
    fputs("</tbody></table></div>\n", f);
}

static void put_terms(const eff *e, FILE *f)
{
    fputs("<h2>What the columns mean</h2>\n<dl class=\"terms\">\n", f);
    fact(
        f, "memory",
        "counted after the first step, of one rank; parameters include 16-bit "
        "working weights, communication the buffers of codecs, of local SGD "
        "and of the averaged model; other is the kernels' scratch and the data "
        "loader. The data set, which a process has once, is in no column");
    fact(f, "sent",
         "what ranks contribute, encoded: a rank's a step; all ranks' a "
         "sample");
    fact(f, "time here",
         "seconds of training by samples of all ranks; median over seeds, "
         "whose runs are interleaved");
    for (size_t k = 0; k < e->n_networks; k++)
        fact(f, e->network_names[k],
             "the same on a network of %s, modelled from the row's own "
             "computing time and bytes",
             e->network_links[k]);
    fact(f, "accuracy", "%s",
         e->o->seeds > 1
             ? "mean over seeds with its standard error; the change is a mean "
               "of differences, seed by seed"
             : "of one seed; the standard error is that of so many images");
    fputs("</dl>\n<h2>Again</h2>\n<pre>", f);
    tac_page_print(f, "%s", e->command);
    fputs("</pre>\n</body>\n</html>\n", f);
}

static void document(const eff *e, FILE *f)
{
    put_head(e, f);
    put_finding(e, f);
    fputs("<h2>Picture</h2>\n<p class=\"note\">Dashed lines are the baseline's "
          "values; a pointer on a bar shows its value.</p>\n"
          "<div class=\"box wide\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"Picture\">\n",
          f);
    eff_picture(e, f, 0);
    fputs("</div>\n", f);
    put_table(e, f);
    put_terms(e, f);
}

tac_status eff_write_page(const eff *e, const char *path)
{
    FILE *f = fopen(path, "w");

    if (f) document(e, f);
    if (f && !(ferror(f) | fclose(f))) return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_IO, "cannot write %s: %s; check the folder",
                    path, strerror(errno));
}
