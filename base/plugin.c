/* plugin.c: loading a plug-in library at first need. */
#include "tacit/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where an installed program finds plug-ins, from its own folder. */
#ifndef TAC_PLUGINS_FROM_BIN
#define TAC_PLUGINS_FROM_BIN "../lib/tacit"
#endif

enum { PATH_BYTES = PATH_MAX, NEWEST_ABI_TRIED = 255, SIGNALS = 32 };

/* "<folder>/<name>" into out, if it is a file that can be read. */
static int is_in(const char *folder, size_t length, const char *name,
                 char out[PATH_BYTES])
{
    const int n =
        snprintf(out, PATH_BYTES, "%.*s/%s", (int)length, folder, name);
    return n > 0 && n < PATH_BYTES && access(out, R_OK) == 0;
}

/* The folders of TACIT_PLUGIN_PATH, with ':' between them. */
static int is_in_path(const char *name, char out[PATH_BYTES])
{
    const char *at = secure_getenv("TACIT_PLUGIN_PATH");
    while (at && *at) {
        const size_t length = strcspn(at, ":");
        if (length > 0 && is_in(at, length, name, out)) return 1;
        at += length + (at[length] == ':');
    }
    return 0;
}

/* Beside the file; in the folder above its own, as a build has programs at its
 * top and in folders of it; where the library's and a program's plug-ins are
 * installed. */
static int is_near(const char *file, const char *name, char out[PATH_BYTES])
{
    static const char *const places[] = {".", "..", "tacit",
                                         TAC_PLUGINS_FROM_BIN};
    char folder[PATH_BYTES];
    const char *slash = strrchr(file, '/');
    if (!slash) return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        const int n = snprintf(folder, sizeof folder, "%.*s/%s",
                               (int)(slash - file), file, places[i]);
        if (n > 0 && n < PATH_BYTES && is_in(folder, (size_t)n, name, out))
            return 1;
    }
    return 0;
}

static int is_near_program(const char *name, char out[PATH_BYTES])
{
    char program[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", program, PATH_BYTES - 1);
    if (n <= 0) return 0;
    program[n] = 0;
    return is_near(program, name, out);
}

/* For programs in other languages, whose own file is an interpreter. */
static int is_near_library(const char *name, char out[PATH_BYTES])
{
    static const char inside;
    Dl_info info;
    return dladdr(&inside, &info) && info.dli_fname &&
           is_near(info.dli_fname, name, out);
}

/* What libraries beneath a plug-in do to signal handlers when they are loaded
 * is undone: UCX's would catch SIGSEGV and SIGHUP. */
typedef struct handlers {
    struct sigaction action[SIGNALS];
    int known[SIGNALS];
} handlers;

static void keep_handlers(handlers *h)
{
    for (int i = 1; i < SIGNALS; ++i)
        h->known[i] = sigaction(i, NULL, &h->action[i]) == 0;
}

static void restore_handlers(const handlers *h)
{
    for (int i = 1; i < SIGNALS; ++i) {
        struct sigaction now;
        if (h->known[i] && sigaction(i, NULL, &now) == 0 &&
            now.sa_handler != h->action[i].sa_handler)
            sigaction(i, &h->action[i], NULL);
    }
}

static void *open_library(const char *path)
{
    char found[PATH_BYTES];
    handlers h;
    if (!strchr(path, '/') &&
        (is_in_path(path, found) || is_near_library(path, found) ||
         is_near_program(path, found)))
        path = found;
    keep_handlers(&h);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    restore_handlers(&h);
    return library;
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

/* Where a failure's text goes. */
typedef struct report {
    char *text;
    size_t bytes;
} report;

static tac_status wrong_abi(report r, const char *path, unsigned abi)
{
    snprintf(r.text, r.bytes,
             "plug-in %s has ABI number %u, this program %u; build both from "
             "the same version of tacit",
             path, abi, (unsigned)TAC_ABI);
    return TAC_ERR_UNSUPPORTED;
}

static tac_status open_plugin(report r, const char *path, void *library,
                              const tac_plugin **out)
{
    tac_plugin_open_fn *open_fn = find_open(library);
    if (!open_fn) {
        snprintf(r.text, r.bytes,
                 "%s is no plug-in of tacit: it has no function %s", path,
                 TAC_PLUGIN_SYMBOL);
        return TAC_ERR_UNSUPPORTED;
    }
    const tac_plugin *plugin = open_fn(TAC_ABI);
    if (!plugin) return wrong_abi(r, path, find_abi(open_fn));
    if (plugin->abi != TAC_ABI) return wrong_abi(r, path, plugin->abi);
    *out = plugin;
    return TAC_OK;
}

tac_status tac_plugin_find(const char *path, const tac_plugin **out, char *why,
                           size_t bytes)
{
    const report r = {why, bytes};
    void *library = open_library(path);
    if (!library) {
        const char *text = dlerror();
        snprintf(why, bytes, "can't load plug-in %s: %s", path,
                 text ? text : "unknown reason");
        return TAC_ERR_UNSUPPORTED;
    }
    const tac_status s = open_plugin(r, path, library, out);
    if (s != TAC_OK) dlclose(library);
    return s;
}

tac_status tac_plugin_load(tac_context *ctx, const char *path,
                           const tac_plugin **out)
{
    char why[1024] = "";
    const tac_status s = tac_plugin_find(path, out, why, sizeof why);
    return s < 0 ? tac_fail(ctx, s, "%s", why) : s;
}
