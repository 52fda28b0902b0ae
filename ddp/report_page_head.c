/* What was trained on what, how well; and what to mind before believing it. */
#include <math.h>
#include <string.h>

#include "report_page_impl.h"

static void fact(const tac__report_page *p, const char *name)
{
    fprintf(p->f, "<dt>%s</dt><dd>", name);
}

static void fact_end(const tac__report_page *p)
{
    fputs("</dd>\n", p->f);
}

static double number(const tac__report_page *p, const char *key)
{
    return tac__report_number(p, key);
}

static void put_accuracy(const tac__report_page *p)
{
    const double a = number(p, "test_accuracy"), n = number(p, "test_samples");
    char text[TAC_PAGE_TEXT];

    fact(p, "Test");
    if (!(a >= 0 && a <= 1)) {
        tac_page_print(p->f, "not evaluated");
    } else {
        tac__report_put(p, "accuracy %s", 2, 100 * a);
        if (n > 0)
            tac_page_print(p->f,
                           " \xc2\xb1 %.2f %% (standard error, of %s "
                           "samples)",
                           100 * sqrt(a * (1 - a) / n),
                           tac_page_count(n, text));
        else
            tac_page_print(p->f, " %%");
        tac__report_put(p, ", loss %s", 4, number(p, "test_loss"));
    }
    fact_end(p);
    if (isnan(number(p, "eval_accuracy"))) return;
    fact(p, "Validation");
    tac__report_put(p, "accuracy %s %", 2, 100 * number(p, "eval_accuracy"));
    tac__report_put(p, ", loss %s", 4, number(p, "eval_loss"));
    fact_end(p);
}

static void put_ranks(const tac__report_page *p)
{
    const double hosts = number(p, "hosts"), threads = number(p, "threads");

    fact(p, "Ranks");
    tac__report_put(p, "%s", 0, number(p, "world"));
    tac__report_put(p, hosts == 1 ? " on %s host" : " on %s hosts", 0, hosts);
    tac_page_print(p->f, " over %s", tac__report_string(p, "transport"));
    tac__report_put(p, threads == 1 ? ", %s thread each" : ", %s threads each",
                    0, threads);
    fact_end(p);
}

static void put_averaging(const tac__report_page *p)
{
    const char *sync = tac__report_string(p, "sync");
    const char *codec = tac__report_string(p, "compress");
    char text[TAC_PAGE_TEXT], every[TAC_PAGE_TEXT];

    fact(p, "Averaging");
    if (!strcmp(sync, "grad"))
        tac_page_print(p->f, "gradients in every step");
    else if (!strcmp(sync, "none"))
        tac_page_print(p->f, "none");
    else
        tac_page_print(p->f, "%s: parameters every %s steps, %s times", sync,
                       tac_page_count(number(p, "sync_every"), every),
                       tac_page_count(number(p, "syncs"), text));
    if (*codec && strcmp(codec, "none") != 0)
        tac_page_print(p->f, ", as %s", codec);
    fact_end(p);
}

static void put_amount(const tac__report_page *p)
{
    char a[TAC_PAGE_TEXT], b[TAC_PAGE_TEXT];

    fact(p, "Training");
    tac_page_print(p->f, "%s steps of %s samples",
                   tac_page_count(number(p, "steps"), a),
                   tac_page_count(number(p, "global_batch"), b));
    tac__report_put(p, ", %s epochs", 2, number(p, "epochs"));
    tac_page_print(p->f, ", in %s (%s with evaluations and set-up)",
                   tac_page_seconds(number(p, "train_s"), a),
                   tac_page_seconds(number(p, "wall_s"), b));
    if (number(p, "resumed") > 0)
        tac_page_print(p->f, "; the last start went on from step %s",
                       tac_page_count(number(p, "resumed"), a));
    fact_end(p);
    fact(p, "Throughput");
    tac_page_print(p->f, "%s samples/s",
                   tac_page_count(number(p, "samples_per_s"), a));
    fact_end(p);
}

static void warn(const tac__report_page *p, const char *text)
{
    fputs("<p class=\"warn\">", p->f);
    tac_page_print(p->f, "%s", text);
    fputs("</p>\n", p->f);
}

static void put_failure(const tac__report_page *p, const json_t *line)
{
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const char *why = json_string_value(json_object_get(line, "message"));

    if (!kind || strcmp(kind, "failed") != 0 || !why) return;
    fputs("<p class=\"warn\">", p->f);
    tac_page_print(p->f, "The run failed: %s", why);
    fputs("</p>\n", p->f);
}

static void put_warnings(const tac__report_page *p)
{
    char text[200];

    for (size_t i = 0; i < p->n; i++) put_failure(p, p->lines[i]);
    if (!p->summary)
        warn(p,
             "There is no summary.json: the run is under way, failed or was "
             "killed. ddp_train with the same options and --resume auto goes "
             "on from its last checkpoint; one that diverged needs another "
             "--lr or --clip-norm.");
    if (tac__report_is_true(p, "interrupted"))
        warn(p, "The run was interrupted. ddp_train with the same options and "
                "--resume auto goes on from its last checkpoint, if it saves "
                "any (--save-every).");
    if (tac__report_is_true(p, "oversubscribed"))
        warn(p, "Oversubscribed: more compute threads than CPUs, so times of a "
                "rank contain other ranks' computing.");
    if (number(p, "skipped_steps") > 0.1 * number(p, "attempts"))
        warn(p,
             "More than a tenth of the steps were skipped, because gradients "
             "had inf or NaN: lower --lr or --init-scale.");
    if (p->damaged) {
        snprintf(text, sizeof text,
                 "%zu lines of metrics.jsonl are damaged and left out.",
                 p->damaged);
        warn(p, text);
    }
}

void tac__report_page_head(const tac__report_page *p)
{
    char text[TAC_PAGE_TEXT];

    fputs("<h1>", p->f);
    if (p->summary)
        tac_page_print(p->f, "%s on %s", tac__report_string(p, "model"),
                       tac__report_string(p, "data"));
    else
        tac_page_print(p->f, "A run without summary");
    fputs("</h1>\n", p->f);
    put_warnings(p);
    if (!p->summary) return;
    fputs("<dl class=\"facts\">\n", p->f);
    put_accuracy(p);
    put_amount(p);
    put_ranks(p);
    put_averaging(p);
    fact(p, "Model");
    tac_page_print(p->f, "%s parameters, %s, in %s",
                   tac_page_count(number(p, "parameters"), text),
                   tac__report_string(p, "optimizer"),
                   tac__report_string(p, "precision"));
    fact_end(p);
    fact(p, "Hash");
    fputs("<code>", p->f);
    tac_page_print(p->f, "%s", tac__report_string(p, "params_hash"));
    fputs("</code> of the parameters", p->f);
    fact_end(p);
    fputs("</dl>\n", p->f);
}
