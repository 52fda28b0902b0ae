/* Parts of the report's page that its files share. */
#ifndef TAC_DDP_REPORT_PAGE_IMPL_H
#define TAC_DDP_REPORT_PAGE_IMPL_H

#include <jansson.h>
#include <stdio.h>

#include "tacit/context.h"
#include "tacit/page.h"

typedef struct tac__report_page {
    tac_context *ctx;
    const char *dir;
    FILE *f;
    json_t *summary;    /* NULL: the run has none yet */
    json_t **lines;     /* of metrics.jsonl, thinned where they are many */
    size_t n, capacity; /* of them */
    size_t all;         /* lines that there are */
    size_t damaged;     /* of those looked at, what was no line */
    char *config;       /* text of config.ini; NULL: none */
} tac__report_page;

/* report_page_read.c: fills in what the folder has. */
tac_status tac__report_page_read(tac__report_page *p);
void tac__report_page_free(tac__report_page *p);
/* Opens a regular file of the folder; NULL, with errno, if there is none. */
FILE *tac__report_open(const tac__report_page *p, const char *name);
/* Of the summary; NaN, "" or 0 if it has no such thing. */
double tac__report_number(const tac__report_page *p, const char *key);
const char *tac__report_string(const tac__report_page *p, const char *key);
int tac__report_is_true(const tac__report_page *p, const char *key);
/* printf with %s for a number, "-" where it is none; one number a call. */
void tac__report_put(const tac__report_page *p, const char *format, int digits,
                     double v);
/* Of any object: a number, else NaN. */
double tac__report_value(const json_t *object, const char *key);

/* report_page_head.c: what was trained, how well, and what to mind. */
void tac__report_page_head(const tac__report_page *p);
/* report_page_curves.c: everything against steps. Errors: NOMEM. */
tac_status tac__report_page_curves(const tac__report_page *p);
/* report_page_tables.c: time, bytes, memory. */
void tac__report_page_tables(const tac__report_page *p);
/* report_page_settings.c: checkpoints; what was set, then everything. */
void tac__report_page_settings(const tac__report_page *p);

#endif
