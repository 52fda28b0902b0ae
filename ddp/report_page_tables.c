/* Where the time of a step went, what was sent, what memory was for. */
#include <math.h>
#include <string.h>

#include "report_page_impl.h"

/* ---- time -----------------------------------------------------------------
 */

typedef struct share {
    const char *name, *what;
    double s;
    const char *colour; /* "c1", a variable of the style sheet */
} share;

static void put_bar(const tac__report_page *p, const share *parts, size_t n,
                    double all)
{
    fputs(
        "<div class=\"bar\" role=\"img\" aria-label=\"Time by part, as in the "
        "table\">",
        p->f);
    for (size_t i = 0; i < n; i++)
        if (parts[i].s > 0)
            fprintf(p->f,
                    "<span style=\"width:%.3f%%;background:var(--tac-%s)\">"
                    "</span>",
                    100 * parts[i].s / all, parts[i].colour);
    fputs("</div>\n", p->f);
}

/* Under the bar, on its scale: communication, as far as it was exposed and as
 * far as computing hid it. */
static void put_hidden_bar(const tac__report_page *p, double exposed,
                           double hidden, double all)
{
    fprintf(p->f,
            "<div class=\"bar thin\" role=\"img\" aria-label=\"Communication "
            "that was exposed, and that computing hid\"><span "
            "style=\"width:%.3f%%;background:var(--tac-c1)\"></span><span "
            "class=\"hid\" style=\"width:%.3f%%\"></span></div>\n",
            100 * exposed / all, 100 * fmin(hidden, all - exposed) / all);
}

static void put_share(const tac__report_page *p, const share *part, double all,
                      double steps)
{
    char a[TAC_PAGE_TEXT], b[TAC_PAGE_TEXT], c[TAC_PAGE_TEXT];

    fprintf(p->f,
            "<tr><td><span class=\"swatch %s\" "
            "style=\"background-color:var(--tac-%s)\"></"
            "span>%s<td>%s<td>%s<td>%s<td class=\"t\">%s</tr>\n",
            strcmp(part->colour, "hid") ? "" : "hid",
            strcmp(part->colour, "hid") ? part->colour : "soft", part->name,
            tac_page_seconds(part->s, a), tac_page_share(part->s / all, b),
            tac_page_seconds(part->s / steps, c), part->what);
}

static void put_time(const tac__report_page *p)
{
    const double all = tac__report_number(p, "train_s");
    const double steps = tac__report_number(p, "attempts");
    share parts[] = {
        {"forward", "loss included", tac__report_number(p, "forward_s"), "c0"},
        {"backward", "computing alone", tac__report_number(p, "backward_s"),
         "c2"},
        {"update", "check, clip, optimizer", tac__report_number(p, "update_s"),
         "c3"},
        {"communication, exposed", "in which nothing was computed",
         tac__report_number(p, "comm_exposed_s"), "c1"},
        {"rest", "batches, logging", 0, "grey"}};
    const size_t n = sizeof parts / sizeof *parts;
    char a[TAC_PAGE_TEXT], b[TAC_PAGE_TEXT];

    if (!(all > 0) || !(steps > 0)) return;
    parts[4].s = all;
    for (size_t i = 0; i + 1 < n; i++) {
        if (!(parts[i].s > 0)) parts[i].s = 0;
        parts[4].s -= parts[i].s;
    }
    if (parts[4].s < 0) parts[4].s = 0;
    fputs("<h2>Where the time of a step went</h2>\n", p->f);
    const double comm = tac__report_number(p, "comm_s");
    const share hidden = {"communication, hidden",
                          "behind computing: costs no time of its own",
                          comm - parts[3].s, "hid"};
    put_bar(p, parts, n, all);
    if (hidden.s > 0) put_hidden_bar(p, parts[3].s, hidden.s, all);
    fputs("<div class=\"box\" tabindex=\"0\"><table><thead><tr><th>part<th>in "
          "all<th>share<th>a step<th class=\"t\">is</tr></thead><tbody>\n",
          p->f);
    for (size_t i = 0; i < n; i++) put_share(p, &parts[i], all, steps);
    if (hidden.s > 0) put_share(p, &hidden, all, steps);
    fputs("</tbody></table></div>\n<p>", p->f);
    if (comm > 0)
        tac_page_print(
            p->f,
            "Rank 0's wall time. Communication was under way for %s in all, of "
            "which computing hid %.0f %%; %s of it was waiting for other "
            "ranks.",
            tac_page_seconds(comm, a), 100 * fmax(0, 1 - parts[3].s / comm),
            tac_page_seconds(tac__report_number(p, "wait_s"), b));
    else
        tac_page_print(p->f, "Rank 0's wall time. Nothing was communicated.");
    fputs("</p>\n", p->f);
}

