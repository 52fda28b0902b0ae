/* --target-accuracy: training ends as soon as an evaluation is as accurate, and
 * the summary says when that was. Evaluations are sums over all ranks, so all
 * come to the same answer. */
#include "run.h"

#include <stdio.h>

void tac__target_check(tac__run *run)
{
    const tac_metrics *m = &run->last_eval;
    const double target = run->config->target_accuracy;
    tac_summary *s = &run->summary;

    if (target <= 0 || run->reached || !(m->correct >= target * m->count) ||
        m->count == 0)
        return;
    run->reached = 1;
    s->target_step = (int64_t)run->step;
    s->target_s = run->train_s;
    if (!tac__report_speaks(run)) return;
    tac__progress_clear(&run->progress);
    fprintf(run->out,
            "target accuracy %g %% reached at step %lld, after %.2f s of "
            "training\n",
            100 * target, (long long)s->target_step, s->target_s);
    fflush(run->out);
}
