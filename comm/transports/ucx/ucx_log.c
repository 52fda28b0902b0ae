/* ucx_log.c: what UCX has to say goes to stderr.
 *
 * UCX writes its warnings to stdout unless UCX_LOG_FILE is set, and stdout is
 * the program's. Its log is one for the process and knows no context, so a
 * handler for all is set while any context of ours exists: the only state that
 * is not in an object, as UCX's log itself. */
#include <stdio.h>
#include <stdlib.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include "transports/ucx/ucx.h"

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static _Atomic int muted; /* those who want no warnings */

static const char *prefix_of(ucs_log_level_t level)
{
    return level <= UCS_LOG_LEVEL_ERROR  ? "error: "
           : level == UCS_LOG_LEVEL_WARN ? "warning: "
                                         : "";
}

static ucs_log_func_rc_t to_stderr(const char *file, unsigned line,
                                   const char *function, ucs_log_level_t level,
                                   const ucs_log_component_config_t *component,
                                   const char *message, va_list ap)
{
    char text[1024];
    (void)file, (void)line, (void)function, (void)component;
    if (level >= UCS_LOG_LEVEL_WARN && atomic_load(&muted) > 0)
        return UCS_LOG_FUNC_RC_STOP;
    int n = snprintf(text, sizeof text, "ucx: %s", prefix_of(level));
    n += vsnprintf(text + n, sizeof text - (size_t)n, message, ap);
    if (n > (int)sizeof text - 2) n = (int)sizeof text - 2;
    text[n] = '\n';
    (void)!write(STDERR_FILENO, text, (size_t)n + 1);
    return UCS_LOG_FUNC_RC_STOP;
}

void tac__ucx_log_retain(void)
{
    pthread_mutex_lock(&users_lock);
    if (users++ == 0 && !getenv("UCX_LOG_FILE"))
        ucs_log_push_handler(to_stderr);
    pthread_mutex_unlock(&users_lock);
}

void tac__ucx_log_mute(int change)
{
    atomic_fetch_add(&muted, change);
}

void tac__ucx_log_release(void)
{
    pthread_mutex_lock(&users_lock);
    if (--users == 0 && !getenv("UCX_LOG_FILE")) ucs_log_pop_handler();
    pthread_mutex_unlock(&users_lock);
}
