/* One child: started in a process group of its own, so that a Ctrl-C at the
 * terminal is for this program alone, which passes it on as SIGTERM and waits.
 * The child does not outlive this program, however that ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runs_impl.h"
#include "tacit/clock.h"

enum { GRACE_S = 15, NOT_STARTED = 127 };

/* In the child. mpirun passes SIGTERM on to its ranks; threads can be killed.
 */
static void become(const runs *r, char *const *argv, char *const *env, int log,
                   pid_t parent)
{
    const int nothing = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, r->launch ? SIGTERM : SIGKILL);
    if (getppid() != parent) _exit(NOT_STARTED);
    runs_env_unbind();
    dup2(nothing, 0);
    dup2(log, 1);
    dup2(log, 2);
    execvpe(argv[0], argv, env);
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(NOT_STARTED);
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Waits for at most `limit_s` (0: for ever), or until `stop`. 1: it ended. */
static int wait_for(pid_t pid, double limit_s,
                    const volatile sig_atomic_t *stop, int *status)
{
    const double begin = tac_clock_s();

    for (long ms = 1;; ms += ms < 20) {
        const pid_t ended = waitpid(pid, status, WNOHANG);

        if (ended == pid || (ended < 0 && errno != EINTR)) return 1;
        if (stop && *stop) return 0;
        if (limit_s > 0 && tac_clock_s() - begin > limit_s) return 0;
        pause_ms(ms);
    }
}

/* Gives it time to write its files, and then none. */
static void end_child(pid_t pid, int *status)
{
    kill(-pid, SIGTERM);
    if (wait_for(pid, GRACE_S, NULL, status)) return;
    kill(-pid, SIGKILL);
    wait_for(pid, 0, NULL, status);
}

static void describe(int status, runs_end *out)
{
    out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static tac_status start(const runs *r, char *const *argv, int log, pid_t *out)
{
    const pid_t parent = getpid();
    char **env = runs_env_make();

    if (!env) return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for a run");
    *out = fork();
    if (*out == 0) become(r, argv, env, log, parent);
    free(env);
    if (*out > 0) {
        setpgid(*out, *out); /* whoever comes first */
        return TAC_OK;
    }
    return tac_fail(r->ctx, TAC_ERR_IO, "cannot start a process: %m");
}

tac_status runs_child(const runs *r, char *const *argv, const char *log,
                      runs_end *out)
{
    const int fd =
        open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    pid_t pid = 0;
    int status = 0;

    memset(out, 0, sizeof *out);
    if (fd < 0)
        return tac_fail(r->ctx, TAC_ERR_IO,
                        "cannot write %s: %m; check the folder", log);
    const tac_status s = start(r, argv, fd, &pid);
    close(fd);
    TAC_TRY(s);
    if (!wait_for(pid, (double)r->timeout_s, r->stop, &status)) {
        out->interrupted = r->stop && *r->stop;
        out->timed_out = !out->interrupted;
        end_child(pid, &status);
    }
    describe(status, out);
    return TAC_OK;
}
