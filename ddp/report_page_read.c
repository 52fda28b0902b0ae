/* Reading a run folder. Files may be anybody's: sizes are bounded, and lines
 * that are no JSON are counted, not trusted. */
#include "report_page_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SMALL_FILE = 4 << 20,   /* longest summary.json and config.ini */
    LONGEST_LINE = 1 << 13, /* of metrics.jsonl */
    MOST_LINES = 2000,      /* of a kind: a picture shows no more */
    MOST_KEYS = 64          /* of a line of ours */
};

FILE *tac__report_open(const tac__report_page *p, const char *name)
{
    char path[4096];
    struct stat st;
    const int n = snprintf(path, sizeof path, "%s/%s", p->dir, name);

    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    FILE *f = fdopen(fd, "r");
    if (!f) close(fd);
    return f;
}

/* What is not there is no failure; what can't be read is. */
static tac_status missing(const tac__report_page *p, const char *name)
{
    if (errno == ENOENT) return TAC_OK;
    return tac_fail(p->ctx, TAC_ERR_IO, "cannot read %s/%s: %m", p->dir, name);
}

/* The whole text of a small file; *out NULL: there is no such file. */
static tac_status read_text(const tac__report_page *p, const char *name,
                            char **out)
{
    FILE *f = tac__report_open(p, name);
    char *text;
    size_t n;

    *out = NULL;
    if (!f) return missing(p, name);
    text = malloc(SMALL_FILE + 1);
    if (!text) {
        fclose(f);
        return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for %s", name);
    }
    n = fread(text, 1, SMALL_FILE + 1, f);
    fclose(f);
    if (n > SMALL_FILE || memchr(text, '\0', n)) {
        free(text);
        return tac_fail(p->ctx, TAC_ERR_DATA,
                        "%s/%s is no text of at most %d MiB", p->dir, name,
                        SMALL_FILE >> 20);
    }
    text[n] = '\0';
    *out = text;
    return TAC_OK;
}

static tac_status read_summary(tac__report_page *p)
{
    json_error_t why;
    char *text;

    TAC_TRY(read_text(p, "summary.json", &text));
    if (!text) return TAC_OK;
    p->summary = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (p->summary && json_is_object(p->summary)) return TAC_OK;
    return tac_fail(p->ctx, TAC_ERR_DATA,
                    "%s/summary.json is no JSON object: %s, line %d", p->dir,
                    p->summary ? "something else" : why.text,
                    p->summary ? 1 : why.line);
}

/* Reads a line; 0 at the end, -1 if it is too long to be one of ours. */
static int next_line(FILE *f, char *line)
{
    size_t n;

    if (!fgets(line, LONGEST_LINE, f)) return 0;
    n = strlen(line);
    if (n + 1 < LONGEST_LINE || line[n - 1] == '\n') return 1;
    for (int c = getc(f); c != EOF && c != '\n';) c = getc(f);
    return -1;
}

static int is_train(const char *line)
{
    return strncmp(line, "{\"kind\":\"train\"", 15) == 0;
}

/* Lines of training and others are thinned apart: every stride-th, and the
 * last. */
typedef struct thinning {
    size_t lines, seen, stride;
} thinning;

static void count_lines(FILE *f, char *line, thinning t[2])
{
    for (int how = next_line(f, line); how != 0; how = next_line(f, line))
        t[how > 0 && is_train(line)].lines++;
    rewind(f);
    for (int i = 0; i < 2; i++) t[i].stride = t[i].lines / MOST_LINES + 1;
}

static int is_kept(thinning *t)
{
    t->seen++;
    return t->seen % t->stride == 0 || t->seen == t->lines;
}

static tac_status keep_line(tac__report_page *p, json_t *line)
{
    if (p->n == p->capacity) {
        const size_t more = p->capacity ? 2 * p->capacity : 256;
        json_t **lines = realloc(p->lines, more * sizeof *lines);
        if (!lines) {
            json_decref(line);
            return tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for metrics");
        }
        p->lines = lines;
        p->capacity = more;
    }
    p->lines[p->n++] = line;
    return TAC_OK;
}

static tac_status read_lines(tac__report_page *p, FILE *f, char *line)
{
    thinning t[2] = {{0, 0, 1}, {0, 0, 1}};

    count_lines(f, line, t);
    p->all = t[0].lines + t[1].lines;
    for (int how = next_line(f, line); how != 0; how = next_line(f, line)) {
        if (!is_kept(&t[how > 0 && is_train(line)])) continue;
        json_t *object = how > 0 ? json_loads(line, 0, NULL) : NULL;
        if (json_is_object(object) && json_object_size(object) <= MOST_KEYS) {
            TAC_TRY(keep_line(p, object));
        } else {
            json_decref(object);
            p->damaged++;
        }
    }
    return TAC_OK;
}

static tac_status read_metrics(tac__report_page *p)
{
    FILE *f = tac__report_open(p, "metrics.jsonl");
    char *line = malloc(LONGEST_LINE);
    tac_status s = TAC_OK;

    if (!f)
        s = missing(p, "metrics.jsonl");
    else if (!line)
        s = tac_fail(p->ctx, TAC_ERR_NOMEM, "no memory for metrics");
    else
        s = read_lines(p, f, line);
    free(line);
    if (f) fclose(f);
    return s;
}

tac_status tac__report_page_read(tac__report_page *p)
{
    TAC_TRY(read_summary(p));
    TAC_TRY(read_text(p, "config.ini", &p->config));
    return read_metrics(p);
}

void tac__report_page_free(tac__report_page *p)
{
    for (size_t i = 0; i < p->n; i++) json_decref(p->lines[i]);
    free(p->lines);
    json_decref(p->summary);
    free(p->config);
}

double tac__report_value(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

double tac__report_number(const tac__report_page *p, const char *key)
{
    return tac__report_value(p->summary, key);
}

const char *tac__report_string(const tac__report_page *p, const char *key)
{
    const char *text = json_string_value(json_object_get(p->summary, key));

    return text ? text : "";
}

int tac__report_is_true(const tac__report_page *p, const char *key)
{
    return json_is_true(json_object_get(p->summary, key));
}

void tac__report_put(const tac__report_page *p, const char *format, int digits,
                     double v)
{
    char text[400] = "-";
    const char *at = strstr(format, "%s");

    if (isfinite(v)) snprintf(text, sizeof text, "%.*f", digits, v);
    tac_page_print(p->f, "%.*s%s%s", (int)(at - format), format, text, at + 2);
}
