/* tune.c: see tune.h. */
#include "tune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_LINE "tacit-tune 1"
#define MOST_BYTES 65536u
#define MOST_LINE  256u

typedef struct key {
    const char *name;
    size_t offset;
} key;

#define KEY(level, what)                                         \
    {                                                            \
#level "." #what, offsetof(tac__cost_params, level.what) \
    }
static const key keys[] = {
    KEY(shared, alpha),  KEY(shared, beta),  KEY(shared, gamma),
    KEY(local, alpha),   KEY(local, beta),   KEY(local, gamma),
    KEY(network, alpha), KEY(network, beta), KEY(network, gamma),
};
enum { KEYS = sizeof keys / sizeof *keys };

static double *field(tac__cost_params *p, int i)
{
    return (double *)(void *)((char *)p + keys[i].offset);
}

/* Where the file is read, and what is said about it. */
typedef struct reader {
    const char *path;
    int line;
    unsigned seen; /* keys, as bits */
    tac__cost_params params;
    char *why;
    size_t bytes;
} reader;

static tac_status wrong(const reader *r, const char *what, const char *text)
{
    snprintf(r->why, r->bytes, "%.100s, line %d: %s%.40s", r->path, r->line,
             what, text);
    return TAC_ERR_ARG;
}

static int find_key(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0) return i;
    return -1;
}

/* Finite, not negative, nothing behind it: seconds, up to an hour. */
static int parse_value(const char *text, double *out)
{
    char *end = NULL;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0 && v <= 3600)) return 0;
    *out = v;
    return 1;
}

static tac_status parse_line(reader *r, char *line)
{
    char *save = NULL;
    const char *name = strtok_r(line, " \t\r\n", &save);
    if (!name || *name == '#') return TAC_OK;
    const int i = find_key(name);
    if (i < 0) return wrong(r, "there is no key ", name);
    if (r->seen >> i & 1u) return wrong(r, "twice: ", name);
    const char *value = strtok_r(NULL, " \t\r\n", &save);
    if (!value || strtok_r(NULL, " \t\r\n", &save))
        return wrong(r, "one value is needed for ", name);
    if (!parse_value(value, field(&r->params, i)))
        return wrong(r, "no number of seconds (0 to 3600): ", value);
    r->seen |= 1u << i;
    return TAC_OK;
}

/* One line, without its end; 0: the file has ended. */
static int next_line(reader *r, FILE *f, char *line, tac_status *s)
{
    size_t n = 0;
    int ch = fgetc(f);
    if (ch == EOF) return 0;
    r->line++;
    for (; ch != EOF && ch != '\n'; ch = fgetc(f)) {
        if (n + 1 == MOST_LINE || ch == '\0') {
            *s = wrong(r, n + 1 == MOST_LINE ? "too long" : "a zero byte", "");
            return 0;
        }
        line[n++] = (char)ch;
    }
    line[n] = '\0';
    return 1;
}

static tac_status read_file(reader *r, FILE *f)
{
    char line[MOST_LINE];
    tac_status s = TAC_OK;
    if (!next_line(r, f, line, &s)) {
        r->line = 1;
        return s < 0 ? s : wrong(r, "empty", "");
    }
    line[strcspn(line, "\r")] = '\0';
    if (strcmp(line, FIRST_LINE) != 0)
        return wrong(r, "not \"" FIRST_LINE "\": ", line);
    while (next_line(r, f, line, &s)) {
        if (ftell(f) > (long)MOST_BYTES) return wrong(r, "too many lines", "");
        TAC_TRY(parse_line(r, line));
    }
    if (s == TAC_OK && ferror(f)) {
        snprintf(r->why, r->bytes, "%.100s: %s", r->path, strerror(errno));
        return TAC_ERR_IO;
    }
    return s;
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

tac_status tac__tune_read(const char *path, tac__cost_params *params, char *why,
                          size_t bytes)
{
    reader r = {.path = path, .params = *params, .why = why, .bytes = bytes};
    FILE *f = open_text(path);
    if (!f) {
        snprintf(why, bytes,
                 "tune_file %.100s: %s; comm_bench --tune writes one", path,
                 strerror(errno));
        return TAC_ERR_IO;
    }
    const tac_status s = read_file(&r, f);
    fclose(f);
    if (s == TAC_OK) *params = r.params;
    return s;
}

tac_status tac__tune_write(const char *path, const tac__cost_params *params)
{
    tac__cost_params p = *params;
    FILE *f = fopen(path, "we");
    if (!f) return TAC_ERR_IO;
    fprintf(f, FIRST_LINE "\n");
    for (int i = 0; i < KEYS; i++)
        fprintf(f, "%s %.9g\n", keys[i].name, *field(&p, i));
    const int bad = ferror(f);
    return fclose(f) != 0 || bad ? TAC_ERR_IO : TAC_OK;
}
