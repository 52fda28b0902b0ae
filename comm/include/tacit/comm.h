/* tacit/comm.h: communicators and collectives.
 *
 * A communicator (tac_comm) is one rank's handle on a group of ranks. It knows
 * nothing of training: it moves and reduces arrays. Ranks come from threads of
 * one process (tac_comm_create_threads), from any launcher through an
 * out-of-band all-gather (tac_comm_create_oob), or from MPI (comm_mpi.h).
 *
 * Rules for every function below:
 * - Collectives are non-blocking: they return a request. All ranks call the
 *   same collectives on a communicator in the same order, with the same count,
 *   dtype, op, root and tag. Requests of one communicator run in the order of
 *   submission. Two communicators may be waited for in any order.
 * - Buffers belong to the library from submission to completion: `src` may be
 *   read but not written, `dst` may be neither. A buffer needs the alignment of
 *   its elements only.
 * - Waits are bounded. After a failure the communicator is poisoned: each later
 *   call returns the first error at once; tac_comm_destroy still works. If a
 *   request failed, its buffers stay in use until tac_comm_destroy returned.
 *   (Over mpi a send that MPI has begun can't be taken back: after a failure
 *   leave buffers mapped until the process ends. tac_mem_alloc's are.)
 * - All ranks get identical bits. In shared memory, and everywhere under
 *   `deterministic`, sums are formed in rank order 0..p-1, so transport, chunk
 *   size and placement change nothing; the algorithms on messages have orders
 *   of their own (docs/comm.md has the table). f16 and bf16 are accumulated in
 *   f32 and rounded once, at the end (hierarchical: once a level).
 * - Counts are in elements. count 0 and one rank work everywhere.
 *
 * Thread-safety: one thread at a time a communicator, except tac_comm_abort,
 * tac_comm_error and the functions that only read, which any thread may call.
 * Different communicators may be used by different threads at once. */
#ifndef TACIT_COMM_H
#define TACIT_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/context.h"
#include "tacit/dtype.h"

TAC_BEGIN_DECLS

typedef struct tac_comm tac_comm;
typedef struct tac_req tac_req;

/* Reductions. Integers: sum and prod wrap modulo 2^bits; avg is the 64-bit sum
 * divided by the number of ranks, truncated toward zero. Floats: min and max
 * are NaN if any rank's element is. */
typedef enum tac_op {
    TAC_SUM = 0,
    TAC_AVG, /* sum, divided by the number of ranks */
    TAC_MIN,
    TAC_MAX,
    TAC_PROD,
    TAC_OP_COUNT
} tac_op;

/* Kinds of collectives: index of the statistics, names of spans. */
typedef enum tac_coll {
    TAC_COLL_ALLREDUCE = 0,
    TAC_COLL_REDUCE_SCATTER,
    TAC_COLL_ALLGATHER,
    TAC_COLL_BROADCAST,
    TAC_COLL_BARRIER,
    TAC_COLL_SEND,
    TAC_COLL_RECV,
    TAC_COLL_COUNT
} tac_coll;

/* "sum", "allreduce", ...; "?" for other values. Thread-safe. */
TAC_API const char *tac_op_name(tac_op op);
TAC_API const char *tac_coll_name(tac_coll coll);

/* ---- life ---------------------------------------------------------------- */

typedef enum tac_progress {
    TAC_PROGRESS_CALLER = 0, /* whoever waits or tests drives */
    TAC_PROGRESS_THREAD      /* one thread a context drives */
} tac_progress;

/* Must be equal on all ranks, except timeout_ms, stall_warn_ms, progress,
 * recorder and dump. Strings are borrowed for the call. */
typedef struct tac_comm_config {
    size_t struct_size;
    const char *transport; /* NULL or "auto", "self", "thread", "shm", "mpi",
                              "ucx" */
    int timeout_ms;    /* of every operation and of creation; <= 0: 300000 */
    int stall_warn_ms; /* warn when an operation waits longer; 0: 60000,
                          < 0: never */
    tac_progress progress;
    int deterministic;      /* only algorithms that add in flat rank order */
    size_t staging_bytes;   /* of copies in flight, a rank; 0: 2 MiB. In shared
                               memory it is four slots, each at least 2176
                               bytes for every rank; elsewhere at least 4 KiB */
    size_t message_bytes;   /* longest single message between processes (mpi);
                               0: 1 GiB; at least 4 KiB */
    int check;              /* 1: compare every collective's signature on all
                               ranks before data moves; thread and shm always
                               do, mpi and ucx pay a small round for it */
    const char *emulate;    /* an emulated network between virtual hosts:
                               "hosts=4,rate=1gbit,delay=10ms"; NULL: none.
                               See docs/comm.md */
    const char *algorithms; /* override of the choice, by size in bytes:
                               "allreduce=recursive_doubling:0-64K,ring:64K-;
                               broadcast=tree"; NULL: the cost model chooses */
    const char *tune_file;  /* written by comm_bench --tune: the cost model's
                               constants; NULL: built-in ones */
    int recorder;           /* entries of the flight recorder; 0: 256,
                               < 0: none */
    const char *dump; /* on the first failure the flight recorder is written to
                         "<dump>.<rank>.json"; NULL: not */
} tac_comm_config;

