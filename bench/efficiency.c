/* efficiency: what each technique that saves memory, communication or
 * computing saves, and what it costs, in one table. docs/efficiency.md is the
 * manual. */
#include "efficiency.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runs_impl.h"
#include "runs_main.h"
#include "sweep_setup.h"

static const char summary[] =
    "Trains one model with a baseline (fp32, AdamW, gradients averaged every "
    "step) and with each technique that saves memory, communication or "
    "computing, alone and added one to the other, on the same samples; tells "
    "memory by kind, bytes between ranks, seconds a sample and accuracy, as a "
    "table, CSV, JSON, a picture and one HTML page. Runs ddp_train as child "
    "processes and goes on where it was stopped.";

static const char epilogue[] =
    "Examples:\n"
    "  efficiency --out table                  about three minutes on two "
    "cores\n"
    "  efficiency --quick --out quick          half a minute\n"
    "  efficiency --model mlp:512,512,512,512,512,512,512,512 --out deep\n"
    "  efficiency --launch \"mpirun -np {}\" --ranks 4\n"
    "  efficiency --emulate hosts=2,rate=100mbit,delay=10ms\n"
    "  efficiency --print table/efficiency.json\n"
    "\n"
    "Exit codes: 0 ok, 1 a run failed, or samples or bytes are not what they "
    "should be;\n2 usage or configuration; 75 stopped by a signal: the same "
    "command goes on.\n";

/* The one thing that a handler may touch. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
    stop_requested = number;
}

/* ---- files -----------------------------------------------------------------
 */

/* Each file's path: as given, else DIR/efficiency.ENDING; owned. */
typedef struct paths {
    char *html, *svg, *csv, *json;
    int lock;
} paths;

static char *path_of(const eff_options *o, const char *given,
                     const char *ending)
{
    return given ? strdup(given)
                 : runs_format("%s/efficiency.%s", o->out, ending);
}

static tac_status name_files(eff *e, paths *p)
{
    const eff_options *o = e->o;

    p->html = path_of(o, o->html, "html");
    p->svg = path_of(o, o->svg, "svg");
    p->csv = path_of(o, o->csv, "csv");
    p->json = path_of(o, o->json, "json");
    if (!p->html || !p->svg || !p->csv || !p->json)
        return tac_fail(e->ctx, TAC_ERR_NOMEM, "no memory");
    TAC_TRY(runs_try_file(e->ctx, p->html));
    TAC_TRY(runs_try_file(e->ctx, p->svg));
    TAC_TRY(runs_try_file(e->ctx, p->csv));
    return runs_try_file(e->ctx, p->json);
}

static tac_status write_files(const eff *e, const paths *p)
{
    const tac_status json = p->json ? eff_write_json(e, p->json) : TAC_OK;
    const tac_status csv = p->csv ? eff_write_csv(e, p->csv) : TAC_OK;
    const tac_status svg = p->svg ? eff_write_svg(e, p->svg) : TAC_OK;
    const tac_status html = p->html ? eff_write_page(e, p->html) : TAC_OK;

    return json < 0 ? json : csv < 0 ? csv : svg < 0 ? svg : html;
}

/* ---- the table -------------------------------------------------------------
 */

static tac_status tell(eff *e, const paths *p, tac_status how)
{
    if (e->rows[0].n == 0) eff_rows_finish(e);
    const tac_status modelled = eff_model(e);
    const tac_status written = write_files(e, p);
    const tac_status right = eff_check(e);

    eff_print_table(e);
    if (written >= 0 && !e->o->quiet)
        printf("\nwritten: %s, %s, %s, %s\n", p->html, p->svg, p->csv, p->json);
    if (how < 0) return how;
    return modelled < 0 ? modelled : written < 0 ? written : right;
}

