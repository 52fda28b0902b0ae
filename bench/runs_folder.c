/* The folder of many runs: made, locked, emptied. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs_impl.h"
#include "tacit/clock.h"
#include "tacit/folder.h"

/* A program that was killed has the lock until its children, which are being
 * started at that moment, are programs of their own. */
static int lock_soon(int fd)
{
    int rc = flock(fd, LOCK_EX | LOCK_NB);

    for (int i = 0; i < 20 && rc != 0 && errno == EWOULDBLOCK; i++) {
        tac_clock_sleep_ns(50000000);
        rc = flock(fd, LOCK_EX | LOCK_NB);
    }
    return rc;
}

tac_status runs_lock(tac_context *ctx, const char *root, int *fd)
{
    if (tac_make_folders(root) != 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "cannot make the folder %s: %m; give another --out",
                        root);
    *fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "cannot open the folder %s: %m; give another --out",
                        root);
    if (lock_soon(*fd) == 0 || errno != EWOULDBLOCK) return TAC_OK;
    close(*fd);
    *fd = -1;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "another program is at work in %s; give this one its own "
                    "--out, or wait until that has ended",
                    root);
}

/* Without `done` a run counts as never made. */
void runs_forget(const char *root)
{
    char *all = runs_format("%s/runs", root);
    DIR *d = all ? opendir(all) : NULL;

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char *path = runs_format("%s/%s/done", all, e->d_name);

        if (path && e->d_name[0] != '.') unlink(path);
        free(path);
    }
    if (d) closedir(d);
    free(all);
}

tac_status runs_try_file(tac_context *ctx, const char *path)
{
    FILE *f = fopen(path, "a");

    if (!f) return tac_fail(ctx, TAC_ERR_CONFIG, "cannot write %s: %m", path);
    fclose(f);
    return TAC_OK;
}
