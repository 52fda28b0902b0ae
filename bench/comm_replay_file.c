/* comm_replay_file.c: reading what ddp_train --record writes.
 *
 * JSON, a value a line. The first is the header, with the compute of a step in
 * microseconds; then one line a tensor, in the order of readiness:
 *
 *     {"replay":1,"forward_us":900,"backward_us":2100,"update_us":300}
 *     {"name":"fc2.bias","bytes":40,"ready_us":12.5}
 *
 * ready_us counts from the start of backward and does not decrease; bytes are
 * those of f32 elements. "shape":[10,16] may say what they form, for codecs
 * that need matrices. "compute_us" may stand for "backward_us"; forward_us and
 * update_us default to 0; other keys are ignored. The file may come from
 * anywhere: every line is checked, and a mistake names its line. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm_replay.h"

enum { MOST_TENSORS = 1 << 20, MOST_LINE = 1 << 16 };
#define MOST_BYTES ((json_int_t)1 << 40)
#define MOST_US    1e12

typedef struct reader {
    tac_context *ctx;
    const char *path;
    int line;
    tac__replay_step *step;
    int has_header;
    size_t bytes; /* of all tensors */
} reader;

TAC_PRINTF(2, 3)
static tac_status bad(const reader *r, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return tac_fail(r->ctx, TAC_ERR_DATA, "line %d of %s: %s", r->line, r->path,
                    text);
}

/* A time that is a number in range; a missing one is `fallback`, if that is not
 * negative. */
static tac_status read_us(const reader *r, const json_t *o, const char *key,
                          double fallback, double *out)
{
    const json_t *v = json_object_get(o, key);
    if (!v && fallback >= 0) {
        *out = fallback;
        return TAC_OK;
    }
    if (!json_is_number(v))
        return bad(r, "\"%s\" is missing or no number", key);
    *out = json_number_value(v);
    if (*out >= 0 && *out <= MOST_US) return TAC_OK;
    return bad(r, "\"%s\" is not in 0..1e12", key);
}

static tac_status read_header(reader *r, const json_t *o)
{
    tac__replay_step *s = r->step;
    const int other =
        json_object_get(o, "compute_us") && !json_object_get(o, "backward_us");
    if (json_object_get(o, "ready_us"))
        return bad(r, "the first line is a header with \"backward_us\", and "
                      "only then come tensors");
    const json_t *version = json_object_get(o, "replay");
    if (version &&
        !(json_is_integer(version) && json_integer_value(version) == 1))
        return bad(r, "\"replay\" is a version that this program doesn't know; "
                      "it reads 1");
    TAC_TRY(read_us(r, o, other ? "compute_us" : "backward_us", -1,
                    &s->backward_us));
    TAC_TRY(read_us(r, o, "forward_us", 0, &s->forward_us));
    TAC_TRY(read_us(r, o, "update_us", 0, &s->update_us));
    s->timed = 1;
    r->has_header = 1;
    return TAC_OK;
}

/* Rows of a matrix: the first extent, if there are more. */
static tac_status read_rows(const reader *r, const json_t *o, size_t elements,
                            size_t *rows)
{
    const json_t *shape = json_object_get(o, "shape");
    const size_t n = json_array_size(shape);
    size_t product = 1;
    if (!shape) return TAC_OK;
    for (size_t i = 0; i < n; i++) {
        const json_int_t x = json_integer_value(json_array_get(shape, i));
        if (x <= 0 || (size_t)x > elements / product)
            return bad(r, "\"shape\" does not multiply to the elements");
        product *= (size_t)x;
        if (i == 0 && n > 1) *rows = (size_t)x;
    }
    if (n > 0 && product == elements) return TAC_OK;
    return bad(r, "\"shape\" does not multiply to the elements");
}

static tac_status read_tensor(reader *r, const json_t *o)
{
    tac__replay_step *s = r->step;
    const char *name = json_string_value(json_object_get(o, "name"));
    const json_t *bytes = json_object_get(o, "bytes");
    const json_int_t n = json_integer_value(bytes);
    double ready = 0;
    size_t rows = 0;
    if (!name || !*name) return bad(r, "\"name\" is missing or no text");
    if (!json_is_integer(bytes) || n < 0 || n > MOST_BYTES || n % 4)
        return bad(r, "\"bytes\" is no multiple of 4 in 0..2^40");
    TAC_TRY(read_us(r, o, "ready_us", -1, &ready));
    if (s->n && ready < s->tensor[s->n - 1].ready_us)
        return bad(r, "\"ready_us\" is before the line above; tensors come in "
                      "the order of readiness");
    if (s->n >= MOST_TENSORS) return bad(r, "too many tensors");
    r->bytes += (size_t)n;
    if (r->bytes > (size_t)MOST_BYTES)
        return bad(r, "the tensors are larger than 2^40 bytes");
    TAC_TRY(read_rows(r, o, (size_t)n / 4, &rows));
    const tac__replay_tensor t = {(char *)(uintptr_t)name, (size_t)n, rows,
                                  ready};
    return tac__replay_add(r->ctx, s, &t);
}

static tac_status read_line(reader *r, const char *text, size_t bytes)
{
    json_error_t e;
    json_t *o = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    tac_status s;
    if (!o) return bad(r, "no JSON: %.100s", e.text);
    if (!json_is_object(o))
        s = bad(r, "no JSON object");
    else
        s = r->has_header ? read_tensor(r, o) : read_header(r, o);
    json_decref(o);
    return s;
}

static int blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' &&
            text[i] != '\n')
            return 0;
    return 1;
}

static tac_status read_lines(reader *r, FILE *f, char *text)
{
    size_t n = 0;
    int c = 0;
    r->line = 1;
    for (; c != EOF; r->line += c == '\n') {
        c = getc(f);
        if (c != '\n' && c != EOF) {
            if (n >= MOST_LINE) return bad(r, "longer than 65536 bytes");
            text[n++] = (char)c;
            continue;
        }
        if (!blank(text, n)) TAC_TRY(read_line(r, text, n));
        n = 0;
    }
    if (ferror(f)) return bad(r, "can't be read: %m");
    if (!r->has_header) return bad(r, "the file is empty");
    if (r->step->n) return TAC_OK;
    return bad(r, "no tensors");
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

tac_status tac__replay_read(tac_context *ctx, const char *path,
                            tac__replay_step *out)
{
    tac__replay_step s = {.source = path};
    reader r = {.ctx = ctx, .path = path, .step = &s};
    FILE *f = open_text(path);
    char *text = malloc(MOST_LINE);
    tac_status status;
    if (!f)
        status = tac_fail(ctx, TAC_ERR_DATA,
                          "can't open %s: %m; --replay takes a file of "
                          "ddp_train --record, or gpt2-124M",
                          path);
    else if (!text)
        status = tac_fail(ctx, TAC_ERR_NOMEM, "no memory to read %s", path);
    else
        status = read_lines(&r, f, text);
    free(text);
    if (f) fclose(f);
    if (status < 0) {
        tac__replay_free(&s);
        return status;
    }
    *out = s;
    return TAC_OK;
}
