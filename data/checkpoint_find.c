/* checkpoint_find.c: from what a user gave to a checkpoint that can be read.
 *
 * A checkpoint is valid if its checkpoint.json and the headers of its
 * safetensors files are: that finds cut and missing data, and costs little.
 * One that is named itself is taken if it has a checkpoint.json: reading it
 * will say what is wrong with it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_impl.h"
#include "files.h"
#include "tacit/safetensors.h"

/* Trying is no failure: what is wrong with a candidate is kept for a warning.
 */
typedef struct trial {
    tac_context *ctx; /* of its own: says nothing */
    char why[512];
} trial;

static void ignore(void *arg, tac_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static tac_status try_begin(tac_context *ctx, trial *t)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;

    cc.log = ignore;
    cc.threads = 1;
    *t = (trial){0};
    if (tac_context_create(&cc, &t->ctx) >= 0) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to look for checkpoints");
}

static int has_file(const char *folder, const char *name)
{
    char *path = tac__files_join(folder, name);
    const int there = path && access(path, F_OK) == 0;

    free(path);
    return there;
}

/* *files: counts it, if it is a safetensors file. */
static tac_status open_header(trial *t, const char *folder, const char *name,
                              int *files)
{
    const size_t n = strlen(name);
    const char *const suffix = ".safetensors";
    tac_safetensors *f = NULL;
    char *path;
    tac_status s;

    if (n < strlen(suffix) || strcmp(name + n - strlen(suffix), suffix))
        return TAC_OK;
    ++*files;
    path = tac__files_join(folder, name);
    s = path ? tac_safetensors_open(t->ctx, path, &f) : TAC_ERR_NOMEM;
    free(path);
    tac_safetensors_close(f);
    return s;
}

static tac_status check_files(trial *t, const char *folder, int expected)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    tac_status s = TAC_OK;
    int files = 0;

    if (!d)
        return tac_fail(t->ctx, TAC_ERR_IO, "cannot read the folder %s: %m",
                        folder);
    while (s >= 0 && (e = readdir(d)) != NULL)
        s = open_header(t, folder, e->d_name, &files);
    closedir(d);
    if (s < 0 || files >= expected) return s;
    return tac_fail(t->ctx, TAC_ERR_DATA,
                    "%s has %d safetensors files, and had %d", folder, files,
                    expected);
}

/* 1 if the folder is a valid checkpoint; t->why otherwise. */
static int is_valid(trial *t, const char *folder)
{
    char *path = tac__files_join(folder, "checkpoint.json");
    tac_checkpoint_info info;
    tac_status s =
        path ? tac_checkpoint_read_info(t->ctx, path, &info) : TAC_ERR_NOMEM;

    if (s >= 0) s = check_files(t, folder, info.files);
    free(path);
    if (s < 0) tac_context_error(t->ctx, t->why, sizeof t->why);
    return s >= 0;
}

/* ---- candidates ---------------------------------------------------------- */

/* Only a step's name is taken: a path could lead anywhere. */
int tac__checkpoint_pointer(const char *root, const char *pointer,
                            uint64_t *step)
{
    char *path = tac__files_join(root, pointer), text[64] = "";
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t n = -1;

    free(path);
    if (fd >= 0) {
        n = read(fd, text, sizeof text - 1);
        close(fd);
    }
    if (n <= 0) return 0;
    text[strcspn(text, "\r\n")] = '\0';
    return tac__step_parse(text, step);
}

/* The folder that `latest` names; NULL: none. */
static char *latest_of(const char *root)
{
    char name[TAC__STEP_NAME_BYTES];
    uint64_t step;

    if (!tac__checkpoint_pointer(root, "latest", &step)) return NULL;
    tac__step_name(step, name);
    return tac__files_join(root, name);
}

/* Steps of a folder, highest first. */
static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

uint64_t *tac__checkpoint_steps(const char *root, size_t *count)
{
    DIR *d = opendir(root);
    uint64_t *steps = NULL, step;
    const struct dirent *e;

    *count = 0;
    while (d && (e = readdir(d)) != NULL) {
        if (!tac__step_parse(e->d_name, &step)) continue;
        uint64_t *more = realloc(steps, (*count + 1) * sizeof *more);

        if (!more) break;
        steps = more;
        steps[(*count)++] = step;
    }
    if (d) closedir(d);
    if (*count) qsort(steps, *count, sizeof *steps, falling);
    return steps;
}

/* The valid checkpoint of the highest step; NULL: none. */
static char *highest_valid(trial *t, const char *root)
{
    size_t n = 0;
    uint64_t *steps = tac__checkpoint_steps(root, &n);
    char *found = NULL;

    for (size_t i = 0; i < n && !found; i++) {
        char name[TAC__STEP_NAME_BYTES];

        tac__step_name(steps[i], name);
        found = tac__files_join(root, name);
        if (found && is_valid(t, found)) break;
        free(found);
        found = NULL;
    }
    free(steps);
    return found;
}

int tac_checkpoint_exists(const char *root)
{
    size_t n = 0;

    free(tac__checkpoint_steps(root, &n));
    return n > 0 || (access(root, R_OK | X_OK) != 0 && errno == EACCES);
}

/* ---- find ---------------------------------------------------------------- */

static tac_status find_in(tac_context *ctx, trial *t, const char *path,
                          const char *root, char **out)
{
    char *latest = latest_of(root);

    if (latest && is_valid(t, latest)) {
        *out = latest;
        return TAC_OK;
    }
    if (!latest)
        snprintf(t->why, sizeof t->why, "%s/latest names no checkpoint", root);
    char *instead;
    char why[sizeof t->why];

    memcpy(why, t->why, sizeof why);
    instead = highest_valid(t, root);
    if (instead)
        tac_log(ctx, TAC_LOG_WARN, "%s; taking %s instead", why, instead);
    free(latest);
    *out = instead;
    if (instead) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_DATA,
                    "No valid checkpoint found in output directory %s: %s",
                    path, tac_checkpoint_exists(root) ? why : "there are none");
}

static tac_status find(tac_context *ctx, trial *t, const char *path, char **out)
{
    char *inner;
    tac_status s;

    if (has_file(path, "checkpoint.json")) {
        *out = strdup(path);
        return *out ? TAC_OK : TAC_ERR_NOMEM;
    }
    if (has_file(path, "latest") || !has_file(path, "checkpoints"))
        return find_in(ctx, t, path, path, out);
    inner = tac__files_join(path, "checkpoints");
    s = inner ? find_in(ctx, t, path, inner, out) : TAC_ERR_NOMEM;
    free(inner);
    return s;
}

tac_status tac_checkpoint_find(tac_context *ctx, const char *path, char **out)
{
    trial t;
    char *found = NULL;
    tac_status s;

    if (!tac__files_is_dir(path))
        return tac_fail(ctx, TAC_ERR_DATA,
                        "Can't find a valid checkpoint at %s: there is no such "
                        "folder; check the path",
                        path);
    if (access(path, R_OK | X_OK) != 0)
        return tac_fail(ctx, TAC_ERR_IO,
                        "cannot read the folder %s: %m; check its permissions",
                        path);
    TAC_TRY(try_begin(ctx, &t));
    s = find(ctx, &t, path, &found);
    tac_context_destroy(t.ctx);
    if (s == TAC_ERR_NOMEM) tac_fail(ctx, s, "no memory for a path");
    if (s >= 0) *out = found;
    return s;
}
