/* Before a sweep: its launcher, its folder, its files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep_setup.h"
#include "runs_impl.h"

/* ---- the launcher ----------------------------------------------------------
 */

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : 0;
}

sweep_launcher sweep_find_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE"))
        return (sweep_launcher){number_of("OMPI_COMM_WORLD_RANK"),
                                number_of("OMPI_COMM_WORLD_SIZE"),
                                "mpirun -np"};
    if (getenv("PMI_SIZE"))
        return (sweep_launcher){number_of("PMI_RANK"), number_of("PMI_SIZE"),
                                "mpiexec -n"};
    return (sweep_launcher){0, 0, NULL};
}

int sweep_of_many_tasks(const sweep_launcher *l, const char *program)
{
    const int tasks = number_of("SLURM_STEP_NUM_TASKS");

    if (!getenv("SLURM_PROCID") || tasks <= 1 || l->size > 0) return 0;
    if (number_of("SLURM_PROCID") == 0)
        fprintf(stderr,
                "%s: srun has started it %d times; start it once "
                "(srun -n 1, or in the batch script itself) with --ranks N for "
                "threads as ranks, or with --launch \"srun --mpi=pmix -n N\"\n",
                program, tasks);
    return 1;
}

/* ---- names -----------------------------------------------------------------
 */

void sweep_setup_free(sweep_setup *w)
{
    free(w->program);
    free(w->launch);
    free(w->html);
    free(w->svg);
    free(w->csv);
    free(w->json);
    if (w->folder > 0) close(w->folder - 1);
}

static tac_status name_file(sweep *s, const char **path, const char *ending,
                            char **keep)
{
    if (*path) return TAC_OK;
    *keep = runs_format("%s/sweep.%s", s->o->out, ending);
    *path = *keep;
    return *keep ? TAC_OK : tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory");
}

static tac_status name_files(sweep *s, sweep_options *o, sweep_setup *w)
{
    TAC_TRY(name_file(s, &o->html, "html", &w->html));
    TAC_TRY(name_file(s, &o->svg, "svg", &w->svg));
    TAC_TRY(name_file(s, &o->csv, "csv", &w->csv));
    return name_file(s, &o->json, "json", &w->json);
}

/* "a|b|c" of all there are. */
static void name_networks(char *names, size_t bytes)
{
    *names = 0;
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        snprintf(names + strlen(names), bytes - strlen(names), "%s%s",
                 *names ? "|" : "", e->name);
}

tac_status sweep_networks(tac_context *ctx, const char *text,
                          const tac_sim_network_entry **out, size_t *count)
{
    const int all = strcmp(text, "all") == 0;
    char names[256], **list;
    size_t n;

    name_networks(names, sizeof names);
    TAC_TRY(sweep_list_names(ctx, "networks", all ? "nvlink" : text, names,
                             &list, &n));
    *count = 0;
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        for (size_t i = 0; i < n; i++)
            if ((all || strcmp(list[i], e->name) == 0) &&
                *count < SWEEP_NETWORKS)
                out[(*count)++] = e;
    free(list);
    return TAC_OK;
}

static tac_status choose_networks(sweep *s)
{
    size_t n = 0;

    TAC_TRY(sweep_networks(s->ctx, s->o->networks, s->networks, &n));
    s->n_networks = (int)n;
    return TAC_OK;
}

static tac_status set_up_runs(sweep *s, const sweep_launcher *l, sweep_setup *w)
{
    const sweep_options *o = s->o;

    s->world = l->size > 0 && !o->launch ? l->size : (int)o->ranks;
    if (!o->launch && l->size > 0)
        w->launch = runs_format("%s %d", l->command, l->size);
    else if (o->launch && *o->launch)
        w->launch = runs_launch(o->launch, s->world);
    TAC_TRY(runs_choose_program(s->ctx, o->program, &w->program));
    s->runs = (runs){.ctx = s->ctx,
                     .root = o->out,
                     .program = w->program,
                     .launch = w->launch,
                     .ranks = s->world,
                     .timeout_s = o->timeout_s,
                     .stop = s->runs.stop};
    return TAC_OK;
}

tac_status sweep_set_up(sweep *s, sweep_options *o, const sweep_launcher *l,
                        sweep_setup *w)
{
    TAC_TRY(choose_networks(s));
    TAC_TRY(set_up_runs(s, l, w));
    TAC_TRY(sweep_plan(s, o));
    int fd = -1;
    TAC_TRY(runs_lock(s->ctx, o->out, &fd));
    w->folder = fd + 1;
    TAC_TRY(name_files(s, o, w));
    if (!o->dry_run) {
        TAC_TRY(runs_try_file(s->ctx, o->html));
        TAC_TRY(runs_try_file(s->ctx, o->svg));
        TAC_TRY(runs_try_file(s->ctx, o->csv));
        TAC_TRY(runs_try_file(s->ctx, o->json));
    }
    if (o->fresh) runs_forget(o->out);
    return TAC_OK;
}