#define TAC_COMM_CONFIG_INIT                                                  \
    {                                                                         \
        sizeof(tac_comm_config), NULL, 0, 0, TAC_PROGRESS_CALLER, 0, 0, 0, 0, \
            NULL, NULL, NULL, 0, NULL                                         \
    }

/* The caller's all-gather, used at creation only. Creation never has two
 * operations in flight. Between creations the ranks' calls must match. */
typedef struct tac_oob {
    size_t struct_size; /* sizeof(tac_oob) */
    /* Starts an all-gather of `bytes` bytes (the same on all ranks, at most
     * 4096): rank r's contribution goes to recv + r * bytes on every rank. Both
     * buffers stay valid until test says so or cancel returns. *op is the
     * callback's own. */
    tac_status (*start)(void *arg, const void *send, void *recv, size_t bytes,
                        void **op);
    /* TAC_OK: complete, op is released. TAC_INPROGRESS: not yet. Else failed,
     * op is released. Must not block. */
    tac_status (*test)(void *arg, void *op);
    /* Gives op up (creation timed out): releases it; the buffers must not be
     * touched any more. */
    void (*cancel)(void *arg, void *op);
    void *arg;
} tac_oob;

/* Creates a communicator of `size` ranks; collective. `oob` is borrowed for the
 * call. `config` NULL means defaults. All ranks return the same verdict, except
 * that a rank which never calls makes the others return TIMEOUT. *out is
 * written only on success. The context must outlive the communicator.
 * Errors: ARG, NOMEM, MISMATCH (versions or configurations differ),
 * UNSUPPORTED (the transport asked for can't work here, with the reason),
 * TIMEOUT. */
TAC_API tac_status tac_comm_create_oob(tac_context *ctx, int rank, int size,
                                       const tac_oob *oob,
                                       const tac_comm_config *config,
                                       tac_comm **out);

/* Ranks that are threads of one process. The program makes one group for N
 * ranks; each thread then creates its communicator from it, with its own
 * context. The group may be used for several creations one after the other and
 * destroyed when the last of them has returned on all threads. */
typedef struct tac_thread_group tac_thread_group;
TAC_API tac_status tac_thread_group_create(int size, tac_thread_group **out);
TAC_API void tac_thread_group_destroy(tac_thread_group *g); /* NULL is legal */
/* As tac_comm_create_oob; blocks until all `size` threads have called. */
TAC_API tac_status tac_comm_create_threads(tac_context *ctx,
                                           tac_thread_group *group, int rank,
                                           const tac_comm_config *config,
                                           tac_comm **out);

/* A world of one, without any bootstrap. */
TAC_API tac_status tac_comm_create_self(tac_context *ctx,
                                        const tac_comm_config *config,
                                        tac_comm **out);

/* MPI_Comm_split's semantics: ranks of equal color >= 0 form a communicator,
 * ordered by (key, rank in the parent); color < 0: *out becomes NULL and the
 * rank takes part only in the call. Collective, blocks, agreed verdict. The
 * child has the parent's configuration and context and may outlive it; while it
 * does not, a failure of the parent is the child's, too, as soon as somebody
 * waits in it. */
TAC_API tac_status tac_comm_split(tac_comm *comm, int color, int key,
                                  tac_comm **out);
/* The same; the child's staging_bytes are its own (0: the parent's). One that
 * carries short messages alone needs no more than a few KiB. */
TAC_API tac_status tac_comm_split_staging(tac_comm *comm, int color, int key,
                                          size_t staging_bytes, tac_comm **out);

/* Poisons the communicator on all ranks with TAC_ERR_ABORTED and the reason
 * (cut to 200 bytes). Any thread; does not block on peers. The first error
 * stays. */
TAC_API void tac_comm_abort(tac_comm *comm, const char *reason);

/* The first error, TAC_OK while healthy; its text goes to buf (may be NULL),
 * terminated. Any thread. */
TAC_API tac_status tac_comm_error(const tac_comm *comm, char *buf,
                                  size_t bytes);

/* Releases everything. Local: never waits for peers. Call it when the rank's
 * requests are complete; unfinished ones fail with ABORTED on all ranks, and
 * are still released by tac_wait. A peer that later waits for this rank gets
 * PEER. Symmetric memory of the communicator is gone afterwards. NULL is legal.
 */
