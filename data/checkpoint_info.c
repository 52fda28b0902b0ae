/* checkpoint_info.c: checkpoint.json, what a reader wants to know first. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "tacit/checkpoint.h"
#include "tacit/json.h"

enum { FORMAT = 1, MAX_BYTES = 1 << 20 };

static void write_metrics(const tac_checkpoint_info *info, tac_json *j)
{
    if (info->n_metrics == 0) return;
    tac_json_begin_object(j, "metrics");
    for (size_t i = 0; i < info->n_metrics; i++)
        tac_json_f64(j, info->metrics[i].name, info->metrics[i].value);
    tac_json_end_object(j);
}

tac_status tac_checkpoint_write_info(tac_context *ctx, const char *path,
                                     const tac_checkpoint_info *info)
{
    tac_json *j = tac_json_create();
    const char *text = NULL;
    size_t bytes = 0;
    tac_status s = TAC_OK;

    if (j) {
        tac_json_begin_object(j, NULL);
        tac_json_i64(j, "format", info->format);
        tac_json_u64(j, "step", info->step);
        tac_json_u64(j, "attempts", info->attempts);
        tac_json_i64(j, "world", info->world);
        if (info->files > 0) tac_json_i64(j, "files", info->files);
        tac_json_str(j, "program", info->program);
        write_metrics(info, j);
        tac_json_end_object(j);
        text = tac_json_text(j, &bytes);
    }
    if (!text)
        s = tac_fail(ctx, TAC_ERR_NOMEM, "no memory for %s", path);
    else if (tac__files_write(path, text, bytes) != 0)
        s = tac_fail(ctx, TAC_ERR_IO,
                     "cannot write %s: %m; check the path, its permissions and "
                     "the free space",
                     path);
    tac_json_destroy(j);
    return s;
}

static tac_status bad(tac_context *ctx, const char *path, const char *what)
{
    return tac_fail(ctx, TAC_ERR_DATA,
                    "%s %s; the checkpoint is damaged or of another program",
                    path, what);
}

/* A whole number from `least` to `most` under a key. */
static tac_status get_number(tac_context *ctx, const char *path,
                             const json_t *j, const char *key, json_int_t least,
                             json_int_t most, json_int_t *out)
{
    const json_t *value = json_object_get(j, key);

    if (json_is_integer(value) && json_integer_value(value) >= least &&
        json_integer_value(value) <= most) {
        *out = json_integer_value(value);
        return TAC_OK;
    }
    return tac_fail(ctx, TAC_ERR_DATA,
                    "%s: \"%s\" is %s; the checkpoint is damaged or of another "
                    "program",
                    path, key, value ? "not what it must be" : "missing");
}

static tac_status get_program(tac_context *ctx, const char *path,
                              const json_t *j, tac_checkpoint_info *out)
{
    const char *text = json_string_value(json_object_get(j, "program"));

    if (!text || strlen(text) >= sizeof out->program)
        return bad(ctx, path,
                   text ? "has a \"program\" that is too long"
                        : "lacks \"program\"");
    strcpy(out->program, text);
    return TAC_OK;
}

/* A number that was not finite was written as null, and is no metric. */
static tac_status get_metrics(tac_context *ctx, const char *path, json_t *j,
                              tac_checkpoint_info *out)
{
    json_t *all = json_object_get(j, "metrics"), *value;
    const char *name;

    if (all && !json_is_object(all))
        return bad(ctx, path, "has \"metrics\" that are no object");
    json_object_foreach(all, name, value)
    {
        tac_checkpoint_metric *m = &out->metrics[out->n_metrics];

        if (json_is_null(value)) continue;
        if (!json_is_number(value) || strlen(name) >= sizeof m->name ||
            out->n_metrics == TAC_CHECKPOINT_METRICS)
            return bad(ctx, path, "has a metric that is not what it must be");
        strcpy(m->name, name);
        m->value = json_number_value(value);
        out->n_metrics++;
    }
    return TAC_OK;
}

static tac_status get_all(tac_context *ctx, const char *path, json_t *j,
                          tac_checkpoint_info *out)
{
    json_int_t format = 0, step = 0, attempts = 0, world = 0, files = 0;

    TAC_TRY(get_number(ctx, path, j, "format", 1, INT32_MAX, &format));
    if (format != FORMAT)
        return tac_fail(ctx, TAC_ERR_DATA,
                        "%s is of format %lld, this program reads %d; use the "
                        "version of tacit that wrote it",
                        path, (long long)format, FORMAT);
    TAC_TRY(get_number(ctx, path, j, "step", 0, INT64_MAX, &step));
    TAC_TRY(get_number(ctx, path, j, "attempts", step, INT64_MAX, &attempts));
    TAC_TRY(get_number(ctx, path, j, "world", 1, INT32_MAX, &world));
    if (json_object_get(j, "files"))
        TAC_TRY(get_number(ctx, path, j, "files", 0, INT32_MAX, &files));
    TAC_TRY(get_program(ctx, path, j, out));
    TAC_TRY(get_metrics(ctx, path, j, out));
    out->format = (int)format;
    out->step = (uint64_t)step;
    out->attempts = (uint64_t)attempts;
    out->world = (int)world;
    out->files = (int)files;
    return TAC_OK;
}

/* The file's text, malloc'd; not more than such a file can have. */
static tac_status read_text(tac_context *ctx, const char *path, char **out,
                            size_t *bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n = -1;
    char *text = NULL;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (!S_ISREG(st.st_mode) || st.st_size > MAX_BYTES) {
            close(fd);
            return bad(ctx, path, "is no small file of text");
        }
        text = malloc((size_t)st.st_size + 1);
        n = text ? read(fd, text, (size_t)st.st_size) : -1;
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    if (n < 0) {
        free(text);
        return tac_fail(ctx, TAC_ERR_IO,
                        "cannot read %s: %s; check the path and its "
                        "permissions",
                        path, strerror(error));
    }
    *out = text;
    *bytes = (size_t)n;
    return TAC_OK;
}

tac_status tac_checkpoint_read_info(tac_context *ctx, const char *path,
                                    tac_checkpoint_info *out)
{
    tac_checkpoint_info info = {0};
    json_error_t e;
    size_t bytes = 0;
    char *text = NULL;
    json_t *j;
    tac_status s;

    TAC_TRY(read_text(ctx, path, &text, &bytes));
    j = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    free(text);
    if (!json_is_object(j))
        s = tac_fail(ctx, TAC_ERR_DATA,
                     "%s is no valid JSON object: %s; the checkpoint is "
                     "damaged or of another program",
                     path, j ? "it is something else" : e.text);
    else
        s = get_all(ctx, path, j, &info);
    json_decref(j);
    if (s >= 0) *out = info;
    return s;
}
