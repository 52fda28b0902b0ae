/* comm_sendrecv_suite.h: what tac_send and tac_recv must do, whatever the
 * transport. Every byte is a function of (from, to, number, index), computed by
 * the receiver alone. */
#ifndef COMM_SENDRECV_SUITE_H
#define COMM_SENDRECV_SUITE_H

#include "comm_suite.h"

static inline UNWATCHED unsigned char p2p_byte(int from, int to, int n,
                                               size_t i)
{
    const uint64_t key = (uint64_t)from * 4096 + (uint64_t)to * 64;
    return (unsigned char)(mix(key + ((uint64_t)n << 40) + i / 8) >>
                           (8 * (i % 8)));
}

typedef struct mail {
    tac_req *req;
    char *buf;
    size_t bytes;
    int from, n;
} mail;

static inline UNWATCHED void mail_write(const mail *m, int from, int to)
{
    for (size_t i = 0; i < m->bytes; i++)
        m->buf[i] = (char)p2p_byte(from, to, m->n, i);
    watch_write(m->buf, m->bytes);
}

static inline UNWATCHED size_t mail_wrong(const mail *m, int to)
{
    size_t bad = 0;
    watch_read(m->buf, m->bytes);
    for (size_t i = 0; i < m->bytes; i++)
        bad += (unsigned char)m->buf[i] != p2p_byte(m->from, to, m->n, i);
    return bad;
}

static inline void mail_send(tac_comm *c, mail *m, int to, int n, size_t count,
                             tac_dtype t)
{
    *m = (mail){.bytes = count * tac_dtype_size(t), .from = -1, .n = n};
    m->buf = malloc(m->bytes + GUARD);
    if (!m->buf) abort();
    mail_write(m, tac_comm_rank(c), to);
    CHECK_OK(
        tac_send(c, m->bytes ? m->buf : NULL, count, t, to, NULL, &m->req));
}

static inline void mail_recv(tac_comm *c, mail *m, int from, int n,
                             size_t count, tac_dtype t)
{
    *m = (mail){.bytes = count * tac_dtype_size(t), .from = from, .n = n};
    m->buf = malloc(m->bytes + GUARD);
    if (!m->buf) abort();
    poison(m->buf, m->bytes);
    CHECK_OK(
        tac_recv(c, m->bytes ? m->buf : NULL, count, t, from, NULL, &m->req));
}

static inline void mail_wait(const tac_comm *c, mail *m)
{
    CHECK_OK(tac_wait(m->req, 0));
    if (m->from >= 0) {
        const size_t bad = mail_wrong(m, tac_comm_rank(c));
        CHECK_MSG(bad == 0, "%zu of %zu bytes from rank %d are wrong", bad,
                  m->bytes, m->from);
        CHECK(guarded(m->buf, m->bytes));
    }
    free(m->buf);
}

/* To the right, from the left; the receive is submitted first by odd ranks. */
static inline void p2p_ring(tac_comm *c)
{
    const size_t counts[] = {
        0, 1, 3, 17, 4095, 4096, TESTS_SLOW ? 9001 : 70001};
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    int n = 0;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int t = 0; t < TAC_DTYPE_COUNT; t++, n++) {
            mail out, in;
            if (r % 2)
                mail_recv(c, &in, (r + p - 1) % p, n, counts[k], (tac_dtype)t);
            mail_send(c, &out, (r + 1) % p, n, counts[k], (tac_dtype)t);
            if (r % 2 == 0)
                mail_recv(c, &in, (r + p - 1) % p, n, counts[k], (tac_dtype)t);
            mail_wait(c, r % 3 ? &out : &in);
            mail_wait(c, r % 3 ? &in : &out);
        }
}

/* All sends before the first receive, to oneself too, longer than any buffer
 * on the way; waited for backwards. */
static inline void p2p_all_to_all(tac_comm *c, size_t bytes)
{
    enum { MOST = 16 };
    mail out[MOST], in[MOST];
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    for (int i = 0; i < p; i++)
        mail_send(c, &out[i], i, 0, bytes + (size_t)(r * 16 + i), TAC_U8);
    for (int i = 0; i < p; i++)
        mail_recv(c, &in[i], i, 0, bytes + (size_t)(i * 16 + r), TAC_U8);
    for (int i = p - 1; i >= 0; i--) mail_wait(c, &in[i]);
    for (int i = p - 1; i >= 0; i--) mail_wait(c, &out[i]);
}

