/* files.c: paths, folders and durable files. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *tac__files_join(const char *dir, const char *name)
{
    const size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);

    if (path) snprintf(path, n, "%s/%s", dir, name);
    return path;
}

int tac__files_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

int tac__files_remove_tree(const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0) return errno == ENOENT ? 0 : -1;
    return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int tac__files_sync_dir(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (fd < 0) return -1;
    rc = fsync(fd);
    /* Some file systems have no such thing, and no need of it. */
    if (rc != 0 && errno == EINVAL) rc = 0;
    close(fd);
    return rc;
}

int tac__files_write_all(int fd, const void *p, size_t bytes)
{
    const char *at = p;

    while (bytes > 0) {
        const ssize_t n = write(fd, at, bytes);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int tac__files_write(const char *path, const char *text, size_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc, error;

    if (fd < 0) return -1;
    rc = tac__files_write_all(fd, text, bytes);
    if (rc == 0) rc = fsync(fd);
    error = errno;
    if (close(fd) != 0 && rc == 0) {
        error = errno;
        rc = -1;
    }
    if (rc != 0) unlink(path);
    errno = error;
    return rc;
}
