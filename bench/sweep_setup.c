/* Before a sweep: its launcher, its folder, its files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

static tac_status choose_networks(sweep *s)
{
    char names[256] = "", **list;
    size_t n;

    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 *names ? "|" : "", e->name);
    const int all = strcmp(s->o->networks, "all") == 0;
    TAC_TRY(sweep_list_names(
        s->ctx, "networks", all ? "nvlink" : s->o->networks, names, &list, &n));
    for (const tac_sim_network_entry *e = tac_sim_networks(); e->name; e++)
        for (size_t i = 0; i < n || (all && i == 0); i++)
            if ((all || strcmp(list[i], e->name) == 0) &&
                s->n_networks < SWEEP_NETWORKS)
                s->networks[s->n_networks++] = e;
    free(list);
    return TAC_OK;
}

static tac_status set_up_runs(sweep *s, const sweep_launcher *l, sweep_setup *w)
{
    const sweep_options *o = s->o;

    s->world = l->size > 0 && !o->launch ? l->size : (int)o->ranks;
    if (!o->launch && l->size > 0)
        w->launch = runs_format("%s %d", l->command, l->size);
    else if (o->launch && *o->launch)
        w->launch = strdup(o->launch);
    if (o->program)
        w->program = strdup(o->program);
    else
        TAC_TRY(runs_find_program(s->ctx, &w->program));
    s->runs = (runs){.ctx = s->ctx,
                     .root = o->out,
                     .program = w->program,
                     .launch = w->launch,
                     .ranks = s->world,
                     .timeout_s = o->timeout_s,
                     .stop = s->runs.stop};
    return TAC_OK;
}

/* ---- the folder ------------------------------------------------------------
 */

/* mkdir -p */
static int make_folder(const char *dir)
{
    char *path = strdup(dir);
    int rc = path ? 0 : -1;

    for (char *p = path; rc == 0 && *p; p++) {
        if (p[1] != '/' && p[1] != 0) continue;
        const char kept = p[1];

        p[1] = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) rc = -1;
        p[1] = kept;
    }
    free(path);
    return rc;
}

/* Two sweeps in one folder would take each other's runs away. The lock goes
 * with the process, however that ends. */
static tac_status lock_folder(sweep *s, sweep_setup *w)
{
    const char *out = s->o->out;

    if (make_folder(out) != 0)
        return tac_fail(s->ctx, TAC_ERR_CONFIG,
                        "cannot make the folder %s: %m; give another --out",
                        out);
    const int fd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tac_fail(s->ctx, TAC_ERR_CONFIG,
                        "cannot open the folder %s: %m; give another --out",
                        out);
    w->folder = fd + 1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return TAC_OK;
    return tac_fail(s->ctx, TAC_ERR_CONFIG,
                    "another sweep is at work in %s; give this one its own "
                    "--out, or wait until that has ended",
                    out);
}

/* Without `done` a run counts as never made. */
static void forget_runs(const sweep *s)
{
    char *all = runs_format("%s/runs", s->o->out);
    DIR *d = all ? opendir(all) : NULL;

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char *path = runs_format("%s/%s/done", all, e->d_name);

        if (path && e->d_name[0] != '.') unlink(path);
        free(path);
    }
    if (d) closedir(d);
    free(all);
}

/* A file that can't be written is better found out before. */
static tac_status try_file(sweep *s, const char *path)
{
    FILE *f = fopen(path, "a");

    if (!f)
        return tac_fail(s->ctx, TAC_ERR_CONFIG, "cannot write %s: %m", path);
    fclose(f);
    return TAC_OK;
}

tac_status sweep_set_up(sweep *s, sweep_options *o, const sweep_launcher *l,
                        sweep_setup *w)
{
    TAC_TRY(choose_networks(s));
    TAC_TRY(set_up_runs(s, l, w));
    TAC_TRY(sweep_plan(s, o));
    TAC_TRY(lock_folder(s, w));
    TAC_TRY(name_files(s, o, w));
    if (!o->dry_run) {
        TAC_TRY(try_file(s, o->html));
        TAC_TRY(try_file(s, o->svg));
        TAC_TRY(try_file(s, o->csv));
        TAC_TRY(try_file(s, o->json));
    }
    if (o->fresh) forget_runs(s);
    return TAC_OK;
}
