/* checkpoint.c: making a folder of files appear at once.
 *
 * What a crash may leave: ".tmp-step-N" (not complete, or the former contents
 * of step N) and ".tmp-latest". The next begin removes both; find never looks
 * at either. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_impl.h"
#include "files.h"
#include "tacit/folder.h"

void tac__step_name(uint64_t step, char out[TAC__STEP_NAME_BYTES])
{
    snprintf(out, TAC__STEP_NAME_BYTES, "step-%08" PRIu64, step);
}

int tac__step_parse(const char *name, uint64_t *step)
{
    char again[TAC__STEP_NAME_BYTES];
    uint64_t n;

    if (strncmp(name, "step-", 5) != 0) return 0;
    n = strtoull(name + 5, NULL, 10);
    tac__step_name(n, again);
    if (strcmp(name, again) != 0) return 0;
    *step = n;
    return 1;
}

static char *temporary_folder(const char *root, uint64_t step)
{
    char name[TAC__STEP_NAME_BYTES], hidden[TAC__STEP_NAME_BYTES + 8];

    tac__step_name(step, name);
    snprintf(hidden, sizeof hidden, TAC__TEMPORARY "%s", name);
    return tac__files_join(root, hidden);
}

char *tac_checkpoint_tmp_path(const char *root, uint64_t step, const char *file)
{
    char *folder = temporary_folder(root, step);
    char *path;

    if (!folder || !file) return folder;
    path = tac__files_join(folder, file);
    free(folder);
    return path;
}

static tac_status io_error(tac_context *ctx, const char *what, const char *path)
{
    return tac_fail(ctx, TAC_ERR_IO,
                    "cannot %s %s: %m; check the path, its permissions and "
                    "the free space",
                    what, path);
}

static tac_status no_memory(tac_context *ctx)
{
    return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a path");
}

/* ---- begin --------------------------------------------------------------- */

static tac_status remove_leftover(tac_context *ctx, const char *root,
                                  const char *name)
{
    char *path;
    tac_status s = TAC_OK;

    if (strncmp(name, TAC__TEMPORARY, strlen(TAC__TEMPORARY)) != 0)
        return TAC_OK;
    path = tac__files_join(root, name);
    if (!path) return no_memory(ctx);
    if (tac__files_remove_tree(path) != 0)
        s = io_error(ctx, "remove the rest of a crash,", path);
    free(path);
    return s;
}

static tac_status remove_leftovers(tac_context *ctx, const char *root)
{
    DIR *d = opendir(root);
    tac_status s = TAC_OK;
    const struct dirent *e;

    if (!d) return io_error(ctx, "read the folder", root);
    while (s >= 0 && (e = readdir(d)) != NULL)
        s = remove_leftover(ctx, root, e->d_name);
    closedir(d);
    return s;
}

tac_status tac_checkpoint_tidy(tac_context *ctx, const char *root)
{
    return tac__files_is_dir(root) ? remove_leftovers(ctx, root) : TAC_OK;
}

tac_status tac_checkpoint_begin(tac_context *ctx, const char *root,
                                uint64_t step)
{
    char *folder;
    tac_status s = TAC_OK;

    if (tac_make_folders(root) != 0)
        return io_error(ctx, "make the folder", root);
    TAC_TRY(remove_leftovers(ctx, root));
    folder = temporary_folder(root, step);
    if (!folder) return no_memory(ctx);
    if (mkdir(folder, 0777) != 0) s = io_error(ctx, "make the folder", folder);
    free(folder);
    return s;
}

void tac_checkpoint_discard(const char *root, uint64_t step)
{
    char *folder = temporary_folder(root, step);

    if (folder) tac__files_remove_tree(folder);
    free(folder);
}

/* ---- publish ------------------------------------------------------------- */

typedef struct publish {
    tac_context *ctx;
    const char *root;
    char name[TAC__STEP_NAME_BYTES];
    char *temporary, *final;   /* folders */
    char *new_latest, *latest; /* files */
} publish;

static tac_status sync_files(const publish *p)
{
    if (tac__files_sync_dir(p->temporary) == 0) return TAC_OK;
    return io_error(p->ctx, "write the folder", p->temporary);
}

