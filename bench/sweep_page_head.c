/* sweep_page_head.c: what was run, before what came out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sweep_page.h"

static void fact(sweep_page *p, const char *name)
{
    fprintf(p->f, "<dt>%s</dt><dd>", name);
}

static void end_fact(sweep_page *p)
{
    fputs("</dd>\n", p->f);
}

static const char *or_default(const char *text)
{
    return text && text[0] ? text : "default";
}

static void what(sweep_page *p)
{
    const sweep *s = p->s;
    fact(p, "Model");
    tac__page_print(p, "%s", or_default(s->o->model));
    if (s->params > 0)
        tac__page_print(p, ", %.0f parameters in %lld layer%s", s->params,
                        (long long)s->layers, s->layers == 1 ? "" : "s");
    end_fact(p);
    fact(p, "Data");
    tac__page_print(p, "%s, dealt to ranks: %s", or_default(s->o->data),
                    s->o->shards ? s->o->shards : "iid");
    end_fact(p);
    fact(p, "Ranks");
    tac__page_print(p, "%d, %s", s->world,
                    s->o->launch && s->o->launch[0] ? s->o->launch
                                                    : "threads of a process");
    if (s->o->threads > 0)
        tac__page_print(p, "; %lld thread%s each", (long long)s->o->threads,
                        s->o->threads > 1 ? "s" : "");
    if (s->o->emulate && s->o->emulate[0])
        tac__page_print(p, "; emulated network: %s", s->o->emulate);
    end_fact(p);
}

static void batch(sweep_page *p)
{
    const long long b = (long long)p->s->o->batch;
    fact(p, "Batch");
    tac__page_print(
        p,
        "%lld samples a rank and step, %lld over all ranks, whatever H is. "
        "Accumulation %s H adds up H such micro-steps and then takes one "
        "optimizer step. Every case sees the same samples",
        b, b * p->s->world, "\xc3\x97");
    if (p->s->o->steps > 0)
        tac__page_print(p, ": %lld steps", (long long)p->s->o->steps);
    else
        tac__page_print(p, ": %g epoch%s", p->s->o->epochs,
                        p->s->o->epochs == 1 ? "" : "s");
    if (p->s->too_long)
        tac__page_print(p,
                        ". There is no accumulation from H = %lld on: an "
                        "epoch has %lld micro-steps, and no step crosses its "
                        "end",
                        (long long)p->s->too_long,
                        (long long)p->s->epoch_batches);
    end_fact(p);
}

static void training(sweep_page *p)
{
    const sweep_options *o = p->s->o;
    fact(p, "Optimizer");
    tac__page_print(p, "%s, %s", or_default(o->optimizer),
                    o->precision ? o->precision : "fp32");
    if (o->extra && o->extra[0]) tac__page_print(p, "; %s", o->extra);
    end_fact(p);
    fact(p, "Seeds");
    tac__page_print(p, "%lld", (long long)o->seeds);
    end_fact(p);
    fact(p, "Learning rate");
    tac__page_print(p,
                    "searched for each case by itself (%s), %zu trials in all, "
                    "on the validation split alone; the test images were "
                    "looked at once, at the end of each run of a seed",
                    or_default(o->lrs), p->s->n_trials);
    end_fact(p);
}

/* Of the file; SOURCE_DATE_EPOCH makes it repeatable. */
static void made(sweep_page *p)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    const time_t now = fixed ? (time_t)atoll(fixed) : time(NULL);
    struct tm tm;
    char text[40] = "";
    if (gmtime_r(&now, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm);
    fact(p, "Made");
    tac__page_print(p, "%s by tacit %s", text, TAC_VERSION_STRING);
    end_fact(p);
}

static void computing(sweep_page *p)
{
    char text[SWEEP_TEXT];
    if (!(p->s->compute_s > 0)) return;
    fact(p, "Compute");
    tac__page_print(p,
                    "%s a step and rank, mean, measured without any exchange "
                    "(--sync none)",
                    tac_page_seconds(p->s->compute_s, text));
    end_fact(p);
}

static void warnings(sweep_page *p)
{
    if (p->s->oversubscribed)
        tac__page_html(
            p,
            "<p class=\"warn\"><strong>Oversubscribed:</strong> there are more "
            "ranks than CPU cores, so measured times contain other ranks' "
            "compute, and modelled times start from such a compute time. "
            "Losses, accuracies and bytes are not touched by it.</p>\n");
    if (p->s->o->quick)
        tac__page_html(
            p, "<p class=\"warn\"><strong>Quick:</strong> made with "
               "<code>--quick</code>, a smaller grid to see that all is "
               "well. Take no decision from it.</p>\n");
    if (p->s->failed) {
        tac__page_html(p,
                       "<p class=\"warn\"><strong>Incomplete:</strong> a run "
                       "failed, ");
        tac__page_text(p, p->s->failed);
        tac__page_html(p, ".</p>\n");
    }
}

void tac__page_head(sweep_page *p)
{
    const sweep_options *o = p->s->o;
    tac__page_html(p, "<header>\n<h1>");
    tac__page_print(p, "Local SGD sweep: %s on %s, %d rank%s",
                    or_default(o->model), or_default(o->data), p->s->world,
                    p->s->world == 1 ? "" : "s");
    tac__page_html(
        p,
        "</h1>\n<nav aria-label=\"Sections\"><a href=\"#finding\">Finding</a>"
        "<a href=\"#pictures\">Pictures</a><a href=\"#runs\">All runs</a>"
        "<a href=\"#rates\">Learning rates</a><a href=\"#terms\">Terms</a>"
        "<a href=\"#again\">Do it again</a></nav>\n");
    warnings(p);
    tac__page_html(p, "<dl class=\"facts\">\n");
    what(p);
    batch(p);
    training(p);
    computing(p);
    made(p);
    tac__page_html(p, "</dl>\n</header>\n");
}
