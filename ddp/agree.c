/* Set-up work is done by every rank, so most of its failures happen on every
 * rank at once: no such file, no memory. No rank leaves before all have told
 * each other how they fared (4 bytes a rank), and the lowest one that failed
 * speaks for all. */
#include "agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tac__capture_log(void *arg, tac_log_level level, const char *line)
{
    tac__capture *c = arg;
    char out[4096];
    int n;

    if (level == TAC_LOG_ERROR && c->armed) {
        snprintf(c->text, sizeof c->text, "%s", line);
        return;
    }
    if (level == TAC_LOG_ERROR) c->told = 1;
    n = snprintf(out, sizeof out, "%s\n", line);
    if (n >= (int)sizeof out) out[n = (int)sizeof out - 1] = '\n';
    if (n > 0 && write(STDERR_FILENO, out, (size_t)n) < 0) return;
}

void tac__capture_flush(tac__capture *c)
{
    const int armed = c->armed;

    if (!c->text[0]) return;
    c->armed = 0;
    tac__capture_log(c, TAC_LOG_ERROR, c->text);
    c->armed = armed;
    c->text[0] = '\0';
}

static const char capture_key;

static void *keep(tac_context *ctx, void *arg)
{
    (void)ctx;
    return arg;
}

tac_status tac__capture_attach(tac_context *ctx, tac__capture *c)
{
    return tac_context_slot(ctx, &capture_key, keep, NULL, c) ? TAC_OK
                                                              : TAC_ERR_NOMEM;
}

tac__capture *tac__capture_of(tac_context *ctx)
{
    return tac_context_slot(ctx, &capture_key, NULL, NULL, NULL);
}

static tac_status gather(tac_comm *comm, const int32_t *mine, int32_t *all)
{
    tac_req *req = NULL;

    TAC_TRY(tac_allgather(comm, mine, all, 1, TAC_I32, NULL, &req));
    return tac_wait(req, 0);
}

void tac__capture_speak(tac__capture *c, int failed)
{
    char line[2304];

    if (!c->text[0]) return;
    if (failed > 1)
        snprintf(line, sizeof line, "%s (and %d other rank%s)", c->text,
                 failed - 1, failed > 2 ? "s" : "");
    else
        snprintf(line, sizeof line, "%s", c->text);
    snprintf(c->text, sizeof c->text, "%.2040s", line);
    tac__capture_flush(c);
}

/* A function of the program's own that failed without a word. */
static void name_silent(tac__capture *c, tac_status s)
{
    if (c->text[0] || c->told) return;
    snprintf(c->text, sizeof c->text, "error: rank %d failed: %s; %s", c->rank,
             tac_status_text(s), tac_status_remedy(s));
}

tac_status tac__agree_verdict(tac_comm *comm, tac__capture *c, tac_status mine)
{
    const int world = tac_comm_size(comm);
    const int32_t status = (int32_t)mine;
    int32_t *all = malloc((size_t)world * sizeof *all);
    int failed = 0, speaker = -1;
    tac_status verdict;

    if (!all) return TAC_ERR_NOMEM;
    verdict = gather(comm, &status, all);
    if (verdict < 0) {
        free(all);
        tac__capture_flush(c);
        return verdict;
    }
    for (int r = 0; r < world; r++) {
        if (all[r] >= 0) continue;
        if (speaker < 0) speaker = r;
        failed++;
    }
    if (failed) {
        verdict = (tac_status)all[speaker];
        if (c->rank == speaker) {
            name_silent(c, verdict);
            tac__capture_speak(c, failed);
        }
        c->text[0] = '\0';
        c->told = c->agreed = 1;
    }
    free(all);
    return verdict;
}

tac_status tac__agree(tac_comm *comm, tac_status mine)
{
    tac_context *ctx = tac_comm_context(comm);
    tac__capture *c = tac__capture_of(ctx);
    int32_t worst = (int32_t)mine;
    tac_req *req = NULL;

    if (c) return tac__agree_verdict(comm, c, mine);
    TAC_TRY(
        tac_allreduce(comm, &worst, &worst, 1, TAC_I32, TAC_MIN, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (mine < 0 || worst >= 0) return mine;
    return tac_fail(ctx, (tac_status)worst,
                    "another rank failed; its message says why");
}
