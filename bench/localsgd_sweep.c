/* localsgd_sweep: every way to talk less, compared fairly.
 * docs/localsgd_sweep.md is the manual. */
#include "localsgd_sweep.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runs_main.h"
#include "sweep_setup.h"

static const char summary[] =
    "Trains a model in every way to synchronise replicas, at every interval H, "
    "several seeds each, with a learning rate searched for each case on the "
    "validation samples alone; compares accuracy, bytes and time, measured and "
    "modelled. Runs ddp_train as child processes, goes on where it was "
    "stopped, "
    "and writes a table, CSV, JSON and one HTML page.";

static const char epilogue[] =
    "Examples:\n"
    "  localsgd_sweep --out sweep                the whole comparison\n"
    "  localsgd_sweep --quick --out quick        three minutes\n"
    "  mpirun -np 8 localsgd_sweep --out sweep   processes instead of threads\n"
    "  localsgd_sweep --dry-run                  how long would it take?\n"
    "  localsgd_sweep --sync diloco --compress none,int8,fp4 --sync-every 64\n"
    "  localsgd_sweep --shards dirichlet:0.3 --model cnn --epochs 2\n"
    "\n"
    "Exit codes: 0 ok, 1 a run failed, or bytes differ from those predicted;\n"
    "2 usage or configuration; 75 stopped by a signal: the same command goes "
    "on.\n";

/* The one thing that a handler may touch. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
    stop_requested = number;
}

/* ---- the sweep -------------------------------------------------------------
 */

static tac_status write_files(const sweep *s)
{
    tac_status worst = sweep_write_csv(s, s->o->csv);
    const tac_status json = sweep_write_json(s, s->o->json);
    const tac_status page = sweep_write_page(s, s->o->html);
    const tac_status picture = sweep_write_svg(s, s->o->svg);

    if (worst >= 0) worst = json < 0 ? json : page < 0 ? page : picture;
    if (worst >= 0 && !s->o->quiet)
        printf("\nwritten: %s, %s, %s, %s\n", s->o->html, s->o->svg, s->o->csv,
               s->o->json);
    return worst;
}

static tac_status measure(sweep *s)
{
    s->runs_planned += 1;
    TAC_TRY(sweep_measure_compute(s));
    TAC_TRY(sweep_measure_sync(s));
    sweep_print_measured(s);
    return TAC_OK;
}

/* Whatever was done is told, whether all was or not. */
static tac_status tell(sweep *s, tac_status how)
{
    const tac_status modelled = sweep_model(s);

    sweep_print_end(s);
    const tac_status written = write_files(s);
    const tac_status right = sweep_check(s);
    if (how < 0) return how;
    if (modelled < 0 || written < 0) return TAC_ERR_IO;
    if (right < 0) return TAC_ERR_MISMATCH;
    return s->failed ? TAC_ERR_IO : TAC_OK;
}

static tac_status run(sweep *s)
{
    sweep_print_begin(s);
    if (s->o->dry_run) return sweep_estimate(s);
    tac_status how = measure(s);
    if (how >= 0) how = sweep_run(s);
    sweep_print_clear(s);
    if (how == TAC_ERR_INTERRUPTED && !s->o->quiet)
        printf("\nstopped after %zu of %zu runs; the same command goes on:\n"
               "  %s\n",
               s->runs_done, s->runs_planned, s->command);
    if (s->n_rows == 0 && how < 0) return how;
    return tell(s, how);
}

static void sweep_free(sweep *s)
{
    for (size_t i = 0; i < s->n_rows; i++) sweep_row_free(&s->rows[i]);
    free(s->rows);
    free(s->trials);
    free(s->cases);
    free(s->lrs);
    free(s->attempt_s);
    free(s->layer_params);
}

static tac_status run_with(tac_context *ctx, sweep_options *o,
                           const sweep_launcher *l, const char *command)
{
    sweep_setup w = {.folder = 0};
    sweep s = {.o = o,
               .ctx = ctx,
               .command = command,
               .runs = {.stop = &stop_requested}};
    tac_status status = sweep_set_up(&s, o, l, &w);

    if (status >= 0) {
        runs_catch_signals(on_signal);
        status = run(&s);
    }
    sweep_free(&s);
    sweep_setup_free(&w);
    return status;
}

int main(int argc, char **argv)
{
    sweep_options opt;
    const tac_options_config config = {"localsgd_sweep", summary, epilogue,
                                       sweep_table, &opt};
    const sweep_launcher launcher = sweep_find_launcher();
    tac_options_action action = TAC_ACTION_RUN;
    tac_context *ctx = NULL;
    tac_options *o = NULL;

    if (launcher.rank > 0) return 0; /* rank 0 starts all children */
    if (sweep_of_many_tasks(&launcher, "localsgd_sweep")) return 2;
    char *command = runs_command_line(argc, argv);
    if (!command || tac_context_create(NULL, &ctx) < 0) return 1;
    tac_status s = tac_options_create(ctx, &config, &o);
    if (s >= 0) s = runs_read_options(ctx, o, argc, argv, &action);
    if (s >= 0) s = sweep_options_resolve(ctx, o, &opt);
    if (s >= 0 && !runs_act("localsgd_sweep", o, action))
        s = run_with(ctx, &opt, &launcher, command);
    tac_options_destroy(o);
    tac_context_destroy(ctx);
    free(command);
    return tac_options_end("localsgd_sweep", runs_exit_code(s));
}
