/* INI files for the option table, read by libinih.
 *
 * Debian's libinih does not tell its callback the line number, so lines are
 * counted where they are read. The first failure is kept, since
 * tac_options_set has already reported it. */
#include "tacit/options_ini.h"

#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct reader {
    tac_context *ctx;
    tac_options *options;
    const char *path;
    FILE *file;
    int line;
    tac_status status;
} reader;

/* Reads over the rest of a line; 0 if it does not end in reasonable length. */
static int skip_rest(FILE *f)
{
    for (int i = 0; i < 1 << 20; i++) {
        const int c = getc(f);

        if (c == '\n' || c == EOF) return 1;
    }
    return 0;
}

/* libinih reads into a buffer of its own size (200) and would take the rest of
 * a longer line for another line. Comments may be longer. */
static char *read_line(char *text, int bytes, void *stream)
{
    reader *r = stream;
    const char *first = text;

    if (r->status < 0 || !fgets(text, bytes, r->file)) return NULL;
    r->line++;
    if (strchr(text, '\n') || feof(r->file)) return text;
    while (*first == ' ' || *first == '\t') first++;
    if ((*first == '#' || *first == ';') && skip_rest(r->file)) return text;
    r->status = tac_fail(r->ctx, TAC_ERR_CONFIG,
                         "line %d of %s is longer than %d characters, or no "
                         "text; give a long value on the command line instead",
                         r->line, r->path, bytes - 2);
    return NULL;
}

static int on_key(void *user, const char *section, const char *key,
                  const char *value)
{
    reader *r = user;
    char where[512];

    (void)section;
    if (r->status < 0) return 1;
    snprintf(where, sizeof where, "line %d of %s", r->line, r->path);
    r->status = tac_options_set(r->options, key, value, TAC_SOURCE_FILE, where);
    return r->status >= 0;
}

/* A pipe that nobody writes to is empty instead of waited for. */
static FILE *open_text(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

    if (fd >= 0 && !f) close(fd);
    if (f) fcntl(fd, F_SETFL, O_RDONLY);
    return f;
}

tac_status tac_options_read_ini(tac_context *ctx, tac_options *o,
                                const char *path)
{
    reader r = {ctx, o, path, open_text(path), 0, TAC_OK};
    int line;

    if (!r.file)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "cannot open the configuration file %s: %m; check "
                        "--config",
                        path);
    line = ini_parse_stream(read_line, &r, on_key, &r);
    if (r.status >= 0 && ferror(r.file))
        r.status = tac_fail(ctx, TAC_ERR_CONFIG,
                            "cannot read the configuration file %s: %m; check "
                            "--config",
                            path);
    fclose(r.file);
    if (r.status < 0) return r.status;
    if (line != 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "line %d of %s is not 'key = value', a [section] or a "
                        "comment",
                        line < 0 ? r.line : line, path);
    return TAC_OK;
}
