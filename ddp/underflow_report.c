/* What fp16 would lose of the gradients: a table, and lines of metrics.jsonl.
 * At scale 1, and at the scale that the run came to (or, without a scaler,
 * would begin with). */
#include "underflow_report.h"

#include <inttypes.h>
#include <stdio.h>

double tac__underflow_scale(const tac__run *run)
{
    const tac_replica *r = run->replica;

    return r->scaling.updates > 0 ? r->scaling.scale : run->config->init_scale;
}

/* Steps that were looked at. */
static uint64_t observations(const tac__run *run)
{
    const tac_underflow *u = run->replica->underflow;

    for (size_t i = 0; i < tac_underflow_rows(u); i++) {
        const tac_param *p = tac_params_get(run->replica->params, i);

        if (p->count > 0) return tac_underflow_get(u, i)->count / p->count;
    }
    return 0;
}

static void print_shares(FILE *out, tac_underflow_shares s)
{
    fprintf(out, "  %8.3f %8.3f %8.3f", 100 * s.zero, 100 * s.subnormal,
            100 * s.overflow);
}

void tac__underflow_print(tac__run *run)
{
    const tac_underflow *u = run->replica->underflow;
    const double scale = tac__underflow_scale(run);
    const uint64_t steps = u ? observations(run) : 0;
    char scaled[40];

    if (!u) return;
    snprintf(scaled, sizeof scaled, "at loss scale %.10g", scale);
    if (steps == 0) {
        fprintf(run->out,
                "underflow: no step was looked at: --underflow-every %" PRId64
                " is more than the steps of this run\n",
                run->config->underflow_every);
        return;
    }
    fprintf(run->out,
            "what fp16 would make of the parameters' f32 gradients: %% of the "
            "nonzero values, %" PRIu64 " steps\n"
            "  %-24s  %26s  %26s\n"
            "  %-24s  %8s %8s %8s  %8s %8s %8s  %10s\n",
            steps, "", "at loss scale 1", scaled, "tensor", "zero", "subnorm.",
            "overflow", "zero", "subnorm.", "overflow", "inf, NaN");
    for (size_t i = 0; i < tac_underflow_rows(u); i++) {
        const tac_underflow_row *row = tac_underflow_get(u, i);

        fprintf(run->out, "  %-24s", row->name);
        print_shares(run->out, tac_underflow_at(row, 1));
        print_shares(run->out, tac_underflow_at(row, scale));
        fprintf(run->out, "  %10" PRIu64 "\n", row->nonfinite);
    }
}

static void log_row(tac__run *run, const tac_underflow_row *row, double scale)
{
    const tac_underflow_shares one = tac_underflow_at(row, 1);
    const tac_underflow_shares scaled = tac_underflow_at(row, scale);
    tac_json *j = run->line;

    tac_json_begin_object(j, NULL);
    tac_json_str(j, "kind", "underflow");
    tac_json_u64(j, "attempts", run->replica->attempts);
    tac_json_str(j, "tensor", row->name);
    tac_json_u64(j, "values", row->count);
    tac_json_u64(j, "zeros", row->zeros);
    tac_json_u64(j, "nonfinite", row->nonfinite);
    tac_json_f64(j, "zero", one.zero);
    tac_json_f64(j, "subnormal", one.subnormal);
    tac_json_f64(j, "overflow", one.overflow);
    tac_json_f64(j, "loss_scale", scale);
    tac_json_f64(j, "scaled_zero", scaled.zero);
    tac_json_f64(j, "scaled_subnormal", scaled.subnormal);
    tac_json_f64(j, "scaled_overflow", scaled.overflow);
    tac_json_end_object(j);
    tac__metrics_write(run);
}

void tac__underflow_log(tac__run *run)
{
    const tac_underflow *u = run->replica->underflow;

    if (!u || !run->metrics) return;
    for (size_t i = 0; i < tac_underflow_rows(u); i++)
        log_row(run, tac_underflow_get(u, i), tac__underflow_scale(run));
}
