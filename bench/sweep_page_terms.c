/* sweep_page_terms.c: what the words mean, and how to do it again. */
#include <math.h>

#include "sweep_page.h"

static const struct {
    const char *term, *meaning;
} terms[] = {
    {"H (sync_every)",
     "steps of a rank between two averages; 0 where there is none"},
    {"step", "one optimizer step on --batch samples of each rank; with "
             "accumulation of H, on H times as many"},
    {"per-step", "gradients are averaged in every step: the usual data "
                 "parallelism, overlapped with backward"},
    {"accumulation", "H micro-steps, then one averaged optimizer step: the "
                     "bytes of averaging every H steps, with an H times "
                     "larger batch"},
    {"local, slowmo, diloco, ...",
     "parameters are averaged every H steps: plainly, with a slow momentum, "
     "with an outer Nesterov optimizer (docs/localsgd.md)"},
    {"one-shot averaging", "one average, at the end of the run"},
    {"no averaging", "ranks train apart; its figures are means over ranks"},
    {"codec (compress)", "how what is exchanged is encoded; of local modes the "
                         "differences of parameters, else the gradients"},
    {"learning rate (lr)",
     "the peak, chosen for the case by the least validation loss"},
    {"samples", "of all ranks together, in training"},
    {"exchanges (syncs)", "gradients or parameters were averaged so often"},
    {"bytes (predicted, counted)",
     "what one rank contributes to training's own exchange, after encoding, "
     "whatever the algorithm; evaluation and set-up not included. Predicted: "
     "from the configuration, before training"},
    {"wall (wall_s)", "seconds of training on this machine, evaluations not "
                      "included"},
    {"wall predicted (wall_predicted_s)",
     "sum over the intervals of the slowest rank's compute, measured with "
     "--sync none, plus exchanges times the seconds of one, measured with "
     "--skip-compute"},
    {"modelled (modelled_s)",
     "seconds that the simulator gives for the run on a network that is not "
     "here (docs/localsgd_sim.md): compute as measured here with --sync none, "
     "a ring of all ranks, 2(M-1) latencies and 2(1-1/M) times the bytes over "
     "the bandwidth for each exchange. Averages wait for the step and the "
     "next step for them; gradients leave behind backward in the reducer's "
     "buckets, and of accumulation behind the last micro-step. Compute is "
     "spread equally over layers. Codecs take no time"},
    {"training loss", "mean over the last epoch"},
    {"validation loss and accuracy",
     "of the averaged model, on the validation split, at the end"},
    {"test accuracy", "of the averaged model, on the test images, once"},
    {"local accuracy", "on validation, mean over ranks of their own models "
                       "just before the last average"},
    {"consensus distance",
     "mean over ranks of the squared 2-norm of (own parameters - mean), just "
     "before the last average"},
    {"points", "percentage points"},
    {"kB, MB, GB", "1000, 1000 000, 1000 000 000 bytes"},
};

static void network_term(sweep_page *p, const tac_sim_network_entry *e)
{
    tac__page_html(p, "<dt>");
    tac__page_text(p, e->name);
    tac__page_html(p, "</dt><dd>");
    tac__page_text(p, e->doc);
    tac__page_html(p, " (nominal, not measured)</dd>\n");
}

static void definitions(sweep_page *p)
{
    tac__page_html(p, "<dl class=\"terms\">\n");
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        tac__page_html(p, "<dt>");
        tac__page_text(p, terms[i].term);
        tac__page_html(p, "</dt><dd>");
        tac__page_text(p, terms[i].meaning);
        tac__page_html(p, "</dd>\n");
    }
    for (int k = 0; k < p->s->n_networks; k++)
        network_term(p, p->s->networks[k]);
    tac__page_html(p, "</dl>\n");
}

/* ---- do it again -----------------------------------------------------------
 */

static void option(sweep_page *p, const char *key, const char *value)
{
    if (value && value[0]) tac__page_print(p, " \\\n    --%s '%s'", key, value);
}

static void number(sweep_page *p, const char *key, double value)
{
    if (value > 0) tac__page_print(p, " \\\n    --%s %.12g", key, value);
}

/* Where the line that was typed is not known. */
static void from_options(sweep_page *p)
{
    const sweep_options *o = p->s->o;
    tac__page_print(p, "bench/localsgd_sweep");
    option(p, "sync", o->sync);
    option(p, "sync-every", o->sync_every);
    option(p, "compress", o->compress);
    option(p, "model", o->model);
    option(p, "data", o->data);
    option(p, "optimizer", o->optimizer);
    option(p, "shards", o->shards);
    option(p, "precision", o->precision);
    option(p, "emulate", o->emulate);
    number(p, "batch", (double)o->batch);
    number(p, "epochs", o->steps > 0 ? 0 : o->epochs);
    number(p, "steps", (double)o->steps);
    number(p, "seeds", (double)o->seeds);
    number(p, "ranks", (double)o->ranks);
    option(p, "networks", o->networks);
    option(p, "extra", o->extra);
}

static void again(sweep_page *p)
{
    tac__page_html(p, "<section id=\"again\" aria-label=\"Do it again\">\n"
                      "<h2>Do it again</h2>\n<pre><code>");
    if (p->s->command && p->s->command[0])
        tac__page_text(p, p->s->command);
    else
        from_options(p);
    tac__page_html(p, "</code></pre>\n");
    if (p->s->o->out && p->s->o->out[0]) {
        tac__page_html(p, "<p>Each run left a folder of its own, with its "
                          "configuration and all of its figures, in <code>");
        tac__page_text(p, p->s->o->out);
        tac__page_html(p,
                       "/runs</code>; one that is there is not run again, "
                       "so an interrupted sweep goes on where it was.</p>\n");
    }
    tac__page_html(p, "</section>\n");
}

void tac__page_terms(sweep_page *p)
{
    tac__page_html(p, "<section id=\"terms\" aria-label=\"Terms\">\n"
                      "<h2>Terms</h2>\n");
    definitions(p);
    tac__page_html(p, "</section>\n");
    again(p);
}
