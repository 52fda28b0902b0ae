/* comm_shared.c: the algorithms on shared memory where their chunks, slices and
 * slots begin and end: thread ranks and processes, plain, symmetric and mixed
 * memory at any alignment, the smallest staging and the usual one, wire
 * formats; and a rank that leaves while others are in its buffers.
 *
 * Oracles: sums are bit by bit those of a scalar loop in rank order; with a
 * wire format each contribution and the result are encoded and decoded here, as
 * one message, with the portable kernels. */
#include "comm_suite.h"
#include "comm_fork.h"

static board *the_board;

/* What a rank has to work with: guards on both sides. */
enum { MOST = 700001, ROOM = (MOST + 64) * 4 };
typedef struct place {
    char *plain[2], *symmetric[2];
} place;

static int place_open(place *p, tac_comm *c)
{
    for (int i = 0; i < 2; i++) {
        void *s = NULL;
        p->plain[i] = malloc(ROOM);
        if (!CHECK_OK(tac_mem_alloc(c, ROOM, &s)) ||
            !CHECK(p->plain[i] != NULL))
            return 0;
        p->symmetric[i] = s;
    }
    return 1;
}

static void place_close(place *p, tac_comm *c)
{
    for (int i = 0; i < 2; i++) {
        free(p->plain[i]);
        tac_mem_free(c, p->symmetric[i]);
    }
}

/* Array `which` of rank r for round k: its kind of memory and its alignment
 * depend on both. */
static float *array_of(const place *p, int which, int r, int k)
{
    const int sym = k % 3 == 1 || (k % 3 == 2 && r % 2 == 0);
    char *at = (sym ? p->symmetric : p->plain)[which];
    return (float *)(void *)at + 16 + (k / 3 + (k & 4 ? r : 0)) % 17;
}

static void guard(float *x, size_t n)
{
    memset(x - 16, POISON, (n + 32) * sizeof *x);
}

static int is_whole(const float *x, size_t n)
{
    const unsigned char *before = (const void *)(x - 16);
    const unsigned char *behind = (const void *)(x + n);
    for (int i = 0; i < 64; i++)
        if (before[i] != POISON || behind[i] != POISON) return 0;
    return 1;
}

/* ---- as they are ------------------------------------------------------------
 */

static float sum_of(int p, size_t i)
{
    volatile float acc = wild(0, i);
    for (int r = 1; r < p; r++) acc = acc + wild(r, i);
    return acc;
}

static void check_sum(const char *what, const float *x, size_t n, size_t first,
                      int p, tac_status s)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        const float want = sum_of(p, first + i);
        bad += memcmp(&want, &x[i], sizeof want) != 0;
    }
    CHECK_MSG(s == TAC_OK && bad == 0 && is_whole(x, n),
              "%s x %zu of %d: %s, %zu wrong, guards %d", what, n, p,
              tac_status_name(s), bad, is_whole(x, n));
}

static void allreduce(tac_comm *c, const place *pl, size_t n, int k,
                      const char *algorithm)
{
    const int me = tac_comm_rank(c), in_place = k % 2;
    float *dst = array_of(pl, 1, me, k), *src = array_of(pl, 0, me, k);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    if (in_place) src = dst;
    opt.algorithm = algorithm;
    guard(dst, n);
    for (size_t i = 0; i < n; i++) src[i] = wild(me, i);
    const tac_status s = finish(
        tac_allreduce(c, src, dst, n, TAC_F32, TAC_SUM, &opt, &req), &req);
    check_sum(algorithm, dst, n, 0, tac_comm_size(c), s);
}

static void reduce_scatter(tac_comm *c, const place *pl, size_t n, int k)
{
    const int me = tac_comm_rank(c), p = tac_comm_size(c);
    const size_t mine = n * (size_t)me, all = n * (size_t)p;
    float *dst = array_of(pl, 1, me, k), *src = array_of(pl, 0, me, k);
    tac_req *req = NULL;
    guard(src, all);
    guard(dst, n);
    for (size_t i = 0; i < all; i++) src[i] = wild(me, i);
    const tac_status s = finish(
        tac_reduce_scatter(c, src, dst, n, TAC_F32, TAC_SUM, NULL, &req), &req);
    check_sum("reduce_scatter", dst, n, mine, p, s);
    CHECK(is_whole(src, all));
}

static void allgather(tac_comm *c, const place *pl, size_t n, int k)
{
    const int me = tac_comm_rank(c), p = tac_comm_size(c);
    float *dst = array_of(pl, 1, me, k), *src = array_of(pl, 0, me, k);
    tac_req *req = NULL;
    size_t bad = 0;
    guard(dst, n * (size_t)p);
    for (size_t i = 0; i < n; i++) src[i] = wild(me, i);
    CHECK_OK(finish(tac_allgather(c, src, dst, n, TAC_F32, NULL, &req), &req));
    for (int r = 0; r < p; r++)
        for (size_t i = 0; i < n; i++)
            bad += dst[(size_t)r * n + i] != wild(r, i);
    CHECK_MSG(bad == 0 && is_whole(dst, n * (size_t)p),
              "allgather x %zu of %d: %zu wrong", n, p, bad);
}

