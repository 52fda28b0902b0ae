/* The run folder: config.ini when the run starts, metrics.jsonl while it
 * goes, summary.json at its end. Rank 0 alone writes. */
#include "run.h"
#include "local.h"
#include "save.h"
#include "record.h"
#include "tacit/folder.h"
#include "underflow_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static char *path_in(const char *dir, const char *name)
{
    const size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);

    if (path) snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static FILE *open_in(tac__run *run, const char *name, const char *mode)
{
    char *path = path_in(run->config->run_dir, name);
    FILE *f = path ? fopen(path, mode) : NULL;

    if (!f)
        tac_fail(run->rank->ctx, TAC_ERR_IO,
                 "cannot write %s in the run folder %s: %m; check --run-dir",
                 name, run->config->run_dir);
    free(path);
    return f;
}

/* Two runs in one folder would mix their lines and remove each other's
 * checkpoints. The lock goes with the process, however that ends; one that was
 * killed just now may still be ending. Where folders can't be locked (some
 * network file systems) nobody is kept out. */
static tac_status lock_folder(tac__run *run)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    const char *dir = run->config->run_dir;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    run->folder = fd + 1;
    for (int tries = 0; fd >= 0 && tries < 40; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return TAC_OK;
        nanosleep(&pause, NULL);
    }
    if (fd < 0) return TAC_OK; /* what follows will say why */
    return tac_fail(run->rank->ctx, TAC_ERR_CONFIG,
                    "another run is writing into the run folder %s; give this "
                    "one its own --run-dir, or wait until that has ended",
                    dir);
}

/* What the options of local modes come to, as a comment. */
static void write_replicas(const tac__run *run, FILE *f)
{
    char text[512];

    tac__local_describe(run->replica, run->total_steps, text, sizeof text);
    if (text[0]) fprintf(f, "# --sync %s: %s\n", run->config->sync, text);
}

static tac_status write_config(tac__run *run)
{
    FILE *f = open_in(run, "config.ini", "w");

    if (!f) return TAC_ERR_IO;
    tac_options_print_config(run->rank->options, f);
    write_replicas(run, f);
    const int failed = ferror(f);
    if (fclose(f) == 0 && !failed) return TAC_OK;
    return tac_fail(run->rank->ctx, TAC_ERR_IO,
                    "cannot write config.ini in the run folder %s: %m; check "
                    "the free space",
                    run->config->run_dir);
}

/* Does the run go on with a checkpoint of this very folder? */
static int is_continued(const tac__run *run)
{
    char *mine = realpath(run->config->run_dir, NULL);
    char *from = run->resumed_from ? realpath(run->resumed_from, NULL) : NULL;
    const size_t n = mine ? strlen(mine) : 0;
    const int inside =
        mine && from && !strncmp(from, mine, n) && from[n] == '/';

    free(mine);
    free(from);
    return inside;
}

static tac_status open_metrics(tac__run *run)
{
    const int continued = is_continued(run);
    char *path = path_in(run->config->run_dir, "metrics.jsonl");
    tac_status s = path ? TAC_OK : TAC_ERR_NOMEM;

    if (s >= 0 && continued)
        s = tac__resume_metrics(run->rank->ctx, path, run->resumed_attempts);
    free(path);
    TAC_TRY(s);
    run->metrics = open_in(run, "metrics.jsonl", continued ? "a" : "w");
    return run->metrics ? TAC_OK : TAC_ERR_IO;
}

/* What an earlier run in this folder has left at its end would be taken for
 * this one's, should this one be killed. */
static void remove_results(const tac__run *run)
{
    static const char *const names[] = {"summary.json", "report.html",
                                        "underflow.svg"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = path_in(run->config->run_dir, names[i]);

        if (path) unlink(path);
        free(path);
    }
}

/* A file that can't be written is better found out before training. */
static tac_status try_file(tac__run *run, const char *option, const char *path)
{
    const int printed = path && !strcmp(path, "-");
    FILE *f = path && !printed ? fopen(path, "a") : NULL;

    if (path && !f && !printed)
        return tac_fail(run->rank->ctx, TAC_ERR_IO,
                        "cannot write %s: %m; check --%s", path, option);
    if (f) fclose(f);
    return TAC_OK;
}

tac_status tac__run_dir_open(tac__run *run)
{
    if (run->rank->rank != 0 || run->config->dry_run) return TAC_OK;
    TAC_TRY(try_file(run, "json", run->config->json));
    TAC_TRY(try_file(run, "trace", run->config->trace));
    TAC_TRY(try_file(run, "record", run->config->record));
    TAC_TRY(try_file(run, "attempt-times", run->config->attempt_times));
    if (!run->config->run_dir) return TAC_OK;
    if (tac_make_folders(run->config->run_dir) != 0)
        return tac_fail(run->rank->ctx, TAC_ERR_IO,
                        "cannot make the run folder %s: %m; check --run-dir",
                        run->config->run_dir);
    TAC_TRY(lock_folder(run));
    remove_results(run);
    TAC_TRY(write_config(run));
    run->line = tac_json_create();
    if (!run->line)
        return tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for metrics");
    return open_metrics(run);
}

/* Calls `write` with the path of a file of the run folder. */
static tac_status write_in(tac__run *run, const char *name,
                           tac_status (*write)(tac__run *, const char *))
{
    char *path = path_in(run->config->run_dir, name);
    const tac_status s = path ? write(run, path) : TAC_ERR_NOMEM;

    free(path);
    return s;
}

static tac_status write_summary(tac__run *run, const char *path)
{
    return tac_summary_write(run->rank->ctx, &run->summary, path);
}

tac_status tac__run_dir_finish(tac__run *run)
{
    const tac_train_config *c = run->config;
    tac_status s = TAC_OK;

    if (run->rank->rank != 0) return TAC_OK;
    tac__underflow_log(run);
    if (run->metrics && ferror(run->metrics))
        s = tac_fail(run->rank->ctx, TAC_ERR_IO,
                     "metrics.jsonl in %s is incomplete; check the free space",
                     c->run_dir);
    if (s >= 0 && c->run_dir)
        s = write_in(run, "underflow.svg", tac__underflow_draw);
    if (s >= 0 && c->run_dir) s = write_in(run, "summary.json", write_summary);
    if (s >= 0 && c->json) s = write_summary(run, c->json);
    if (s >= 0 && run->replica->record)
        s = tac__record_write(run->replica->record, c->record);
    return s;
}

void tac__run_dir_close(tac__run *run)
{
    if (run->metrics) fclose(run->metrics);
    if (run->folder > 0) close(run->folder - 1);
    run->folder = 0;
    tac_json_destroy(run->line);
    run->metrics = NULL;
    run->line = NULL;
}
