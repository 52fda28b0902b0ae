/* comm_steady.c: after the first calls of a shape nothing is allocated: every
 * collective by every algorithm, sends and receives, wires, codecs and a
 * reducer's steps, counted by a malloc and an mmap of this program's own. */
#include <errno.h>
#include <sys/syscall.h>

#include "comm_fork.h"
#include "comm_impl.h"
#include "tacit/codec.h"
#include "tacit/reducer.h"

#if !TESTS_SLOW

/* ---- counting -------------------------------------------------------------
 */

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t m);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t a, size_t n);

/* This rank's thread; volatile, as compilers believe that malloc reads nothing
 * of ours. */
static _Thread_local volatile int counting;
static _Atomic int counting_all; /* progress threads too */
static _Atomic long allocations;

static void count(void)
{
    if (counting || atomic_load(&counting_all))
        atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    count();
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    count();
    return __libc_memalign(a, n);
}

int posix_memalign(void **p, size_t a, size_t n)
{
    count();
    *p = __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    count();
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

/* ---- one shape ------------------------------------------------------------
 */

enum { WARM = 3, COUNTED = 6, MOST = 120000, MAX_RANKS = 4 };

typedef struct shape {
    tac_coll coll;
    tac_dtype dtype;
    size_t count;
    const char *algorithm;
    int wire;
    tac_codec *codec;
} shape;

typedef struct buffers {
    char *src, *dst; /* MOST f64 for each rank */
} buffers;

static tac_status submit(tac_comm *c, const shape *s, buffers b, tac_req **req)
{
    const int p = tac_comm_size(c), me = tac_comm_rank(c);
    tac_coll_opt opt = TAC_COLL_OPT_INIT;
    opt.algorithm = s->algorithm;
    opt.wire_dtype = s->wire;
    opt.codec = s->codec;
    switch (s->coll) {
    case TAC_COLL_ALLREDUCE:
        return tac_allreduce(c, b.src, b.dst, s->count, s->dtype, TAC_SUM, &opt,
                             req);
    case TAC_COLL_REDUCE_SCATTER:
        return tac_reduce_scatter(c, b.src, b.dst, s->count, s->dtype, TAC_SUM,
                                  &opt, req);
    case TAC_COLL_ALLGATHER:
        return tac_allgather(c, b.src, b.dst, s->count, s->dtype, &opt, req);
    case TAC_COLL_BROADCAST:
        return tac_broadcast(c, b.dst, s->count, s->dtype, 0, &opt, req);
    case TAC_COLL_SEND:
        return tac_send(c, b.src, s->count, s->dtype, (me + 1) % p, NULL, req);
    case TAC_COLL_RECV:
        return tac_recv(c, b.dst, s->count, s->dtype, (me + p - 1) % p, NULL,
                        req);
    default: return tac_barrier(c, &opt, req);
    }
}

/* Two under way at a time, sends with their receives. */
static tac_status run_once(tac_comm *c, const shape *s, buffers b)
{
    shape second = *s;
    tac_req *req[2] = {NULL, NULL};
    if (s->coll == TAC_COLL_SEND) second.coll = TAC_COLL_RECV;
    TAC_TRY(submit(c, s, b, &req[0]));
    TAC_TRY(submit(c, &second, b, &req[1]));
    const tac_status first = tac_wait(req[0], 0);
    const tac_status last = tac_wait(req[1], 0);
    return first < 0 ? first : last;
}

static void run_shape(tac_comm *c, const shape *s, buffers b)
{
    tac_status st = TAC_OK;
    for (int i = 0; i < WARM && st == TAC_OK; i++) st = run_once(c, s, b);
    if (st == TAC_ERR_UNSUPPORTED) return;
    const long before = atomic_load(&allocations);
    counting = 1;
    for (int i = 0; i < COUNTED && st == TAC_OK; i++) st = run_once(c, s, b);
    counting = 0;
    /* Other ranks' threads count into the same number, so it may show theirs:
     * it has to be 0 anyway. */
    const long made = atomic_load(&allocations) - before;
    CHECK_MSG(st == TAC_OK && made == 0,
              "%s, %s by %s, %s x %zu, wire %d, codec %s: %s, %ld allocations",
              tac_comm_transport_name(c), tac_coll_name(s->coll),
              s->algorithm ? s->algorithm : "any", tac_dtype_name(s->dtype),
              s->count, s->wire, s->codec ? tac_codec_spec(s->codec) : "none",
              tac_status_name(st), made);
}

/* ---- all of them ----------------------------------------------------------
 */

static void run_algorithms(tac_comm *c, buffers b)
{
    static const size_t counts[] = {1, 1000, 100000};
    static const int wires[] = {TAC_WIRE_SAME, TAC_F16, TAC_BF16};
    for (size_t a = 0; tac__algs[a]; a++)
        for (int k = 0; k < 3; k++)
            for (int w = 0; w < 3; w++) {
                const shape s = {.coll = tac__algs[a]->coll,
                                 .dtype = TAC_F32,
                                 .count = counts[k],
                                 .algorithm = tac__algs[a]->name,
                                 .wire = wires[w]};
                const int reduces = s.coll == TAC_COLL_ALLREDUCE ||
                                    s.coll == TAC_COLL_REDUCE_SCATTER;
                if (w > 0 && !reduces) continue;
                run_shape(c, &s, b);
            }
}

static void run_transfers(tac_comm *c, buffers b)
{
    static const size_t counts[] = {0, 1, 5000, 100000};
    for (int k = 0; k < 4; k++) {
        const shape s = {.coll = TAC_COLL_SEND,
                         .dtype = TAC_F64,
                         .count = counts[k],
                         .wire = TAC_WIRE_SAME};
        run_shape(c, &s, b);
    }
}

static void run_codecs(tac_comm *c, buffers b)
{
    static const char *const specs[] = {"fp16,ef",
                                        "int8",
                                        "int8,stochastic",
                                        "topk:0.01",
                                        "topk:0.1,bits=2,chunk=64",
                                        "powersgd:2,start=0"};
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        tac_codec *codec = NULL;
        if (!CHECK_OK(tac_codec_create(tac_comm_context(c), specs[k], &codec)))
            continue;
        const shape s = {.coll = TAC_COLL_ALLREDUCE,
                         .dtype = TAC_F32,
                         .count = 50000,
                         .wire = TAC_WIRE_SAME,
                         .codec = codec};
        run_shape(c, &s, b);
        tac_codec_destroy(codec);
    }
}

