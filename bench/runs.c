/* A run: its folder, whether it is there already, its child and its result.
 *
 * A folder is complete when it has `done`: the exit code, and the command that
 * led to it, written when all else was. */
#include "runs_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tacit/folder.h"

enum { DIVERGED = 3 };

/* A run under way. */
typedef struct one_run {
    char *dir, *done, *log;
    char **argv; /* argv[0..words-1]: of `launch`, owned; then borrowed */
    size_t words;
    char *ranks, *launch;
    char *command; /* argv as text, a line each */
} one_run;

char *runs_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    return n < 0 ? NULL : text;
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list[n]) n++;
    return n;
}

/* Room for the launcher's words, ours and the caller's. */
static int make_argv(const runs *r, one_run *o, const char *const *args)
{
    const size_t room =
        count(args) + (r->launch ? strlen(r->launch) / 2 + 1 : 0) + 8;
    char *rest = NULL;

    o->argv = calloc(room, sizeof *o->argv);
    o->launch = strdup(r->launch ? r->launch : "");
    o->ranks = runs_format("%lld", (long long)r->ranks);
    if (!o->argv || !o->launch || !o->ranks) return -1;
    char **at = o->argv;
    for (char *w = strtok_r(o->launch, " \t", &rest); w;
         w = strtok_r(NULL, " \t", &rest))
        *at++ = w;
    *at++ = (char *)(uintptr_t)r->program;
    for (; *args; args++) *at++ = (char *)(uintptr_t)*args;
    if (!r->launch) {
        *at++ = (char *)(uintptr_t) "--ranks";
        *at++ = o->ranks;
    }
    *at++ = (char *)(uintptr_t) "--run-dir";
    *at++ = o->dir;
    *at = (char *)(uintptr_t) "--quiet";
    return 0;
}

/* What the result depends on. */
static char *describe(char *const *argv)
{
    const char *isa = getenv("TACIT_ISA");
    char *text =
        runs_format("tacit %s\n%s%s%s", TAC_VERSION_STRING,
                    isa ? "TACIT_ISA=" : "", isa ? isa : "", isa ? "\n" : "");

    for (; text && *argv; argv++) {
        char *more = runs_format("%s%s\n", text, *argv);

        free(text);
        text = more;
    }
    return text;
}

static void one_run_free(one_run *o)
{
    free(o->dir);
    free(o->done);
    free(o->log);
    free(o->argv);
    free(o->launch);
    free(o->ranks);
    free(o->command);
}

static tac_status one_run_make(const runs *r, const char *name,
                               const char *const *args, one_run *o)
{
    o->dir = runs_format("%s/runs/%s", r->root, name);
    o->done = runs_format("%s/runs/%s/done", r->root, name);
    o->log = runs_format("%s/runs/%s/log.txt", r->root, name);
    if (o->dir && o->done && o->log && make_argv(r, o, args) == 0)
        o->command = describe(o->argv);
    if (!o->command)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for run %s", name);
    if (tac_make_folders(o->dir) == 0) return TAC_OK;
    return tac_fail(r->ctx, TAC_ERR_IO,
                    "cannot make the folder %s: %m; give another --out",
                    o->dir);
}

/* The whole of a small file, malloc'd; NULL: not there. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;

    if (f && getdelim(&text, &room, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    if (f) fclose(f);
    return text;
}

/* The exit code of the same command, done before; -1: there is none, or what it
 * left is damaged. */
static int done_before(const one_run *o)
{
    char *text = read_text(o->done);
    int code = -1, used = 0;

    if (text && sscanf(text, "exit %d\n%n", &code, &used) == 1 &&
        (used == 0 || strcmp(text + used, o->command) != 0))
        code = -1;
    free(text);
    return code == 0 && !runs_intact(o->dir) ? -1 : code;
}

static tac_status mark_done(const runs *r, const one_run *o, int code)
{
    char *path = runs_format("%s.new", o->done);
    FILE *f = path ? fopen(path, "w") : NULL;
    int failed = !f || fprintf(f, "exit %d\n%s", code, o->command) < 0;

    if (f && fclose(f) != 0) failed = 1;
    if (!failed && rename(path, o->done) != 0) failed = 1;
    free(path);
    if (!failed) return TAC_OK;
    return tac_fail(r->ctx, TAC_ERR_IO,
                    "cannot write %s: %m; check the free space", o->done);
}

/* What is there is of another command, or of a run that was cut short. */
static void clear_folder(const one_run *o)
{
    static const char *const files[] = {"done", "summary.json",
                                        "metrics.jsonl"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = runs_format("%s/%s", o->dir, files[i]);

        if (path) unlink(path);
        free(path);
    }
}

/* The end of the log in one line. */
static void last_words(const one_run *o, char *out, size_t bytes)
{
    char *text = read_text(o->log);
    size_t n = text ? strlen(text) : 0;

    while (n > 0 && text[n - 1] == '\n') text[--n] = 0;
    const char *from = n < bytes ? text : text + n - bytes + 1;
    snprintf(out, bytes, "%s", text ? from : "");
    for (char *p = out; *p; p++)
        if (*p == '\n') *p = ';';
    free(text);
}

static tac_status status_of(const runs_end *e)
{
    if (e->timed_out || e->code == 124) return TAC_ERR_TIMEOUT;
    return e->code == 2 ? TAC_ERR_CONFIG : TAC_ERR_IO;
}

static tac_status failed(const runs *r, const char *name, const one_run *o,
                         const runs_end *e)
{
    char words[1200], how[64];

    last_words(o, words, sizeof words);
    if (e->timed_out)
        snprintf(how, sizeof how, "took longer than %lld s",
                 (long long)r->timeout_s);
    else if (e->signal)
        snprintf(how, sizeof how, "was ended by signal %d", e->signal);
    else
        snprintf(how, sizeof how, "ended with code %d", e->code);
    return tac_fail(r->ctx, status_of(e), "run %s %s: %s (%s)", name, how,
                    *words ? words : "it wrote nothing", o->log);
}

static tac_status do_it(const runs *r, const char *name, const one_run *o,
                        int *code)
{
    runs_end e;

    if (r->stop && *r->stop) return TAC_ERR_INTERRUPTED;
    clear_folder(o);
    TAC_TRY(runs_child(r, o->argv, o->log, &e));
    if (e.interrupted) return TAC_ERR_INTERRUPTED;
    if (e.timed_out || (e.code != 0 && e.code != DIVERGED))
        return failed(r, name, o, &e);
    *code = e.code;
    return mark_done(r, o, e.code);
}

static tac_status finish(const runs *r, const char *name, const one_run *o,
                         int code, run_result *out)
{
    out->name = strdup(name);
    if (!out->name)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for run %s", name);
    TAC_TRY(runs_read(r->ctx, o->dir, out));
    if (code == DIVERGED) return TAC_ERR_DIVERGED;
    if (out->summary) return TAC_OK;
    return tac_fail(r->ctx, TAC_ERR_DATA, "run %s left no summary in %s", name,
                    o->dir);
}

tac_status runs_do(const runs *r, const char *name, const char *const *args,
                   run_result *out)
{
    one_run o = {0};
    int code = -1;

    memset(out, 0, sizeof *out);
    tac_status s = one_run_make(r, name, args, &o);
    if (s >= 0) {
        code = done_before(&o);
        out->reused = code >= 0;
        if (code < 0) s = do_it(r, name, &o, &code);
    }
    if (s >= 0) s = finish(r, name, &o, code, out);
    one_run_free(&o);
    return s;
}
