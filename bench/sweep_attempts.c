/* The file of --attempt-times: a line of names, then a line an attempt: its
 * number, and the seconds that it took each rank; or, if the second name is
 * "rank", a line for each attempt and rank: attempt, rank, seconds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "localsgd_sweep.h"

typedef struct reader {
    sweep *s;
    const char *path;
    size_t cap;
    int line, wide;
} reader;

static tac_status bad(const reader *r)
{
    return tac_fail(r->s->ctx, TAC_ERR_DATA,
                    "%s: line %d is no line of attempt times of %d ranks; "
                    "remove the folder",
                    r->path, r->line, r->s->world);
}

/* Room for attempt `n - 1`; what is new is NaN. There are no more attempts than
 * lines: memory grows with the file, whatever it says. */
static tac_status reserve(reader *r, size_t n)
{
    if (n >= (size_t)r->line) return bad(r);
    sweep *s = r->s;
    const size_t world = (size_t)s->world;

    if (n > r->cap) {
        const size_t cap = n > 2 * r->cap ? n : 2 * r->cap;
        double *more = realloc(s->attempt_s, cap * world * sizeof *more);

        if (!more)
            return tac_fail(s->ctx, TAC_ERR_NOMEM, "no memory for %zu attempts",
                            cap);
        for (size_t i = r->cap * world; i < cap * world; i++) more[i] = NAN;
        s->attempt_s = more;
        r->cap = cap;
    }
    if ((int64_t)n > s->n_attempts) s->n_attempts = (int64_t)n;
    return TAC_OK;
}

static tac_status read_long(reader *r, const char *text)
{
    long long attempt;
    int rank;
    double seconds;

    if (sscanf(text, "%lld,%d,%lf", &attempt, &rank, &seconds) != 3 ||
        attempt < 1 || rank < 0 || rank >= r->s->world)
        return bad(r);
    TAC_TRY(reserve(r, (size_t)attempt));
    r->s->attempt_s[(attempt - 1) * r->s->world + rank] = seconds;
    return TAC_OK;
}

static tac_status read_wide(reader *r, char *text)
{
    char *at = text;
    const long long attempt = strtoll(at, &at, 10);

    if (attempt < 1) return bad(r);
    TAC_TRY(reserve(r, (size_t)attempt));
    double *out = r->s->attempt_s + (attempt - 1) * r->s->world;
    for (int rank = 0; rank < r->s->world; rank++) {
        if (*at != ',') return bad(r);
        out[rank] = strtod(at + 1, &at);
    }
    return TAC_OK;
}

static tac_status read_line(reader *r, char *text)
{
    r->line++;
    if (r->line == 1) {
        const char *second = strchr(text, ',');

        r->wide = !second || strncmp(second + 1, "rank,", 5) != 0;
        return TAC_OK;
    }
    return r->wide ? read_wide(r, text) : read_long(r, text);
}

/* Of every attempt of every rank? */
static tac_status check_complete(const reader *r)
{
    const sweep *s = r->s;

    for (int64_t i = 0; i < s->n_attempts * s->world; i++)
        if (!isfinite(s->attempt_s[i])) return bad(r);
    return s->n_attempts > 0 ? TAC_OK : bad(r);
}

tac_status sweep_read_attempts(sweep *s, const char *path)
{
    reader r = {.s = s, .path = path};
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    tac_status status = TAC_OK;

    if (!f)
        return tac_fail(s->ctx, TAC_ERR_IO,
                        "cannot read %s: %m; remove the "
                        "folder, so that it is made again",
                        path);
    while (status >= 0 && getline(&text, &room, f) > 0)
        status = read_line(&r, text);
    free(text);
    fclose(f);
    return status < 0 ? status : check_complete(&r);
}
