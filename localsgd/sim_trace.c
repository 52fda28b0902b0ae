/* sim_trace.c: the first steps as a Chrome trace (chrome://tracing, Perfetto):
 * an ordinary worker and, if there are any, a slow one, each with a lane for
 * compute and one for each level's channel. */
#include <stdio.h>

#include "sim_impl.h"

enum { MOST_EVENTS = 200000 };

static void name_lane(tac_json *j, int64_t pid, int64_t tid, const char *what,
                      const char *name)
{
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "name", what);
    tac_json_str(j, "ph", "M");
    tac_json_i64(j, "pid", pid);
    tac_json_i64(j, "tid", tid);
    tac_json_begin_object(j, "args");
    tac_json_str(j, "name", name);
    tac_json_end_object(j);
    tac_json_end_object(j);
}

static void name_worker(const tac__sim *s, tac_json *j, int64_t pid,
                        const char *name)
{
    char lane[32];
    name_lane(j, pid, 0, "process_name", name);
    name_lane(j, pid, 0, "thread_name", "compute");
    for (int k = 0; k < s->cells.n_levels; k++) {
        snprintf(lane, sizeof lane, "channel of level %d", k);
        name_lane(j, pid, 1 + k, "thread_name", lane);
    }
}

/* As far as the first synchronisation's arrival; not more than a viewer can
 * show. */
static int64_t steps_to_draw(const tac__sim *s, int64_t asked)
{
    const tac_sim_config *c = s->c;
    const int64_t most = MOST_EVENTS / (3 * c->layers) + 1;
    int64_t n = asked;
    if (n <= 0 && c->method == TAC_SIM_DP) n = 3;
    if (n <= 0 && c->localsgd->n_levels > 0)
        n = c->localsgd->levels[c->localsgd->n_levels - 1].every;
    if (n <= 0) n = c->localsgd->schedule.every;
    if (asked <= 0 && c->method != TAC_SIM_DP) n += c->localsgd->delay + 2;
    return n < most ? n : most;
}

tac_status tac__sim_trace_open(tac_context *ctx, const tac__sim *s,
                               const char *path, int64_t steps,
                               tac__sim_trace *out)
{
    tac_json *j = tac_json_create();
    if (!j) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for the trace");
    *out = (tac__sim_trace){j, steps_to_draw(s, steps), path};
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "displayTimeUnit", "ms");
    tac_json_begin_array(j, "traceEvents");
    name_worker(s, j, 0, "a worker");
    if (s->cells.slow >= 0 && s->cells.slow != s->cells.ordinary)
        name_worker(s, j, 1, "a slow worker");
    return TAC_OK;
}

void tac__sim_span(const tac__sim *s, int64_t cell, int lane, const char *name,
                   int64_t unit, double begin, double end)
{
    tac_json *j = s->trace->json;
    const int ordinary = cell == s->cells.ordinary;
    if (!ordinary && cell != s->cells.slow) return;
    tac_json_begin_object(j, NULL);
    tac_json_str(j, "name", name);
    tac_json_str(j, "ph", "X");
    tac_json_i64(j, "pid", !ordinary);
    tac_json_i64(j, "tid", lane);
    tac_json_f64(j, "ts", begin * 1e6);
    tac_json_f64(j, "dur", (end - begin) * 1e6);
    tac_json_begin_object(j, "args");
    tac_json_i64(j, "step", s->step);
    if (unit >= 0)
        tac_json_i64(j,
                     s->c->sending == TAC_SIM_AFTER_STEP ? "fragment" : "layer",
                     unit);
    tac_json_end_object(j);
    tac_json_end_object(j);
}

tac_status tac__sim_trace_close(tac_context *ctx, tac__sim_trace *t)
{
    tac_json_end_array(t->json);
    tac_json_end_object(t->json);
    const tac_status s = tac_json_write_file(t->json, t->path);
    tac_json_destroy(t->json);
    t->json = NULL;
    if (s >= 0) return s;
    return tac_fail(ctx, s, "can't write the trace to %s: %m", t->path);
}