/* Many under way, between collectives that are under way as well. */
static inline void p2p_outstanding(tac_comm *c)
{
    enum { N = 40, SUMS = 4 };
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    mail *m = calloc((size_t)(2 * N * p), sizeof *m);
    tac_req *sum[SUMS];
    int32_t x[SUMS][100];
    int n = 0;
    if (!m) abort();
    for (int k = 0; k < N; k++) {
        const size_t bytes = (size_t)(k * 37 % 11) * 500;
        for (int i = 0; i < p; i++) mail_recv(c, &m[n++], i, k, bytes, TAC_U8);
        if (k % (N / SUMS) == 0) {
            int32_t *y = x[k / (N / SUMS)];
            for (int i = 0; i < 100; i++) y[i] = r + i;
            CHECK_OK(tac_allreduce(c, NULL, y, 100, TAC_I32, TAC_SUM, NULL,
                                   &sum[k / (N / SUMS)]));
        }
        for (int i = 0; i < p; i++) mail_send(c, &m[n++], i, k, bytes, TAC_U8);
    }
    CHECK_OK(tac_wait(sum[SUMS - 1], 0));
    for (int i = 0; i < n; i++) mail_wait(c, &m[(i * 7 + r) % n]);
    for (int k = 0; k < SUMS - 1; k++) CHECK_OK(tac_wait(sum[k], 0));
    for (int k = 0; k < SUMS; k++) CHECK_EQ(x[k][99], p * (p - 1) / 2 + 99 * p);
    free(m);
}

