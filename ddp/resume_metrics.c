/* metrics.jsonl of a run that goes on: the steps after the checkpoint will come
 * again, so their lines go; so does a line that a crash has cut. */
#include "save.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the line belong to what was before the checkpoint? */
static int is_kept(const char *line, size_t bytes, uint64_t attempts)
{
    json_t *j = json_loadb(line, bytes, 0, NULL);
    const json_t *at = json_object_get(j, "attempts");
    const int kept = json_is_integer(at) && json_integer_value(at) >= 0 &&
                     (uint64_t)json_integer_value(at) <= attempts;

    json_decref(j);
    return kept;
}

static int copy_lines(FILE *from, FILE *to, uint64_t attempts)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int ok = 1;

    while (ok && (n = getline(&line, &room, from)) > 0)
        if (line[n - 1] == '\n' && is_kept(line, (size_t)n, attempts))
            ok = fwrite(line, 1, (size_t)n, to) == (size_t)n;
    free(line);
    return ok && !ferror(from);
}

static int rewrite(FILE *from, const char *temporary, const char *path,
                   uint64_t attempts)
{
    FILE *to = fopen(temporary, "w");
    int ok = to && copy_lines(from, to, attempts);

    if (to && fclose(to) != 0) ok = 0;
    if (ok && rename(temporary, path) != 0) ok = 0;
    if (to && !ok) unlink(temporary);
    return ok;
}

tac_status tac__resume_metrics(tac_context *ctx, const char *path,
                               uint64_t attempts)
{
    FILE *from = fopen(path, "r");
    const size_t bytes = strlen(path) + 5;
    char *temporary = malloc(bytes);
    int ok;

    if (!from) { /* nothing to keep */
        free(temporary);
        return TAC_OK;
    }
    if (temporary) snprintf(temporary, bytes, "%s.tmp", path);
    ok = temporary && rewrite(from, temporary, path, attempts);
    fclose(from);
    free(temporary);
    if (ok) return TAC_OK;
    return tac_fail(ctx, TAC_ERR_IO,
                    "cannot shorten %s: %m; check its permissions and the free "
                    "space",
                    path);
}
