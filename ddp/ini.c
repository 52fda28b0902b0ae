/* INI files for the option table, read by libinih.
 *
 * Debian's libinih does not tell its callback the line number, so lines are
 * counted where they are read. The first failure is kept, since
 * tac_options_set has already reported it. */
#include "tacit/options_ini.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    tac_options *options;
    const char *path;
    FILE *file;
    int line;
    tac_status status;
} reader;

static char *read_line(char *text, int bytes, void *stream)
{
    reader *r = stream;

    if (!fgets(text, bytes, r->file)) return NULL;
    r->line++;
    return text;
}

static int on_key(void *user, const char *section, const char *key,
                  const char *value)
{
    reader *r = user;
    char where[512];

    (void)section;
    if (r->status < 0) return 1;
    snprintf(where, sizeof where, "line %d of %s", r->line, r->path);
    r->status =
        tac_options_set(r->options, key, value, TAC_SOURCE_FILE, where);
    return r->status >= 0;
}

tac_status tac_options_read_ini(tac_context *ctx, tac_options *o,
                                const char *path)
{
    reader r = {o, path, fopen(path, "r"), 0, TAC_OK};
    int line;

    if (!r.file)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "cannot open the configuration file %s: %m; check "
                        "--config",
                        path);
    line = ini_parse_stream(read_line, &r, on_key, &r);
    fclose(r.file);
    if (r.status < 0) return r.status;
    if (line != 0)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "line %d of %s is not 'key = value', a [section] or a "
                        "comment",
                        line < 0 ? r.line : line, path);
    return TAC_OK;
}
