/* Where ddp_train is. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs_impl.h"

/* In the folder above this program's, as it was built, or beside it, as it is
 * installed. */
static char *near_us(const char *where)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n < 0) return NULL;
    self[n] = 0;
    slash = strrchr(self, '/');
    if (!slash) return NULL;
    *slash = 0;
    char *path = runs_format("%s/%s", self, where);
    char *real = path ? realpath(path, NULL) : NULL;

    free(path);
    if (real && access(real, X_OK) == 0) return real;
    free(real);
    return NULL;
}

static char *in_path(const char *name)
{
    char *list = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = NULL;
    char *found = NULL;

    for (char *dir = list ? strtok_r(list, ":", &rest) : NULL; dir && !found;
         dir = strtok_r(NULL, ":", &rest)) {
        found = runs_format("%s/%s", dir, name);
        if (found && access(found, X_OK) == 0) continue;
        free(found);
        found = NULL;
    }
    free(list);
    return found;
}

/* A folder can be "executed", too. */
static int is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

tac_status runs_choose_program(tac_context *ctx, const char *given, char **out)
{
    if (!given) return runs_find_program(ctx, out);
    *out = strchr(given, '/') ? strdup(given) : in_path(given);
    if (*out && is_program(*out)) return TAC_OK;
    free(*out);
    *out = NULL;
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "--program %s: %s; give the path of ddp_train, or leave "
                    "the option out",
                    given,
                    strchr(given, '/') ? "there is no program there"
                                       : "PATH has no such program");
}

tac_status runs_find_program(tac_context *ctx, char **out)
{
    char *path = near_us("../ddp_train");

    if (!path) path = near_us("ddp_train");
    if (!path) path = in_path("ddp_train");
    if (!path)
        return tac_fail(ctx, TAC_ERR_IO,
                        "ddp_train is not in the folder above this program's, "
                        "not beside it and not in PATH; build it, or say where "
                        "it is");
    *out = path;
    return TAC_OK;
}