static void broadcast(tac_comm *c, const place *pl, size_t n, int k)
{
    const int me = tac_comm_rank(c), root = k % tac_comm_size(c);
    float *x = array_of(pl, 1, me, k);
    tac_req *req = NULL;
    size_t bad = 0;
    guard(x, n);
    for (size_t i = 0; i < n && me == root; i++) x[i] = wild(root, i);
    CHECK_OK(finish(tac_broadcast(c, x, n, TAC_F32, root, NULL, &req), &req));
    for (size_t i = 0; i < n; i++) bad += x[i] != wild(root, i);
    CHECK_MSG(bad == 0 && is_whole(x, n), "broadcast x %zu: %zu wrong", n, bad);
}

/* Around the elements of a slot, so that there are one to six chunks. */
static void chunks(tac_comm *c, const place *pl, int rounds)
{
    const size_t p = (size_t)tac_comm_size(c);
    const size_t slot = c->domain->slot_bytes / 4;
    static const int parts[] = {1, 2, 4, 8, 12, 16, 20};
    for (int k = 0; k < rounds; k++) {
        const size_t near = slot * (size_t)parts[k % 7] / 4;
        size_t n = near + (size_t)(k % 5) * 7 - 14;
        if (near < 14 || n > MOST / (TESTS_SLOW ? 8 : 1))
            n = (size_t)(k * 77) % 5000;
        allreduce(c, pl, n, k, "flat");
        allreduce(c, pl, n, k + 1, "sliced");
        if (k % 3 == 0) reduce_scatter(c, pl, n / p, k);
        if (k % 3 == 1) allgather(c, pl, n / p, k);
        if (k % 3 == 2) broadcast(c, pl, n, k);
    }
}

/* ---- wire formats -----------------------------------------------------------
 */

static const tac__wire *const wires[] = {&tac__wire_fp16, &tac__wire_bf16,
                                         &tac__wire_int8};

/* x becomes what it is after a message. */
static void pass(const tac__wire *w, float *x, size_t n, char *msg)
{
    w->encode(&tac__codec_ref, msg, n, 0, x, n, 0, 0);
    w->decode(&tac__codec_ref, msg, n, 0, x, n);
}

/* want[i]: the reduction of elements first + i, n of them a message. */
static void wire_sum(const tac__wire *w, tac_op op, double pre, double post,
                     int p, size_t first, size_t n, float *want)
{
    float *x = malloc(n * sizeof *x + 1);
    char *msg = malloc(w->bytes(n) + 1);
    for (int r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) x[i] = wild(r, first + i) * (float)pre;
        pass(w, x, n, msg);
        for (size_t i = 0; i < n; i++) want[i] = r ? want[i] + x[i] : x[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (op == TAC_AVG) want[i] /= (float)p;
        want[i] *= (float)post;
    }
    pass(w, want, n, msg);
    free(msg);
    free(x);
}

static void wire_case(tac_comm *c, const place *pl, tac_coll coll, int k,
                      size_t n)
{
    const int me = tac_comm_rank(c), p = tac_comm_size(c);
    const size_t all = coll == TAC_COLL_ALLREDUCE ? n : n * (size_t)p;
    const size_t first = coll == TAC_COLL_ALLREDUCE ? 0 : n * (size_t)me;
    const tac__wire *w = wires[k % 3];
    const tac_op op = k % 2 ? TAC_AVG : TAC_SUM;
    float *dst = array_of(pl, 1, me, k), *src = array_of(pl, 0, me, k);
    float *want = malloc(n * sizeof *want + 1);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    tac_req *req = NULL;
    size_t bad = 0;
    guard(dst, n);
    for (size_t i = 0; i < all; i++) src[i] = wild(me, i);
    opt.algorithm = "sliced";
    opt.prescale = k % 4 ? 1.0 : 0.37;
    opt.postscale = k % 5 ? 1.0 : 3.1;
    tac_req ask = {.coll = coll,
                   .src = (const char *)src,
                   .dst = (char *)dst,
                   .count = n,
                   .dtype = TAC_F32,
                   .op = op,
                   .bytes_logical = all * 4,
                   .wire = w};
    const tac_status s = finish(tac__coll_submit(c, &ask, &opt, &req), &req);
    wire_sum(w, op, opt.prescale, opt.postscale, p, first, n, want);
    for (size_t i = 0; i < n; i++)
        bad += memcmp(&want[i], &dst[i], sizeof *want) != 0;
    CHECK_MSG(s == TAC_OK && bad == 0 && is_whole(dst, n),
              "%s of %s x %zu of %d: %s, %zu wrong", tac_coll_name(coll),
              w->name, n, p, tac_status_name(s), bad);
    free(want);
}

