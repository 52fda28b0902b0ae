/* plugin.c: loading a plug-in library at first need. */
#include "tacit/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = PATH_MAX, NEWEST_ABI_TRIED = 255 };

/* "<folder of the program>/<name>"; 0 if it can't be told or is too long. */
static int beside_program(const char *name, char out[PATH_BYTES])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_BYTES - 1);
    if (n <= 0) return 0;
    out[n] = 0;
    char *slash = strrchr(out, '/');
    if (!slash) return 0;
    const size_t room = PATH_BYTES - (size_t)(slash + 1 - out);
    const int length = snprintf(slash + 1, room, "%s", name);
    return length >= 0 && (size_t)length < room;
}

static void *open_library(const char *path)
{
    char beside[PATH_BYTES];
    const int flags = RTLD_NOW | RTLD_LOCAL;
    if (!strchr(path, '/') && beside_program(path, beside) &&
        access(beside, R_OK) == 0)
        return dlopen(beside, flags);
    return dlopen(path, flags);
}

static tac_plugin_open_fn *find_open(void *library)
{
    /* ISO C has no cast from an object pointer to a function pointer. */
    void *symbol = dlsym(library, TAC_PLUGIN_SYMBOL);
    tac_plugin_open_fn *open_fn = NULL;
    if (symbol) memcpy(&open_fn, &symbol, sizeof open_fn);
    return open_fn;
}

/* The number that the plug-in does answer to, for the message; 0: none. */
static unsigned find_abi(tac_plugin_open_fn *open_fn)
{
    for (unsigned abi = 1; abi <= NEWEST_ABI_TRIED; ++abi)
        if (open_fn(abi)) return abi;
    return 0;
}

static tac_status wrong_abi(tac_context *ctx, const char *path, unsigned abi)
{
    return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                    "plug-in %s has ABI number %u, this program %u; build both "
                    "from the same version of tacit",
                    path, abi, (unsigned)TAC_ABI);
}

static tac_status open_plugin(tac_context *ctx, const char *path, void *library,
                              const tac_plugin **out)
{
    tac_plugin_open_fn *open_fn = find_open(library);
    if (!open_fn)
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED,
                        "%s is no plug-in of tacit: it has no function "
                        "%s",
                        path, TAC_PLUGIN_SYMBOL);
    const tac_plugin *plugin = open_fn(TAC_ABI);
    if (!plugin) return wrong_abi(ctx, path, find_abi(open_fn));
    if (plugin->abi != TAC_ABI) return wrong_abi(ctx, path, plugin->abi);
    *out = plugin;
    return TAC_OK;
}

tac_status tac_plugin_load(tac_context *ctx, const char *path,
                           const tac_plugin **out)
{
    void *library = open_library(path);
    if (!library) {
        const char *why = dlerror();
        return tac_fail(ctx, TAC_ERR_UNSUPPORTED, "can't load plug-in %s: %s",
                        path, why ? why : "unknown reason");
    }
    const tac_status s = open_plugin(ctx, path, library, out);
    if (s != TAC_OK) dlclose(library);
    return s;
}
