/* Many ranks have failed: what is one message, and one exit code? */
#include "launch_impl.h"

#include <stdio.h>

static int follows(const tac__fate *f)
{
    return f->status == TAC_ERR_ABORTED || f->status == TAC_ERR_PEER;
}

int tac__launch_speaker(const tac__fate *fates, int n, int *failed)
{
    int speaker = -1;

    *failed = 0;
    for (int r = 0; r < n; r++) {
        if (fates[r].status >= 0) continue;
        if (speaker < 0 || (follows(&fates[speaker]) && !follows(&fates[r]))) {
            speaker = r;
            *failed = 0;
        }
        if (follows(&fates[r]) == follows(&fates[speaker])) ++*failed;
    }
    return speaker;
}

/* A body that gave no reason gets the text of its status. */
void tac__launch_speak(tac__one_rank *self, int failed)
{
    const tac_status s = (tac_status)self->fate.status;

    if (self->fate.told || s == TAC_ERR_INTERRUPTED) return;
    if (!self->capture.text[0])
        snprintf(self->capture.text, sizeof self->capture.text,
                 "%s: rank %d failed: %s; %s", self->world->program, self->rank,
                 tac_status_text(s), tac_status_remedy(s));
    tac__capture_speak(&self->capture, failed);
}

int tac__launch_code(const tac__world *w, tac_status s)
{
    if (s >= 0) return 0;
    if (w->config->exit_code) return w->config->exit_code(w->arg, s);
    return tac_launch_exit_code(s);
}

int tac_launch_exit_code(tac_status s)
{
    switch (s) {
    case TAC_OK: return 0;
    case TAC_ERR_ARG:
    case TAC_ERR_CONFIG:
    case TAC_ERR_DATA:
    case TAC_ERR_IO:
    case TAC_ERR_MISMATCH:
    case TAC_ERR_UNSUPPORTED: return 2;
    case TAC_ERR_DIVERGED: return 3;
    case TAC_ERR_INTERRUPTED: return 75;
    case TAC_ERR_TIMEOUT: return 124;
    default: return s < 0;
    }
}