TAC_API void tac_comm_destroy(tac_comm *comm);

TAC_API int tac_comm_rank(const tac_comm *comm);
TAC_API int tac_comm_size(const tac_comm *comm);
TAC_API tac_context *tac_comm_context(const tac_comm *comm);
/* "self", "thread", "shm", "mpi", "ucx"; "emulated": one of these behind an
 * emulated network (transport_why says which). */
TAC_API const char *tac_comm_transport_name(const tac_comm *comm);
/* Why, and through what where the transport can tell: "8 processes on 4 hosts,
 * through tcp/eth0", for banners. Owned by the communicator. */
TAC_API const char *tac_comm_transport_why(const tac_comm *comm);
/* Number of hosts (groups of ranks that could share memory); 1 or more. */
TAC_API int tac_comm_hosts(const tac_comm *comm);
/* Bytes of memory that this rank holds for the communicator: staging, its part
 * of shared regions, symmetric memory (tac_mem_alloc), children of a hierarchy.
 */
TAC_API size_t tac_comm_bytes(const tac_comm *comm);
/* The same of a communicator of `size` ranks that will be split off this one
 * with tac_comm_split_staging; exact where all ranks share memory. */
TAC_API size_t tac_comm_child_bytes(const tac_comm *comm, int size,
                                    size_t staging_bytes);
/* The configuration in effect, defaults filled in. Owned by comm. */
TAC_API const tac_comm_config *tac_comm_config_of(const tac_comm *comm);

/* ---- collectives --------------------------------------------------------- */

#define TAC_WIRE_SAME (-1)

/* Start from TAC_COLL_OPT_INIT. NULL instead of a pointer to this structure
 * means the same. */
typedef struct tac_coll_opt {
    size_t struct_size; /* sizeof(tac_coll_opt), set by the INIT macro */
    void *stream;       /* device stream; NULL (host memory) for now */
    double prescale;    /* each element is multiplied before the reduction: in
                           f32 for f32, f16 and bf16, in f64 for f64 and
                           integers (truncated, clamped to 64 bits). Scales
                           must be equal on all ranks */
    double postscale;   /* the result is, likewise, before it is rounded */
    int wire_dtype;     /* TAC_WIRE_SAME; for f32 elements also TAC_F16 or
                           TAC_BF16: what travels, see tacit/codec.h */
    struct tac_codec *codec; /* stronger compression of an f32 allreduce (sum or
                                avg), see tacit/codec.h; NULL: none. Not
                                together with wire_dtype */
    int timeout_ms;        /* <= 0: the communicator's. Counted from the moment
                              that the request is first in its queue */
    const char *algorithm; /* NULL: chosen; else a name of the table, borrowed
                              for the call; unknown or unfit: UNSUPPORTED */
    unsigned flags;        /* 0 */
    uint64_t tag;          /* shown in messages, compared across ranks */
    const struct tac_codec_layout *layout; /* which parameters the buffer is
                                              made of, for codecs with state
                                              (borrowed until completion) */
} tac_coll_opt;

#define TAC_COLL_OPT_INIT                                                      \
    {                                                                          \
        sizeof(tac_coll_opt), NULL, 1.0, 1.0, TAC_WIRE_SAME, NULL, 0, NULL, 0, \
            0, NULL                                                            \
    }

/* Each of these returns, at submission: ARG (NULL or overlapping buffers, sizes
 * that overflow, no such dtype or op), UNSUPPORTED, NOMEM - nothing is then
 * submitted and the communicator stays healthy - or the first error of a
 * poisoned communicator. *req is written only on success and must be given to
 * tac_wait. */

/* dst[i] = op over ranks of src[i]; src, dst (count). In place: src == dst, or
 * src NULL. */
TAC_API tac_status tac_allreduce(tac_comm *comm, const void *src, void *dst,
                                 size_t count, tac_dtype dtype, tac_op op,
                                 const tac_coll_opt *opt, tac_req **req);

/* src (size * recvcount), dst (recvcount): rank r gets the reduction of block
 * r. In place: dst is the rank's own block of src (src + rank * recvcount). */
TAC_API tac_status tac_reduce_scatter(tac_comm *comm, const void *src,
                                      void *dst, size_t recvcount,
                                      tac_dtype dtype, tac_op op,
                                      const tac_coll_opt *opt, tac_req **req);

/* src (sendcount), dst (size * sendcount), blocks in rank order. In place: src
 * is the rank's own block of dst, or NULL. Scales are ignored. */
TAC_API tac_status tac_allgather(tac_comm *comm, const void *src, void *dst,
                                 size_t sendcount, tac_dtype dtype,
                                 const tac_coll_opt *opt, tac_req **req);