static void with_wires(tac_comm *c, const place *pl, int rounds)
{
    static const size_t counts[] = {0,    1,    17,   255,  256,
                                    1023, 1024, 1025, 4097, 40000};
    for (int k = 0; k < rounds; k++) {
        const size_t n = counts[k % 10] + (size_t)(k / 10 * 311);
        wire_case(c, pl, TAC_COLL_ALLREDUCE, k, n);
        wire_case(c, pl, TAC_COLL_REDUCE_SCATTER, k,
                  n / (size_t)tac_comm_size(c) + 3);
    }
}

/* ---- a rank that leaves -----------------------------------------------------
 */

enum { LEFT_N = 300000 };

/* Rank 0 gives up and frees its buffers as soon as it may; the others find out
 * or had finished, and nobody touches what is freed. */
static void leaves(tac_comm *c, int round)
{
    const int me = tac_comm_rank(c);
    float *x = malloc(LEFT_N * sizeof *x), *y = malloc(LEFT_N * sizeof *y);
    tac_req *req = NULL;
    for (int i = 0; i < LEFT_N; i++) x[i] = 1;
    const tac_status begun =
        tac_allreduce(c, x, y, LEFT_N, TAC_F32, TAC_SUM, NULL, &req);
    if (me == 0) {
        for (int i = 0, done = 0; i < round % 4 && req; i++)
            (void)tac_test(req, &done);
        tac_comm_destroy(c);
    } else {
        const tac_status s = begun < 0 ? begun : tac_wait(req, 0);
        CHECK(s == TAC_OK || s == TAC_ERR_ABORTED || s == TAC_ERR_PEER);
        CHECK(s != TAC_OK || y[LEFT_N - 1] == (float)tac_comm_size(c));
        tac_comm_destroy(c);
    }
    memset(x, POISON, LEFT_N * sizeof *x);
    free(x);
    free(y);
    if (me == 0) (void)tac_wait(req, 0); /* releases it */
}

static void leaving(tac_comm *c, void *arg)
{
    (void)arg;
    for (int k = 0; k < (TESTS_SLOW ? 12 : 40); k++) {
        tac_comm *child = NULL;
        if (!CHECK_OK(tac_comm_split(c, 0, 0, &child))) return;
        leaves(child, k);
    }
}

/* Destroying waits for a thread that is in this rank's buffers, and nobody can
 * enter them afterwards. */
static _Atomic int inside;

static void borrowing(tac_comm *c, void *arg)
{
    tac_comm *child = NULL;
    (void)arg;
    if (!CHECK_OK(tac_comm_split(c, 0, 0, &child))) return;
    tac__domain *d = child->domain;
    if (tac_comm_rank(c) == 0) {
        while (!atomic_load(&inside)) sched_yield();
        tac_comm_destroy(child);
        CHECK_EQ(atomic_load(&inside), 0);
        return;
    }
    CHECK(tac__domain_borrow(d));
    atomic_store(&inside, 1);
    tac_clock_sleep_ns(50000000u);
    atomic_store(&inside, 0);
    tac__domain_give_back(d);
    while (!atomic_load(&d->line[0]->left)) sched_yield();
    CHECK(!tac__domain_borrow(d));
    tac_comm_destroy(child);
}

/* ---- all of it --------------------------------------------------------------
 */

static void whole(tac_comm *c, void *arg)
{
    place pl;
    const int few = *(int *)arg;
    if (!place_open(&pl, c)) return;
    chunks(c, &pl, few ? 7 : TESTS_SLOW ? 10 : 16);
    with_wires(c, &pl, few ? 10 : 20);
    place_close(&pl, c);
}

int main(void)
{
    static const int sizes[] = {2, 3, 5, 8};
    tac_comm_config least = TAC_COMM_CONFIG_INIT;
    int few;
    least.staging_bytes = 4096;
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    for (int i = 0; i < 4; i++) {
        few = sizes[i] > 4 || TESTS_SLOW;
        with_threads(sizes[i], NULL, whole, &few);
        with_threads(sizes[i], &least, whole, &few);
        with_processes(sizes[i], NULL, whole, &few, the_board, NULL);
        with_processes(sizes[i], &least, whole, &few, the_board, NULL);
        printf("%d ranks: %ld failed so far\n", sizes[i], tac_check_failed());
    }
    with_threads(3, NULL, leaving, NULL);
    with_threads(2, NULL, borrowing, NULL);
    with_processes(3, NULL, leaving, NULL, the_board, NULL);
    return tac_check_summary();
}