static tac_status set_up_runs(eff *e, const sweep_launcher *l)
{
    const eff_options *o = e->o;

    e->world = l->size > 0 && !o->launch ? l->size : (int)o->ranks;
    if (o->launch && *o->launch)
        e->launch = runs_launch(o->launch, e->world);
    else if (!o->launch && l->size > 0)
        e->launch = runs_format("%s %d", l->command, l->size);
    TAC_TRY(runs_choose_program(e->ctx, o->program, &e->program));
    e->runs = (runs){.ctx = e->ctx,
                     .root = o->out,
                     .program = e->program,
                     .launch = e->launch,
                     .ranks = e->world,
                     .timeout_s = o->timeout_s,
                     .stop = &stop_requested};
    return TAC_OK;
}

static void say_plan(const eff *e)
{
    eff_print_begin(e);
    for (size_t i = 0; i < e->n_rows; i++)
        printf("  %-46s %s\n", e->rows[i].label,
               e->rows[i].searches && e->n_lrs > 1 ? "searches" : "");
}

static tac_status measure(eff *e, const paths *p)
{
    eff_print_begin(e);
    runs_catch_signals(on_signal);
    const tac_status how = eff_run(e);

    eff_print_clear(e);
    eff_rows_finish(e);
    if (how == TAC_ERR_INTERRUPTED && !e->o->quiet)
        printf("\nstopped after %zu of %zu runs; the same command goes on:\n"
               "  %s\n",
               e->runs_done, e->runs_planned, e->command);
    return e->rows[0].n == 0 && how < 0 ? how : tell(e, p, how);
}

static tac_status run(eff *e, const sweep_launcher *l, paths *p)
{
    TAC_TRY(set_up_runs(e, l));
    TAC_TRY(eff_plan(e));
    if (e->o->dry_run) {
        say_plan(e);
        return TAC_OK;
    }
    TAC_TRY(runs_lock(e->ctx, e->o->out, &p->lock));
    TAC_TRY(name_files(e, p));
    if (e->o->fresh) runs_forget(e->o->out);
    return measure(e, p);
}

/* Only what is asked for by name. */
static tac_status print_file(eff *e, eff_options *o, paths *p)
{
    TAC_TRY(eff_read_json(e, o->print));
    o->seeds = e->seeds_done;
    eff_rows_finish(e);
    if (o->markdown)
        eff_print_markdown(e, stdout);
    else
        eff_print_table(e);
    p->html = o->html ? strdup(o->html) : NULL;
    p->svg = o->svg ? strdup(o->svg) : NULL;
    p->csv = o->csv ? strdup(o->csv) : NULL;
    return write_files(e, p);
}

static tac_status run_with(tac_context *ctx, eff_options *o,
                           const sweep_launcher *l, char *command)
{
    eff *e = calloc(1, sizeof *e);
    paths p = {.lock = -1};

    if (!e) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory");
    e->o = o;
    e->ctx = ctx;
    e->command = strdup(command);
    const tac_status s = o->print ? print_file(e, o, &p) : run(e, l, &p);
    if (p.lock >= 0) close(p.lock);
    free(p.html);
    free(p.svg);
    free(p.csv);
    free(p.json);
    free(e->command);
    free(e->launch);
    free(e->program);
    free(e);
    return s;
}

int main(int argc, char **argv)
{
    eff_options opt;
    const tac_options_config config = {"efficiency", summary, epilogue,
                                       eff_table, &opt};
    const sweep_launcher launcher = sweep_find_launcher();
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;

    if (launcher.rank > 0) return 0; /* rank 0 starts all children */
    if (sweep_of_many_tasks(&launcher, "efficiency")) return 2;
    char *command = runs_command_line(argc, argv);
    if (!command || tac_context_create(NULL, &ctx) < 0) return 1;
    tac_status s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = runs_read_options(ctx, o, argc, argv, &action);
    if (s >= 0) s = eff_options_resolve(ctx, o, &opt);
    if (s >= 0 && !runs_act("efficiency", o, action))
        s = run_with(ctx, &opt, &launcher, command);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    free(command);
    return tac_options_end("efficiency", runs_exit_code(s));
}
