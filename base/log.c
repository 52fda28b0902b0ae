/* log.c: one line a message, one write(2) a line; and reporting failures.
 *
 * A line is composed on the stack and never longer than 4,095 bytes with its
 * newline, so that lines of different ranks in one pipe don't mix. */
#include "context_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct log_line {
    char text[TAC__LINE_BYTES];
    size_t used; /* without newline and 0 */
} log_line;

enum { LINE_ROOM = TAC__LINE_BYTES - 2 }; /* leaves room for newline and 0 */

static const char *level_word(tac_log_level level)
{
    switch (level) {
    case TAC_LOG_ERROR: return "error: ";
    case TAC_LOG_WARN: return "warning: ";
    case TAC_LOG_DEBUG: return "debug: ";
    case TAC_LOG_INFO: break;
    }
    return "";
}

/* Where to end a text cut after n bytes so that no UTF-8 character is split:
 * before the last character, since nothing tells whether it is whole. */
static size_t cut_point(const char *s, size_t n)
{
    if (n == 0 || ((unsigned char)s[n - 1] & 0x80) == 0) return n;
    while (n > 1 && ((unsigned char)s[n - 1] & 0xc0) == 0x80) --n;
    return n - 1;
}

static void append(log_line *line, const char *fmt, va_list args)
{
    char *to = line->text + line->used;
    const size_t room = LINE_ROOM - line->used;
    const int n = vsnprintf(to, room + 1, fmt, args);
    if (n < 0) return; /* an encoding error: the line stays as it was */
    line->used += (size_t)n <= room ? (size_t)n : cut_point(to, room);
}

TAC_PRINTF(2, 3)
static void append_text(log_line *line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append(line, fmt, args);
    va_end(args);
}

/* One line stays one line whatever a file name or a message contains. */
static void finish(log_line *line)
{
    while (line->used > 0 && line->text[line->used - 1] == '\n') --line->used;
    for (size_t i = 0; i < line->used; ++i)
        if (line->text[i] == '\n') line->text[i] = ' ';
    line->text[line->used] = 0;
}

/* stderr may be a pipe whose reader is gone or a full disk: nothing to do. */
static void write_stderr(log_line *line)
{
    const char *p = line->text;
    size_t left = line->used + 1;
    line->text[line->used] = '\n';
    while (left > 0) {
        const ssize_t n = write(STDERR_FILENO, p, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        p += n;
        left -= (size_t)n;
    }
}

static void log_va(tac_context *ctx, tac_log_level level, const char *fmt,
                   va_list args)
{
    log_line line;
    if (level > (ctx ? ctx->level : TAC_LOG_INFO)) return;
    line.used = 0;
    if (ctx && ctx->rank != 0)
        append_text(&line, "[%d/%d %s] ", ctx->rank, ctx->world, ctx->host);
    append_text(&line, "%s", level_word(level));
    append(&line, fmt, args);
    finish(&line);
    if (ctx && ctx->log)
        ctx->log(ctx->log_arg, level, line.text);
    else
        write_stderr(&line);
}

void tac_log(tac_context *ctx, tac_log_level level, const char *fmt, ...)
{
    const int error = errno; /* logging never disturbs a caller's errno */
    va_list args;
    va_start(args, fmt);
    log_va(ctx, level, fmt, args);
    va_end(args);
    errno = error;
}

static void keep_message(tac_context *ctx, tac_status s, const char *fmt,
                         va_list args)
{
    if (!ctx) return;
    pthread_mutex_lock(&ctx->error_lock);
    if (vsnprintf(ctx->message, sizeof ctx->message, fmt, args) < 0)
        ctx->message[0] = 0;
    ctx->error = s;
    pthread_mutex_unlock(&ctx->error_lock);
}

tac_status tac_fail(tac_context *ctx, tac_status s, const char *fmt, ...)
{
    const int error = errno;
    va_list args;
    va_start(args, fmt);
    keep_message(ctx, s, fmt, args);
    va_end(args);
    errno = error; /* the text may use %m */
    va_start(args, fmt);
    log_va(ctx, TAC_LOG_ERROR, fmt, args);
    va_end(args);
    errno = error;
    return s;
}

tac_status tac_fail_quiet(tac_context *ctx, tac_status s, const char *fmt, ...)
{
    const int error = errno;
    va_list args;
    va_start(args, fmt);
    keep_message(ctx, s, fmt, args);
    va_end(args);
    errno = error;
    return s;
}

tac_status tac_context_error(const tac_context *ctx, char *buf, size_t bytes)
{
    /* Contexts are never const objects; only this view of it is. */
    pthread_mutex_t *lock = (pthread_mutex_t *)&ctx->error_lock;
    pthread_mutex_lock(lock);
    const tac_status s = ctx->error;
    if (buf && bytes > 0) snprintf(buf, bytes, "%s", ctx->message);
    pthread_mutex_unlock(lock);
    return s;
}