/* ---- bytes ----------------------------------------------------------------
 */

static void put_bytes_row(const tac__report_page *p, const char *key,
                          const char *name, const char *what)
{
    const double v = tac__report_number(p, key);
    const double steps = tac__report_number(p, "attempts");
    char a[TAC_PAGE_TEXT], b[TAC_PAGE_TEXT];

    if (isnan(v)) return;
    fprintf(p->f, "<tr><td>%s<td>%s<td>%s<td class=\"t\">%s</tr>\n", name,
            tac_page_bytes(v, a),
            steps > 0 ? tac_page_bytes(v / steps, b) : "-", what);
}

static void put_bytes(const tac__report_page *p)
{
    const double predicted = tac__report_number(p, "bytes_predicted");
    const double counted = tac__report_number(p, "bytes_sync_wire");

    if (isnan(counted)) return;
    fputs("<h2>What was sent</h2>\n<div class=\"box\" tabindex=\"0\"><table>"
          "<thead><tr><th>bytes of all ranks<th>in all<th>a step"
          "<th class=\"t\">is</tr></thead><tbody>\n",
          p->f);
    put_bytes_row(p, "bytes_sync_logical", "averaging, logical",
                  "what ranks contribute to averages");
    put_bytes_row(p, "bytes_sync_wire", "averaging, on the wire",
                  "the same, encoded");
    put_bytes_row(p, "bytes_predicted", "averaging, predicted",
                  "from the configuration, before training");
    put_bytes_row(p, "bytes_wire", "everything",
                  "set-up, losses and evaluations included");
    put_bytes_row(p, "bytes_between_hosts", "between hosts",
                  "what algorithms sent from host to host");
    fputs("</tbody></table></div>\n<p>", p->f);
    if (isnan(predicted))
        tac_page_print(p->f, "What this run sends could not be predicted.");
    else
        tac_page_print(p->f, "Predicted and counted bytes %s.",
                       predicted == counted ? "are equal" : "DIFFER");
    const double distance = tac__report_number(p, "consensus_distance");
    if (!isnan(distance))
        tac_page_print(p->f,
                       " Before one of the last averages the replicas' mean "
                       "squared distance from their mean was %.3g.",
                       distance);
    fputs("</p>\n", p->f);
}

/* ---- memory ---------------------------------------------------------------
 */

static void put_kind(const tac__report_page *p, const char *kind,
                     const json_t *row)
{
    const double predicted = tac__report_value(row, "predicted");
    const double measured = tac__report_value(row, "measured");

    if (!(predicted > 0) && !(measured > 0)) return;
    fputs("<tr><td>", p->f);
    for (const char *c = kind; *c; c++)
        tac_page_print(p->f, "%c", *c == '_' ? ' ' : *c);
    fprintf(p->f, "<td>%.2f<td>%.2f</tr>\n", measured / 1048576,
            predicted / 1048576);
}

static void put_memory(const tac__report_page *p)
{
    json_t *memory = json_object_get(p->summary, "memory"), *row;
    const double rss = tac__report_number(p, "peak_rss_bytes");
    const char *kind;

    if (!json_is_object(memory)) return;
    fputs(
        "<h2>Memory</h2>\n<div class=\"box\" tabindex=\"0\"><table><thead><tr>"
        "<th>kind<th>measured<small>MiB a rank</small><th>predicted<small>MiB "
        "a rank</small></tr></thead><tbody>\n",
        p->f);
    json_object_foreach(memory, kind, row)
    {
        if (json_is_object(row)) put_kind(p, kind, row);
    }
    fputs("</tbody></table></div>\n<p>", p->f);
    tac_page_print(p->f,
                   "The data set is a process's share of it. The largest "
                   "process had %.1f MiB resident, programs and libraries "
                   "included.",
                   rss / 1048576);
    fputs("</p>\n", p->f);
}

void tac__report_page_tables(const tac__report_page *p)
{
    if (!p->summary) return;
    put_time(p);
    put_bytes(p);
    put_memory(p);
}