static inline void p2p_refused(tac_comm *c)
{
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    float x[4] = {0};
    const int p = tac_comm_size(c);
    CHECK_STATUS(tac_send(c, x, 4, TAC_F32, p, NULL, &req), TAC_ERR_ARG);
    CHECK_STATUS(tac_recv(c, x, 4, TAC_F32, -1, NULL, &req), TAC_ERR_ARG);
    CHECK_STATUS(tac_send(c, NULL, 4, TAC_F32, 0, NULL, &req), TAC_ERR_ARG);
    CHECK_STATUS(tac_send(c, x, 4, (tac_dtype)99, 0, NULL, &req), TAC_ERR_ARG);
    CHECK_STATUS(tac_send(c, x, SIZE_MAX / 2, TAC_F32, 0, NULL, &req),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_send(c, x, 4, TAC_F32, 0, NULL, NULL), TAC_ERR_ARG);
    opt.wire_dtype = TAC_F16;
    CHECK_STATUS(tac_send(c, x, 4, TAC_F32, 0, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    opt.wire_dtype = TAC_WIRE_SAME;
    opt.prescale = 2;
    CHECK_STATUS(tac_recv(c, x, 4, TAC_F32, 0, &opt, &req),
                 TAC_ERR_UNSUPPORTED);
    CHECK(req == NULL);
    CHECK_OK(tac_comm_error(c, NULL, 0));
}

static inline void p2p_stats(tac_comm *c)
{
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    tac_comm_stats s;
    mail out, in;
    tac_comm_stats_reset(c);
    mail_send(c, &out, (r + 1) % p, 0, 1000, TAC_F32);
    mail_recv(c, &in, (r + p - 1) % p, 0, 1000, TAC_F32);
    for (int done = 0; !done; sched_yield())
        if (!CHECK_OK(tac_test(in.req, &done))) break;
    mail_wait(c, &in);
    mail_wait(c, &out);
    tac_comm_stats_get(c, &s);
    CHECK_EQ((long long)s.op[TAC_COLL_SEND].calls, 1);
    CHECK_EQ((long long)s.op[TAC_COLL_RECV].calls, 1);
    CHECK_EQ((long long)s.op[TAC_COLL_SEND].bytes_logical, 4000);
    CHECK_EQ((long long)s.op[TAC_COLL_SEND].bytes_wire, 4000);
    CHECK_EQ((long long)s.op[TAC_COLL_RECV].bytes_logical, 0);
    CHECK_EQ((long long)s.total.calls, 2);
}

static inline void p2p_run(tac_comm *c)
{
    p2p_ring(c);
    p2p_all_to_all(c, 0);
    p2p_all_to_all(c, TESTS_SLOW ? 300000 : 1000001);
    p2p_outstanding(c);
    p2p_refused(c);
    p2p_stats(c);
}

/* ---- failures: each spoils its communicator -------------------------------
 */

static inline int p2p_contains(const tac_comm *c, const char *what)
{
    char text[1024];
    tac_comm_error(c, text, sizeof text);
    return CHECK_MSG(strstr(text, what) != NULL, "\"%s\" contains \"%s\"", text,
                     what);
}

/* Until the peers' error has come, at most 10 s. */
static inline void p2p_await_error(tac_comm *c)
{
    for (int i = 0; i < 2000 && !tac_comm_error(c, NULL, 0); i++) {
        tac_clock_sleep_ns(5000000u);
        (void)tac_comm_progress(c);
    }
}

/* Rank 0 sends, rank 1 receives something else; how 0: another count, 1:
 * another dtype of the same size. The others hear of it. */
static inline void p2p_disagrees(tac_comm *c, int how)
{
    static _Thread_local float x[5000];
    tac_req *req = NULL;
    tac_status s = TAC_OK;
    if (tac_comm_rank(c) == 0)
        s = tac_send(c, x, 5000, TAC_F32, 1, NULL, &req);
    else if (tac_comm_rank(c) == 1)
        s = tac_recv(c, x, how ? 5000 : 4999, how ? TAC_I32 : TAC_F32, 0, NULL,
                     &req);
    CHECK_OK(s);
    if (tac_comm_rank(c) == 1) CHECK_STATUS(tac_wait(req, 0), TAC_ERR_MISMATCH);
    /* A send may be complete before anybody has looked at it. */
    if (tac_comm_rank(c) == 0) (void)tac_wait(req, 0);
    p2p_await_error(c);
    CHECK_STATUS(tac_comm_error(c, NULL, 0), TAC_ERR_MISMATCH);
    p2p_contains(c, "from rank 0 to rank 1");
    p2p_contains(c, "f32 x 5000");
    p2p_contains(c, how ? "i32 x 5000" : "f32 x 4999");
}

/* Nobody sends. */
static inline void p2p_times_out(tac_comm *c)
{
    float x = 0;
    tac_req *req = NULL;
    const int p = tac_comm_size(c);
    CHECK_OK(finish(tac_barrier(c, NULL, &req), &req));
    if (tac_comm_rank(c) == 0) {
        const double from = tac_clock_s();
        CHECK_OK(tac_recv(c, &x, 1, TAC_F32, p - 1, NULL, &req));
        CHECK_STATUS(tac_wait(req, 10), TAC_ERR_TIMEOUT);
        CHECK(tac_clock_s() - from < 2);
    }
    p2p_await_error(c);
    p2p_contains(c, "timed out");
    p2p_contains(c, "recv #");
    CHECK_STATUS(tac_send(c, &x, 1, TAC_F32, 0, NULL, &req), TAC_ERR_TIMEOUT);
}

/* All ranks have submitted what is before it. (One that goes on early may spoil
 * it for the others.) */
static inline void p2p_meet(tac_comm *c)
{
    tac_req *req = NULL;
    const tac_status s = finish(tac_barrier(c, NULL, &req), &req);
    CHECK_MSG(s == TAC_OK || s == TAC_ERR_ABORTED, "%s", tac_status_name(s));
}

/* Given up while under way, in both directions. */
static inline void p2p_aborts(tac_comm *c)
{
    enum { N = 3 };
    static _Thread_local char x[N][300000];
    tac_req *req[N] = {0};
    const int p = tac_comm_size(c), r = tac_comm_rank(c);
    CHECK_OK(tac_send(c, x[0], 300000, TAC_U8, (r + 1) % p, NULL, &req[0]));
    CHECK_OK(tac_recv(c, x[1], 10, TAC_U8, r, NULL, &req[1]));
    CHECK_OK(tac_recv(c, x[2], 1, TAC_F64, r, NULL, &req[2]));
    p2p_meet(c);
    if (r == p - 1) tac_comm_abort(c, "no more mail");
    CHECK_STATUS(tac_wait(req[2], 0), TAC_ERR_ABORTED);
    CHECK_STATUS(tac_wait(req[1], 0), TAC_ERR_ABORTED);
    (void)tac_wait(req[0], 0);
    p2p_contains(c, "no more mail");
}

#endif