/* A checkpoint of the same step is exchanged in one move, so that its name is
 * never without a folder; file systems that can't are rare, and lose it for a
 * moment, in which find takes the checkpoint before it. */
static tac_status rename_folder(const publish *p)
{
    if (rename(p->temporary, p->final) == 0) return TAC_OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return io_error(p->ctx, "make the folder", p->final);
    if (renameat2(AT_FDCWD, p->temporary, AT_FDCWD, p->final,
                  RENAME_EXCHANGE) == 0)
        return TAC_OK;
    if (tac__files_remove_tree(p->final) != 0 ||
        rename(p->temporary, p->final) != 0)
        return io_error(p->ctx, "replace the folder", p->final);
    return TAC_OK;
}

static tac_status sync_root(const publish *p)
{
    if (tac__files_sync_dir(p->root) == 0) return TAC_OK;
    return io_error(p->ctx, "write the folder", p->root);
}

static tac_status write_latest(const publish *p)
{
    char text[TAC__STEP_NAME_BYTES + 2];
    const int n = snprintf(text, sizeof text, "%s\n", p->name);

    if (tac__files_write(p->new_latest, text, (size_t)n) == 0) return TAC_OK;
    return io_error(p->ctx, "write", p->new_latest);
}

static tac_status replace_latest(const publish *p)
{
    if (rename(p->new_latest, p->latest) == 0) return TAC_OK;
    return io_error(p->ctx, "write", p->latest);
}

/* The former checkpoint of this step, after an exchange. */
static tac_status remove_former(const publish *p)
{
    tac__files_remove_tree(p->temporary);
    return TAC_OK;
}

typedef tac_status publish_step(const publish *p);

static publish_step *const publish_steps[] = {
    sync_files,     rename_folder, sync_root,     write_latest,
    replace_latest, sync_root,     remove_former,
};

enum { PUBLISH_STEPS = sizeof publish_steps / sizeof *publish_steps };

int tac__checkpoint_publish_steps(void)
{
    return PUBLISH_STEPS;
}

tac_status tac__checkpoint_publish_some(tac_context *ctx, const char *root,
                                        uint64_t step, int n)
{
    publish p = {.ctx = ctx, .root = root};
    tac_status s = TAC_OK;

    tac__step_name(step, p.name);
    p.temporary = temporary_folder(root, step);
    p.final = tac__files_join(root, p.name);
    p.new_latest = tac__files_join(root, TAC__TEMPORARY "latest");
    p.latest = tac__files_join(root, "latest");
    if (!p.temporary || !p.final || !p.new_latest || !p.latest)
        s = no_memory(ctx);
    for (int i = 0; s >= 0 && i < n; i++) s = publish_steps[i](&p);
    free(p.temporary);
    free(p.final);
    free(p.new_latest);
    free(p.latest);
    return s;
}

tac_status tac_checkpoint_publish(tac_context *ctx, const char *root,
                                  uint64_t step)
{
    return tac__checkpoint_publish_some(ctx, root, step, PUBLISH_STEPS);
}

/* ---- other pointers ------------------------------------------------------ */

tac_status tac__checkpoint_point(tac_context *ctx, const char *root,
                                 const char *pointer, uint64_t step)
{
    char name[TAC__STEP_NAME_BYTES], text[TAC__STEP_NAME_BYTES + 2], hidden[32];
    tac_status s = TAC_OK;

    tac__step_name(step, name);
    snprintf(hidden, sizeof hidden, TAC__TEMPORARY "%.20s", pointer);
    const int n = snprintf(text, sizeof text, "%s\n", name);
    char *from = tac__files_join(root, hidden);
    char *to = tac__files_join(root, pointer);
    if (!from || !to)
        s = no_memory(ctx);
    else if (tac__files_write(from, text, (size_t)n) != 0 ||
             rename(from, to) != 0 || tac__files_sync_dir(root) != 0)
        s = io_error(ctx, "write", to);
    free(from);
    free(to);
    return s;
}

char *tac_checkpoint_path(const char *checkpoint, const char *file)
{
    return tac__files_join(checkpoint, file);
}
