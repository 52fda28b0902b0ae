/* comm_broken.h: what must happen when a rank dies, stops, calls something else
 * or gives up, on any transport: the right error, with names, on every rank and
 * in time. Each function needs a communicator of its own, whose configuration
 * says timeout_ms = BROKEN_TIMEOUT_MS and check = 1; after it the communicator
 * is poisoned. Bounds are the promised "timeout + 1 s" and, where the machine
 * may be loaded, generous. */
#ifndef COMM_BROKEN_H
#define COMM_BROKEN_H

#include <signal.h>
#include <unistd.h>

#include "comm_told.h"

enum { BROKEN_TIMEOUT_MS = 1000, BROKEN_COUNT = 1 << 18, BROKEN_VICTIM = 1 };

static inline tac_status broken_sum(tac_comm *c, float *x)
{
    tac_req *req = NULL;
    const tac_status s =
        tac_allreduce(c, NULL, x, BROKEN_COUNT, TAC_F32, TAC_SUM, NULL, &req);
    return s < 0 ? s : tac_wait(req, 0);
}

/* Sums until one fails; how long the failing one took goes to *took_s. A failed
 * request's buffer is in use until the communicator is gone, so it stays. */
static inline tac_status broken_sum_on(tac_comm *c, double *took_s)
{
    static float x[BROKEN_COUNT];
    tac_status s = TAC_OK;
    for (int i = 0; i < 100000 && s == TAC_OK; i++) {
        const double from = tac_clock_s();
        s = broken_sum(c, x);
        *took_s = tac_clock_s() - from;
    }
    return s;
}

/* What every survivor checks. */
static inline void broken_report(tac_comm *c, tac_status s, tac_status want,
                                 double took_s, double bound_s)
{
    char text[1024];
    tac_comm_error(c, text, sizeof text);
    CHECK_MSG(s == want, "rank %d: %s, not %s: \"%s\"", tac_comm_rank(c),
              tac_status_name(s), tac_status_name(want), text);
    CHECK_MSG(took_s < bound_s, "rank %d: %.3f s, allowed %.3f: \"%s\"",
              tac_comm_rank(c), took_s, bound_s, text);
    /* Later calls return the first error at once. */
    const double from = tac_clock_s();
    CHECK_STATUS(told_barrier(c), want);
    CHECK(tac_clock_s() - from < 1);
}

static inline void *broken_die_soon(void *arg)
{
    (void)arg;
    told_sleep_ms(150);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* ---- SIGKILL in mid-allreduce ---------------------------------------------
 */

static inline void broken_killed(tac_comm *c, void *arg)
{
    char name[32];
    double took = 0;
    (void)arg;
    CHECK_OK(told_barrier(c));
    if (tac_comm_rank(c) == BROKEN_VICTIM) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, broken_die_soon, NULL) == 0);
    }
    const tac_status s = broken_sum_on(c, &took);
    broken_report(c, s, TAC_ERR_PEER, took, BROKEN_TIMEOUT_MS * 1e-3 + 1);
    snprintf(name, sizeof name, "rank %d ", BROKEN_VICTIM);
    told_error_has(c, name);
    told_error_has(c, "died");
}

/* ---- SIGSTOP --------------------------------------------------------------
 */

