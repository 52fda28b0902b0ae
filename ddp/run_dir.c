/* The run folder: config.ini when the run starts, metrics.jsonl while it
 * goes, summary.json at its end. Rank 0 alone writes. */
#include "run.h"
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *path_in(const char *dir, const char *name)
{
    const size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);

    if (path) snprintf(path, n, "%s/%s", dir, name);
    return path;
}

/* mkdir -p. */
static int make_dirs(const char *dir)
{
    char *path = strdup(dir);
    int rc = path ? 0 : -1;

    for (char *p = path; p && rc == 0; p++) {
        if (*p != '/' && *p != '\0') continue;
        const char kept = *p;

        *p = '\0';
        if (path[0] && mkdir(path, 0777) != 0 && errno != EEXIST) rc = -1;
        *p = kept;
        if (!kept) break;
    }
    free(path);
    return rc;
}

static FILE *open_in(tac__run *run, const char *name)
{
    char *path = path_in(run->config->run_dir, name);
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f)
        tac_fail(run->rank->ctx, TAC_ERR_IO,
                 "cannot write %s in the run folder %s: %m; check --run-dir",
                 name, run->config->run_dir);
    free(path);
    return f;
}

static tac_status write_config(tac__run *run)
{
    FILE *f = open_in(run, "config.ini");

    if (!f) return TAC_ERR_IO;
    tac_options_print_config(run->rank->options, f);
    fclose(f);
    return TAC_OK;
}

/* A file that can't be written is better found out before training. */
static tac_status try_file(tac__run *run, const char *option, const char *path)
{
    FILE *f = path ? fopen(path, "a") : NULL;

    if (path && !f)
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
    if (!run->config->run_dir) return TAC_OK;
    if (make_dirs(run->config->run_dir) != 0)
        return tac_fail(run->rank->ctx, TAC_ERR_IO,
                        "cannot make the run folder %s: %m; check --run-dir",
                        run->config->run_dir);
    TAC_TRY(write_config(run));
    run->line = tac_json_create();
    if (!run->line)
        return tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for metrics");
    run->metrics = open_in(run, "metrics.jsonl");
    return run->metrics ? TAC_OK : TAC_ERR_IO;
}

tac_status tac__run_dir_finish(tac__run *run)
{
    const tac_train_config *c = run->config;
    char *path;
    tac_status s = TAC_OK;

    if (run->rank->rank != 0) return TAC_OK;
    if (run->metrics && ferror(run->metrics))
        s = tac_fail(run->rank->ctx, TAC_ERR_IO,
                     "metrics.jsonl in %s is incomplete; check the free space",
                     c->run_dir);
    if (s >= 0 && c->run_dir) {
        path = path_in(c->run_dir, "summary.json");
        s = path ? tac_summary_write(run->rank->ctx, &run->summary, path)
                 : TAC_ERR_NOMEM;
        free(path);
    }
    if (s >= 0 && c->json)
        s = tac_summary_write(run->rank->ctx, &run->summary, c->json);
    if (s >= 0 && run->replica->record)
        s = tac__record_write(run->replica->record, c->record);
    return s;
}

void tac__run_dir_close(tac__run *run)
{
    if (run->metrics) fclose(run->metrics);
    tac_json_destroy(run->line);
    run->metrics = NULL;
    run->line = NULL;
}
