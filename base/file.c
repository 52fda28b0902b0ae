/* file.c: replacing a file's contents at once. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tacit/clock.h"

static tac_status write_all(int fd, const char *p, size_t left)
{
    while (left > 0) {
        const ssize_t n = write(fd, p, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return TAC_ERR_IO;
        p += n;
        left -= (size_t)n;
    }
    return TAC_OK;
}

static tac_status write_open_file(int fd, const char *text, size_t bytes)
{
    tac_status s = write_all(fd, text, bytes);
    if (s == TAC_OK) s = write_all(fd, "\n", 1);
    const int error = errno;
    if (close(fd) != 0 && s == TAC_OK) return TAC_ERR_IO;
    errno = error;
    return s;
}

/* /dev/stdout, a FIFO: renaming over these would replace them by a file. */
static int is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static tac_status write_special(const char *path, const char *text,
                                size_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return TAC_ERR_IO;
    return write_open_file(fd, text, bytes);
}

static tac_status write_and_rename(const char *temp, const char *path,
                                   const char *text, size_t bytes)
{
    const int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return TAC_ERR_IO;
    tac_status s = write_open_file(fd, text, bytes);
    if (s == TAC_OK && rename(temp, path) != 0) s = TAC_ERR_IO;
    if (s != TAC_OK) {
        const int error = errno;
        unlink(temp);
        errno = error;
    }
    return s;
}

/* "-": behind what was printed before. */
static tac_status write_stdout(const char *text, size_t bytes)
{
    if (fflush(stdout) != 0) return TAC_ERR_IO;
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return TAC_ERR_IO;
    return write_open_file(fd, text, bytes);
}

tac_status tac__file_replace(const char *path, const char *text, size_t bytes)
{
    if (!strcmp(path, "-")) return write_stdout(text, bytes);
    if (is_special(path)) return write_special(path, text, bytes);
    const size_t room = strlen(path) + 64;
    char *temp = malloc(room);
    if (!temp) return TAC_ERR_NOMEM;
    /* Process and time: ranks that are threads may write in one folder. */
    snprintf(temp, room, "%s.tmp-%ld-%llx", path, (long)getpid(),
             (unsigned long long)tac_clock_ns());
    const tac_status s = write_and_rename(temp, path, text, bytes);
    const int error = errno;
    free(temp);
    errno = error;
    return s;
}