/* A child of the rank that is stopped lets it go on after `ms`. */
static inline void broken_stop_for(unsigned ms)
{
    const pid_t me = getpid(), child = fork();
    if (child == 0) {
        told_sleep_ms(ms);
        kill(me, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

/* The one that was stopped: what the others had sent it may be enough for its
 * own result; after that it hears. */
static inline void broken_catch_up(tac_comm *c, tac_status want)
{
    const tac_status s = told_sum(c, 0);
    CHECK_MSG(s == TAC_OK || s == want, "%s", tac_status_name(s));
    CHECK_STATUS(told_wait_for_error(c), want);
    CHECK_STATUS(told_sum(c, 0), want);
}

static inline void broken_stopped(tac_comm *c, void *arg)
{
    double took = 0;
    (void)arg;
    CHECK_OK(told_sum(c, 0));
    CHECK_OK(told_sum(c, 0));
    if (tac_comm_rank(c) == BROKEN_VICTIM) {
        broken_stop_for(2 * BROKEN_TIMEOUT_MS);
        broken_catch_up(c, TAC_ERR_TIMEOUT);
    } else {
        const double from = tac_clock_s();
        const tac_status s = told_sum(c, 0);
        took = tac_clock_s() - from;
        broken_report(c, s, TAC_ERR_TIMEOUT, took,
                      BROKEN_TIMEOUT_MS * 1e-3 + 1);
    }
    told_error_has(c, "timed out");
    told_error_has(c, "allreduce #2 ");
    told_error_has(c, "waited for: 1;");
    told_error_has(c, "rank 1 (process ");
    told_error_has(c, "is stopped");
}

/* ---- abort, with a peer stopped -------------------------------------------
 */

static inline void *broken_abort_soon(void *comm)
{
    told_sleep_ms(200);
    tac_comm_abort(comm, "enough is enough");
    return NULL;
}

/* From another thread of the last rank: those that wait return within 1 s. */
static inline void broken_aborted(tac_comm *c, void *arg)
{
    const int last = tac_comm_size(c) - 1, rank = tac_comm_rank(c);
    pthread_t other;
    char reason[64];
    (void)arg;
    CHECK_OK(told_barrier(c));
    if (rank == last)
        CHECK(pthread_create(&other, NULL, broken_abort_soon, c) == 0);
    if (rank == BROKEN_VICTIM && last != BROKEN_VICTIM) {
        broken_stop_for(BROKEN_TIMEOUT_MS);
        broken_catch_up(c, TAC_ERR_ABORTED);
    } else {
        const double from = tac_clock_s();
        const tac_status s = told_sum(c, 0);
        broken_report(c, s, TAC_ERR_ABORTED, tac_clock_s() - from, 1.2);
    }
    if (rank == last) pthread_join(other, NULL);
    snprintf(reason, sizeof reason, "rank %d aborted: enough is enough", last);
    told_error_has(c, reason);
}

/* ---- another call on one rank ---------------------------------------------
 */

typedef enum broken_call {
    BROKEN_OP = 0,
    BROKEN_DTYPE,
    BROKEN_SIZE,
    BROKEN_TAG,
    BROKEN_SCALE,
    BROKEN_WIRE,
    BROKEN_ROOT,
    BROKEN_KIND,
    BROKEN_ORDER,
    BROKEN_CALLS
} broken_call;

/* The victim's call differs in `how`; the texts that must appear on all. */
static inline tac_status broken_submit(tac_comm *c, broken_call how, float *x,
                                       float *y, tac_req **req)
{
    const int odd = tac_comm_rank(c) == BROKEN_VICTIM;
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    if (how == BROKEN_ROOT)
        return tac_broadcast(c, tac_comm_rank(c) == odd ? x : y, 16, TAC_F32,
                             odd, &opt, req);
    if (how == BROKEN_KIND && odd)
        return tac_allgather(c, x, y, 16, TAC_F32, &opt, req);
    if (how == BROKEN_ORDER && odd) return tac_barrier(c, NULL, req);
    if (how == BROKEN_TAG) opt.tag = odd ? 8 : 7;
    if (how == BROKEN_SCALE) opt.prescale = odd ? 2 : 1;
    if (how == BROKEN_WIRE && odd) opt.wire_dtype = TAC_F16;
    return tac_allreduce(c, x, y, how == BROKEN_SIZE && odd ? 17 : 16,
                         how == BROKEN_DTYPE && odd ? TAC_I32 : TAC_F32,
                         how == BROKEN_OP && odd ? TAC_MAX : TAC_SUM, &opt,
                         req);
}

static inline void broken_name_both(tac_comm *c, broken_call how)
{
    static const char *const both[BROKEN_CALLS][2] = {
        {"f32 x 16, sum", "f32 x 16, max"},
        {"f32 x 16", "i32 x 16"},
        {"f32 x 16", "f32 x 17"},
        {"tag 7", "tag 8"},
        {"allreduce", "scales"},
        {"allreduce", "wire"},
        {"root 0", "root 1"},
        {"allreduce", "allgather"},
        {"allreduce", "barrier"},
    };
    told_error_has(c, "ranks disagree");
    told_error_has(c, both[how][0]);
    told_error_has(c, both[how][1]);
    told_error_has(c, "rank 1 runs");
}

/* The error names both sides on every rank, and no output is touched. `arg` is
 * a broken_call. */
static inline void broken_disagreed(tac_comm *c, void *arg)
{
    const broken_call how = *(const broken_call *)arg;
    float x[17 * 16], y[17 * 16];
    tac_req *req = NULL;
    size_t touched = 0;
    for (int i = 0; i < 17 * 16; i++) x[i] = 1;
    memset(y, 0xA5, sizeof y);
    CHECK_OK(told_barrier(c));
    const double from = tac_clock_s();
    const tac_status s = broken_submit(c, how, x, y, &req);
    CHECK_OK(s);
    broken_report(c, s < 0 ? s : tac_wait(req, 0), TAC_ERR_MISMATCH,
                  tac_clock_s() - from, BROKEN_TIMEOUT_MS * 1e-3 + 1);
    for (size_t i = 0; i < sizeof y; i++)
        touched += ((const unsigned char *)y)[i] != 0xA5;
    CHECK_MSG(touched == 0, "way %d: %zu bytes of an output were written", how,
              touched);
    broken_name_both(c, how);
}

#endif
