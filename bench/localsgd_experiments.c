/* localsgd_experiments: claims of the literature about local SGD, measured.
 * docs/experiments.md has what came out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "tacit/clock.h"
#include "runs_main.h"

enum { STOPPED = 75 };

static const char summary[] =
    "Measures what is claimed about local SGD, one experiment a claim, and "
    "says "
    "whether it holds here. Names go before or between the options: "
    "localsgd_experiments E1 E3 --quick; all: all of them.";

/* The one thing that a signal can reach. */
static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

static void watch_signals(void)
{
    struct sigaction a = {.sa_handler = ask_to_stop};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* ---- running -------------------------------------------------------------
 */

static void print_report(const exp_bench *b, const exp_report *r, int *holds)
{
    if (b->o->markdown)
        exp_print_markdown(r, stdout);
    else
        exp_print_text(r, stdout);
    *holds &= exp_holds(r);
}

static tac_status run_one(exp_bench *b, const experiment *e, json_t *all,
                          int *holds)
{
    exp_report r;
    const double begin = tac_clock_s();
    exp_say(b, "%s: %s", e->name, e->title);
    TAC_TRY(exp_report_begin(&r, b, e));
    const tac_status s = e->run(b, &r);
    if (s >= 0) {
        exp_report_end(&r, tac_clock_s() - begin);
        print_report(b, &r, holds);
        json_array_append(all, r.json);
    }
    exp_report_free(&r);
    return s;
}

static tac_status write_json(const exp_bench *b, const json_t *all)
{
    if (!b->o->json) return TAC_OK;
    if (json_dump_file(all, b->o->json, JSON_INDENT(1)) == 0) return TAC_OK;
    return tac_fail(b->ctx, TAC_ERR_IO, "can't write %s: %m", b->o->json);
}

static void print_verdicts(const exp_bench *b, const json_t *all)
{
    if (json_array_size(all) > 1)
        exp_print_verdicts(all, b->o->markdown, stdout);
}

/* --print: the reports of a file, all or those that are asked for. */
static tac_status print_file(exp_bench *b, const exp_wanted *w, int *holds)
{
    json_error_t error;
    json_t *all = json_load_file(b->o->print, 0, &error);
    if (!json_is_array(all)) {
        const char *why = all ? "it holds no array" : error.text;
        json_decref(all);
        return tac_fail(b->ctx, TAC_ERR_CONFIG, "%s is no file of --json: %s",
                        b->o->print, why);
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        const exp_report r = {.json = json_array_get(all, i)};
        const char *name =
            json_string_value(json_object_get(r.json, "experiment"));
        const experiment *e = name ? exp_find(name) : NULL;
        if (e && (w->n == 0 || exp_is_wanted(w, e))) print_report(b, &r, holds);
    }
    if (w->n == 0) print_verdicts(b, all);
    json_decref(all);
    return TAC_OK;
}

/* What is measured when something fails is kept. */
static tac_status run_all(exp_bench *b, const exp_wanted *w, int *holds)
{
    json_t *all = json_array();
    tac_status s = TAC_OK;
    if (!all) return tac_fail(b->ctx, TAC_ERR_NOMEM, "no memory for results");
    for (size_t k = 0; k < w->n && s >= 0; k++)
        s = run_one(b, w->list[k], all, holds);
    print_verdicts(b, all);
    const tac_status written = write_json(b, all);
    json_decref(all);
    return s < 0 ? s : written;
}

static tac_status find_program(exp_bench *b)
{
    TAC_TRY(runs_choose_program(b->ctx, b->o->program, &b->program));
    b->runs.program = b->program;
    return TAC_OK;
}

static tac_status run(tac_context *ctx, const exp_options *o,
                      const exp_wanted *w, int *holds)
{
    exp_bench b = {.ctx = ctx, .o = o, .stop = &stop_asked};
    if (o->print) return print_file(&b, w, holds);
    if (w->n == 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "which experiment? Give names, or all; --help lists "
                        "them");
    b.runs = (runs){.ctx = ctx,
                    .root = o->out,
                    .ranks = o->ranks,
                    .timeout_s = o->timeout_s,
                    .stop = &stop_asked};
    watch_signals();
    tac_status s = find_program(&b);
    if (s >= 0) s = run_all(&b, w, holds);
    free(b.program);
    return s;
}

/* ---- main ----------------------------------------------------------------
 */

static char *make_epilogue(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return NULL;
    fprintf(f, "Experiments:\n");
    for (const experiment *e = exp_experiments; e->name; e++)
        fprintf(f, "  %-4s %s\n", e->name, e->title);
    fprintf(f, "\nExit codes: 0 measured, whatever came out; 1 run-time "
               "failure, or with --strict\na claim that does not hold; 2 usage "
               "or configuration; 75 stopped by a signal.\n");
    fclose(f);
    return text;
}

static int exit_code(tac_status s, int holds, const exp_options *o)
{
    if (s >= 0) return o->strict && !holds;
    if (s == TAC_ERR_INTERRUPTED) return STOPPED;
    return s == TAC_ERR_CONFIG || s == TAC_ERR_ARG || s == TAC_ERR_UNSUPPORTED
               ? 2
               : 1;
}

int main(int argc, char **argv)
{
    exp_options opt = {0};
    char *epilogue = make_epilogue();
    const tac_options_config config = {"localsgd_experiments", summary,
                                       epilogue, exp_option_table, &opt};
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;
    exp_wanted names = {.n = 0};
    int holds = 1;
    if (tac_context_create(NULL, &ctx) < 0) return 1;
    tac_status s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = exp_take_names(ctx, &argc, argv, &names);
    if (s >= 0) s = runs_read_options(ctx, o, argc, argv, &action);
    if (s >= 0 && !runs_act("localsgd_experiments", o, action))
        s = run(ctx, &opt, &names, &holds);
    const int code = exit_code(s, holds, &opt);
    if (s == TAC_ERR_INTERRUPTED)
        fprintf(stderr,
                "stopped; the same command goes on from the runs in "
                "%s\n",
                opt.out);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    free(epilogue);
    return tac_options_end("localsgd_experiments", code);
}