static tac_status run_step(tac_reducer *r, size_t n)
{
    TAC_TRY(tac_reducer_begin(r, 1, 1.0));
    for (size_t i = n; i-- > 0;) TAC_TRY(tac_reducer_ready(r, i, NULL));
    return tac_reducer_finish(r, 0);
}

static void run_reducer(tac_comm *c)
{
    enum { N = 9 };
    tac_param_desc d[N];
    tac_reducer_config config = TAC_REDUCER_CONFIG_INIT;
    tac_reducer *r = NULL;
    tac_status st = TAC_OK;
    config.first_bucket_bytes = config.bucket_bytes = 20000;
    config.find_unused = config.check_nan = 1;
    for (size_t i = 0; i < N; i++)
        d[i] = (tac_param_desc){.name = "p", .count = 1500 * (i + 1)};
    if (!CHECK_OK(tac_reducer_create(c, d, N, &config, &r))) return;
    for (int i = 0; i < WARM && st == TAC_OK; i++) st = run_step(r, N);
    const long before = atomic_load(&allocations);
    counting = 1;
    for (int i = 0; i < COUNTED && st == TAC_OK; i++) st = run_step(r, N);
    counting = 0;
    const long made = atomic_load(&allocations) - before;
    CHECK_MSG(st == TAC_OK && made == 0, "%s, reducer: %s, %ld allocations",
              tac_comm_transport_name(c), tac_status_name(st), made);
    tac_reducer_destroy(r);
}

static void run_all(tac_comm *c, buffers b)
{
    run_algorithms(c, b);
    run_transfers(c, b);
    run_codecs(c, b);
    run_reducer(c);
}

static void plain_and_symmetric(tac_comm *c, void *arg)
{
    const size_t bytes = (size_t)MOST * 8 * MAX_RANKS;
    buffers plain = {calloc(bytes, 1), calloc(bytes, 1)};
    void *src = NULL, *dst = NULL;
    (void)arg;
    if (!CHECK(plain.src && plain.dst)) return;
    run_all(c, plain);
    CHECK_OK(tac_mem_alloc(c, bytes, &src));
    CHECK_OK(tac_mem_alloc(c, bytes, &dst));
    run_algorithms(c, (buffers){src, dst});
    tac_mem_free(c, src);
    tac_mem_free(c, dst);
    free(plain.src);
    free(plain.dst);
}

/* The counters count: a check that could not fail would be none. */
static void counts_something(void)
{
    counting = 1;
    void *volatile p = malloc(10);
    counting = 0;
    free(p);
    CHECK(atomic_exchange(&allocations, 0) > 0);
}

int main(void)
{
    static const char *const transports[] = {"shm", "ucx"};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    board *b = board_create();
    if (!CHECK(b != NULL)) return tac_check_summary();
    counts_something();
    for (int t = 0; t < 2; t++) {
        config.transport = transports[t];
        if (t > 0 && !can_fork_over(transports[t], b)) continue;
        with_processes(3, &config, plain_and_symmetric, NULL, b, NULL);
        printf("%s: %ld failed so far\n", transports[t], tac_check_failed());
    }
    with_threads(1, NULL, plain_and_symmetric, NULL);
    with_threads(3, NULL, plain_and_symmetric, NULL);
    return tac_check_summary();
}

#else

int main(void)
{
    return tac_check_skip("sanitizers have an allocator of their own");
}

#endif
