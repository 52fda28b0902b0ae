/* folder.c: mkdir -p. */
#include "tacit/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int tac_make_folders(const char *path)
{
    char *copy = strdup(path);
    int rc = copy ? 0 : -1;

    for (char *p = copy; p && rc == 0; p++) {
        if (*p != '/' && *p != '\0') continue;
        const char kept = *p;

        *p = '\0';
        if (copy[0] && mkdir(copy, 0777) != 0 && errno != EEXIST) rc = -1;
        *p = kept;
        if (!kept) break;
    }
    free(copy);
    if (rc == 0 && !is_folder(path)) {
        errno = ENOTDIR;
        rc = -1;
    }
    return rc;
}
