/* One Chrome trace of all ranks: rank 0 writes the events of all, one rank's
 * after the other's.
 *
 * Times begin with the run. Hosts have clocks of their own: a rank on another
 * host than rank 0 asks it for the time, and takes the answer that came back
 * soonest to be of the middle between question and answer (Cristian, 1989), so
 * it is off by half that time at most. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"
#include "tacit/json.h"
#include "tacit/trace.h"

enum { QUESTIONS = 16 };

/* What is to be added to this rank's clock to have rank 0's, and how far off
 * that may be. */
typedef struct host_clock {
    int64_t offset_ns, within_ns;
    uint64_t first_ns; /* of the run, by rank 0's host_clock */
    uint64_t lost;     /* spans */
    int32_t asks;
} host_clock;

/* ---- clocks ---------------------------------------------------------------
 */

static tac_status answer(tac_comm *comm, int r)
{
    for (int i = 0; i < QUESTIONS; i++) {
        tac_req *req = NULL;
        uint64_t now = 0;

        TAC_TRY(tac_recv(comm, &now, sizeof now, TAC_U8, r, NULL, &req));
        TAC_TRY(tac_wait(req, 0));
        now = tac_clock_ns();
        TAC_TRY(tac_send(comm, &now, sizeof now, TAC_U8, r, NULL, &req));
        TAC_TRY(tac_wait(req, 0));
    }
    return TAC_OK;
}

static tac_status ask(tac_comm *comm, host_clock *c)
{
    c->within_ns = INT64_MAX;
    for (int i = 0; i < QUESTIONS; i++) {
        tac_req *req = NULL;
        uint64_t theirs = 0;
        const uint64_t sent = tac_clock_ns();

        TAC_TRY(tac_send(comm, &theirs, sizeof theirs, TAC_U8, 0, NULL, &req));
        TAC_TRY(tac_wait(req, 0));
        TAC_TRY(tac_recv(comm, &theirs, sizeof theirs, TAC_U8, 0, NULL, &req));
        TAC_TRY(tac_wait(req, 0));
        const int64_t half = (int64_t)(tac_clock_ns() - sent) / 2;
        if (half >= c->within_ns) continue;
        c->within_ns = half;
        c->offset_ns = (int64_t)theirs - ((int64_t)sent + half);
    }
    return TAC_OK;
}

/* The start of training, or a span before it. */
static uint64_t first_ns(const tac__run *run)
{
    const tac_context *ctx = run->rank->ctx;
    uint64_t first =
        run->begin_s > 0 ? (uint64_t)(run->begin_s * 1e9) : tac_clock_ns();
    size_t n = tac_trace_read(ctx, NULL, 0);
    tac_span *spans = malloc((n + 1) * sizeof *spans);

    n = spans ? tac_trace_read(ctx, spans, n) : 0;
    for (size_t i = 0; i < n; i++)
        if (spans[i].begin_ns < first) first = spans[i].begin_ns;
    free(spans);
    return first;
}

