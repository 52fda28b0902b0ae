/* comm_told.h: what tests of failures share: a context whose lines are kept, a
 * small allreduce, and looking for words in texts. */
#ifndef COMM_TOLD_H
#define COMM_TOLD_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tac_check.h"
#include "tac_json_check.h"
#include "tacit/clock.h"
#include "tacit/comm.h"

/* What a context has logged. */
typedef struct told {
    pthread_mutex_t lock;
    int errors, warnings;
    char error[1024], warning[1024]; /* the first of each */
} told;

static inline void told_line(void *arg, tac_log_level level, const char *line)
{
    told *t = arg;
    pthread_mutex_lock(&t->lock);
    if (level == TAC_LOG_ERROR && t->errors++ == 0)
        snprintf(t->error, sizeof t->error, "%s", line);
    if (level == TAC_LOG_WARN && t->warnings++ == 0)
        snprintf(t->warning, sizeof t->warning, "%s", line);
    pthread_mutex_unlock(&t->lock);
}

static inline int told_has(const char *text, const char *part)
{
    return CHECK_MSG(strstr(text, part) != NULL, "\"%s\" contains \"%s\"", text,
                     part);
}

static inline int told_error_has(const tac_comm *c, const char *part)
{
    char text[1024];
    tac_comm_error(c, text, sizeof text);
    return told_has(text, part);
}

static inline void told_sleep_ms(unsigned ms)
{
    const double until = tac_clock_s() + ms * 1e-3;
    while (tac_clock_s() < until) tac_clock_sleep_ns(1000000u);
}

/* An allreduce of one element. */
static inline tac_status told_sum(tac_comm *c, int timeout_ms)
{
    static _Thread_local float x;
    tac_req *req = NULL;
    x = 1;
    const tac_status s =
        tac_allreduce(c, NULL, &x, 1, TAC_F32, TAC_SUM, NULL, &req);
    return s < 0 ? s : tac_wait(req, timeout_ms);
}

static inline tac_status told_barrier(tac_comm *c)
{
    tac_req *req = NULL;
    const tac_status s = tac_barrier(c, NULL, &req);
    return s < 0 ? s : tac_wait(req, 0);
}

/* Until the communicator has failed, at most 10 s; its status. */
static inline tac_status told_wait_for_error(tac_comm *c)
{
    for (int i = 0; i < 2000 && !tac_comm_error(c, NULL, 0); i++) {
        told_sleep_ms(5);
        (void)tac_comm_progress(c);
    }
    return tac_comm_error(c, NULL, 0);
}

/* A file's text, malloc'd; NULL if there is none. */
static inline char *told_read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (f && text) text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    if (f) fclose(f);
    if (f) return text;
    free(text);
    return NULL;
}

#endif