/* buf (count): root's content goes to every rank. Scales are ignored. */
TAC_API tac_status tac_broadcast(tac_comm *comm, void *buf, size_t count,
                                 tac_dtype dtype, int root,
                                 const tac_coll_opt *opt, tac_req **req);

/* Completes when every rank has submitted it. */
TAC_API tac_status tac_barrier(tac_comm *comm, const tac_coll_opt *opt,
                               tac_req **req);

/* Point to point: the k-th tac_send from rank a to rank b meets the k-th
 * tac_recv of b from a; counts and dtypes must be equal (MISMATCH on both
 * otherwise, where the transport can tell). They do not wait for collectives,
 * nor for each other: all are under way from their submission on. A send may
 * complete before its receive is submitted. peer == own rank works. Scales,
 * wire types and codecs are not for them: UNSUPPORTED. Errors of a timeout:
 * TIMEOUT, and the communicator is poisoned. */
TAC_API tac_status tac_send(tac_comm *comm, const void *buf, size_t count,
                            tac_dtype dtype, int peer, const tac_coll_opt *opt,
                            tac_req **req);
TAC_API tac_status tac_recv(tac_comm *comm, void *buf, size_t count,
                            tac_dtype dtype, int peer, const tac_coll_opt *opt,
                            tac_req **req);

/* Drives progress once, without blocking; *done becomes 1 when the request is
 * complete (or failed: the return value says so). Does not release it. */
TAC_API tac_status tac_test(tac_req *req, int *done);

/* Waits until the request is complete, then releases it, also on failure: req
 * is invalid afterwards. timeout_ms > 0: at most that long from now, then the
 * request fails with TIMEOUT and the communicator is poisoned; <= 0: the
 * operation's own timeout. The failure's text: tac_comm_error. NULL returns
 * TAC_OK at once. */
TAC_API tac_status tac_wait(tac_req *req, int timeout_ms);

/* Drives all communicators of this communicator's context once, without
 * blocking. Returns the first error of `comm`. */
TAC_API tac_status tac_comm_progress(tac_comm *comm);

/* ---- symmetric memory -----------------------------------------------------
 */

/* Collective: every rank gets `bytes` bytes (the same number everywhere; 0 is
 * taken as 1), zeroed, 64-byte aligned, populated, at addresses that may
 * differ. On a transport with shared memory, collectives of this communicator
 * whose buffers lie in such memory on all ranks read and write the peers'
 * memory in place; elsewhere it is ordinary memory. Blocks; agreed verdict;
 * failing to get the memory does not poison. Errors: NOMEM (with the size),
 * MISMATCH, TIMEOUT, PEER. */
TAC_API tac_status tac_mem_alloc(tac_comm *comm, size_t bytes, void **out);
/* Local: the peers' mappings keep the pages until they free theirs; call it
 * after the collectives that used the memory are complete. NULL is legal. */
TAC_API void tac_mem_free(tac_comm *comm, void *p);

/* ---- statistics -----------------------------------------------------------
 */

typedef struct tac_comm_op_stats {
    uint64_t calls;               /* completed */
    uint64_t calls_symmetric;     /* of these, without staging copies */
    uint64_t bytes_logical;       /* contributed by this rank */
    uint64_t bytes_wire;          /* the same after encoding */
    uint64_t bytes_between_hosts; /* really sent by this rank to other hosts */
    double busy_s;                /* first in the queue until complete */
    double wait_s;                /* of busy_s: waiting for other ranks */
    double exposed_s;             /* callers blocked in tac_wait */
    double cpu_s;                 /* thread CPU time moving and reducing */
} tac_comm_op_stats;

typedef struct tac_comm_stats {
    tac_comm_op_stats op[TAC_COLL_COUNT];
    tac_comm_op_stats total;
} tac_comm_stats;

TAC_API void tac_comm_stats_get(const tac_comm *comm, tac_comm_stats *out);
TAC_API void tac_comm_stats_reset(tac_comm *comm);

/* ---- seeing ----------------------------------------------------------------
 */

/* Writes the flight recorder: the last operations of this rank with sequence
 * numbers, sizes, algorithms, times and states, and what is under way, as JSON
 * (docs/comm.md has the format). Any thread. Errors: IO, STATE (recorder
 * off). */
TAC_API tac_status tac_comm_dump(const tac_comm *comm, const char *path);

/* The i-th algorithm of this build, for listings; OK, or ARG past the end. */
typedef struct tac_algorithm_info {
    tac_coll coll;
    const char *name, *doc;
} tac_algorithm_info;
TAC_API tac_status tac_algorithm_list(size_t i, tac_algorithm_info *out);

TAC_END_DECLS

#endif