/* `all`: one for each rank. */
static tac_status compare_clocks(const tac__run *run, host_clock *all)
{
    tac_comm *comm = run->rank->comm;
    const int rank = run->rank->rank, world = run->rank->world;
    host_clock mine = {.asks = !run->rank->place.beside_first,
                       .lost = tac_trace_lost(run->rank->ctx)};
    tac_req *req = NULL;

    TAC_TRY(tac_allgather(comm, &mine, all, sizeof mine, TAC_U8, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    if (mine.asks) TAC_TRY(ask(comm, &mine));
    for (int r = 1; rank == 0 && r < world; r++)
        if (all[r].asks) TAC_TRY(answer(comm, r));
    mine.first_ns = first_ns(run) + (uint64_t)mine.offset_ns;
    TAC_TRY(tac_allgather(comm, &mine, all, sizeof mine, TAC_U8, NULL, &req));
    return tac_wait(req, 0);
}

/* ---- texts ----------------------------------------------------------------
 */

/* Receives the text of rank r, malloc'd. What it can't hold the others would
 * send in vain, so there it ends for all. */
static tac_status receive_text(tac_comm *comm, int r, char **out)
{
    uint64_t bytes = 0;
    tac_req *req = NULL;
    char *text;

    TAC_TRY(tac_recv(comm, &bytes, sizeof bytes, TAC_U8, r, NULL, &req));
    TAC_TRY(tac_wait(req, 0));
    text = malloc((size_t)bytes + 1);
    if (!text) {
        tac_comm_abort(comm, "no memory for the trace");
        return tac_fail(tac_comm_context(comm), TAC_ERR_NOMEM,
                        "no memory for %llu bytes of trace of rank %d",
                        (unsigned long long)bytes, r);
    }
    tac_status s = tac_recv(comm, text, (size_t)bytes, TAC_U8, r, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);
    text[bytes] = '\0';
    if (s < 0) {
        free(text);
        return s;
    }
    *out = text;
    return TAC_OK;
}

static tac_status send_text(tac_comm *comm, const char *text)
{
    const uint64_t bytes = strlen(text);
    tac_req *req[2] = {NULL, NULL};

    TAC_TRY(tac_send(comm, &bytes, sizeof bytes, TAC_U8, 0, NULL, &req[0]));
    TAC_TRY(tac_send(comm, text, bytes, TAC_U8, 0, NULL, &req[1]));
    TAC_TRY(tac_wait(req[0], 0));
    return tac_wait(req[1], 0);
}

/* ---- the file -------------------------------------------------------------
 */

static void append(FILE *f, const char *text, int *written)
{
    if (!f || !text[0]) return;
    fprintf(f, "%s%s", (*written)++ ? ",\n" : "", text);
}

/* What no event says. */
static void put_rest(FILE *f, const host_clock *all, int world)
{
    tac_json *j = tac_json_create();
    uint64_t lost = 0;
    const char *text;

    for (int r = 0; r < world; r++) lost += all[r].lost;
    tac_json_begin_object(j, NULL);
    tac_json_u64(j, "overwritten_spans", lost);
    tac_json_begin_array(j, "clocks");
    for (int r = 0; r < world; r++) {
        if (!all[r].asks) continue;
        tac_json_begin_object(j, NULL);
        tac_json_i64(j, "rank", r);
        tac_json_f64(j, "offset_us", (double)all[r].offset_ns / 1e3);
        tac_json_f64(j, "within_us", (double)all[r].within_ns / 1e3);
        tac_json_end_object(j);
    }
    tac_json_end_array(j);
    tac_json_end_object(j);
    text = tac_json_text(j, NULL);
    fprintf(f, "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":%s}\n",
            text ? text : "{}");
    tac_json_destroy(j);
}

static tac_status cannot_write(const tac__run *run, int error)
{
    return tac_fail(run->rank->ctx, TAC_ERR_IO,
                    "cannot write the trace %s: %s; check --trace and the "
                    "free space",
                    run->config->trace, strerror(error));
}

/* Also without a file it takes what the others send. */
static tac_status write_merged(tac__run *run, const char *mine,
                               const host_clock *all)
{
    FILE *f = fopen(run->config->trace, "w");
    const int error = errno;
    int written = 0;

    if (f) fputs("{\"traceEvents\":[\n", f);
    append(f, mine, &written);
    for (int r = 1; r < run->rank->world; r++) {
        char *text = NULL;
        const tac_status s = receive_text(run->rank->comm, r, &text);
        if (s < 0) {
            if (f) fclose(f);
            return s;
        }
        append(f, text, &written);
        free(text);
    }
    if (!f) return cannot_write(run, error);
    put_rest(f, all, run->rank->world);
    return fclose(f) == 0 ? TAC_OK : cannot_write(run, errno);
}

static tac_status write_trace(tac__run *run, host_clock *all)
{
    const int rank = run->rank->rank, world = run->rank->world;
    uint64_t first = UINT64_MAX;
    char *mine = NULL;
    tac_status made, s;

    TAC_TRY(compare_clocks(run, all));
    for (int r = 0; r < world; r++)
        if (all[r].first_ns < first) first = all[r].first_ns;
    made = tac_trace_events_json(run->rank->ctx,
                                 all[rank].offset_ns - (int64_t)first, &mine);
    const char *text = made < 0 ? "" : mine;
    s = rank == 0 ? write_merged(run, text, all)
                  : send_text(run->rank->comm, text);
    free(mine);
    return s < 0 ? s : made;
}

tac_status tac__run_write_trace(tac__run *run)
{
    host_clock *all;
    tac_status s;

    if (!run->config->trace) return TAC_OK;
    all = calloc((size_t)run->rank->world, sizeof *all);
    s = all ? TAC_OK
            : tac_fail(run->rank->ctx, TAC_ERR_NOMEM, "no memory for a trace");
    s = tac__run_agree(run, s);
    if (s >= 0) s = write_trace(run, all);
    free(all);
    return s;
}
