/* comm_mpi_world.c: ranks as processes of an MPI job, and MPI as the other
 * side.
 *
 * MPI gets the thread level that it is fastest with and that our own mpi
 * transport can live with (SERIALIZED), unless a progress thread needs more. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_barrier.h"
#include "comm_bench.h"
#include "comm_watch.h"
#include "tacit/comm_mpi.h"

typedef struct job {
    int rank, size, here, local, cpus, hosts, spin;
    MPI_Comm host, leaders; /* leaders: NULL handle on other ranks */
    MPI_Win window;
    tac__meeting *meeting; /* NULL: MPI_Barrier */
    tac__watch watch;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    char text[1024];
} job;

/* ---- the group -------------------------------------------------------------
 */

static void meet(job *j)
{
    if (!j->meeting) {
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    tac__meet(&j->meeting[0], j->here, j->spin, NULL, NULL);
    if (j->hosts == 1) return;
    if (j->leaders != MPI_COMM_NULL) MPI_Barrier(j->leaders);
    tac__meet(&j->meeting[1], j->here, j->spin, NULL, NULL);
}

static void barrier(void *state)
{
    job *j = state;
    tac__watch_begin(&j->watch, 0);
    meet(j);
    tac__watch_end(&j->watch, 0);
}

static void combine(job *j, double *x, size_t n, MPI_Op op)
{
    tac__watch_begin(&j->watch, 0);
    MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, op, MPI_COMM_WORLD);
    tac__watch_end(&j->watch, 0);
}

static void max_over(void *state, double *x, size_t n)
{
    combine(state, x, n, MPI_MAX);
}

static void sum_over(void *state, double *x, size_t n)
{
    combine(state, x, n, MPI_SUM);
}

/* Ranks of this host and the CPUs that they may use together: a launcher may
 * have bound each to some of its own. */
static void find_host(job *j)
{
    cpu_set_t mine, all;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &j->host);
    MPI_Comm_rank(j->host, &j->local);
    MPI_Comm_size(j->host, &j->here);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, j->host);
    j->cpus = CPU_COUNT(&all) > 0 ? CPU_COUNT(&all) : 1;
    j->spin = j->here <= j->cpus;
    MPI_Comm_split(MPI_COMM_WORLD, j->local == 0 ? 0 : MPI_UNDEFINED, j->rank,
                   &j->leaders);
    j->hosts = j->local == 0;
    MPI_Allreduce(MPI_IN_PLACE, &j->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void open_meeting(job *j)
{
    MPI_Aint bytes = 0;
    int unit = 1;
    void *base = NULL;
    if (MPI_Win_allocate_shared(
            j->local == 0 ? (MPI_Aint)(3 * sizeof *j->meeting) : 0, 1,
            MPI_INFO_NULL, j->host, &base, &j->window) != MPI_SUCCESS)
        return;
    MPI_Win_shared_query(j->window, 0, &bytes, &unit, &base);
    const uintptr_t at = ((uintptr_t)base + 63) & ~(uintptr_t)63;
    tac__meeting *m = (tac__meeting *)at;
    if (j->local == 0) memset(m, 0, 2 * sizeof *m);
    MPI_Barrier(j->host);
    j->meeting = m;
}

/* ---- the other side --------------------------------------------------------
 */

static int mpi_type(tac_dtype t, MPI_Datatype *out)
{
    switch (t) {
    case TAC_F32: *out = MPI_FLOAT; return 1;
    case TAC_F64: *out = MPI_DOUBLE; return 1;
    case TAC_I32: *out = MPI_INT32_T; return 1;
    case TAC_I64: *out = MPI_INT64_T; return 1;
    case TAC_U8: *out = MPI_UINT8_T; return 1;
    default: return 0; /* MPI 3 knows no 16-bit floats */
    }
}

/* MPI knows no average: its sum stands for it. */
static MPI_Op mpi_op(tac_op op)
{
    switch (op) {
    case TAC_MIN: return MPI_MIN;
    case TAC_MAX: return MPI_MAX;
    case TAC_PROD: return MPI_PROD;
    default: return MPI_SUM;
    }
}

static int can(const tac__case *k)
{
    MPI_Datatype t;
    return mpi_type(k->dtype, &t) && k->count <= 0x7fffffff;
}

static int call_mpi(const tac__case *k, const void *src, void *dst)
{
    MPI_Datatype t = MPI_BYTE;
    const void *from = k->in_place ? MPI_IN_PLACE : src;
    const int n = (int)k->count, part = (int)k->part;
    mpi_type(k->dtype, &t);
    switch (k->coll) {
    case TAC_COLL_ALLREDUCE:
        return MPI_Allreduce(from, dst, n, t, mpi_op(k->op), MPI_COMM_WORLD);
    case TAC_COLL_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(
            from, k->in_place ? (void *)(uintptr_t)src : dst, part, t,
            mpi_op(k->op), MPI_COMM_WORLD);
    case TAC_COLL_ALLGATHER:
        return MPI_Allgather(from, part, t, dst, part, t, MPI_COMM_WORLD);
    default: return MPI_Bcast(dst, n, t, 0, MPI_COMM_WORLD);
    }
}

static int run_mpi(void *state, const tac__case *k, const void *src, void *dst)
{
    job *j = state;
    tac__watch_begin(&j->watch, 0);
    const int error = call_mpi(k, src, dst);
    tac__watch_end(&j->watch, 0);
    return error;
}

static void read_version(job *j)
{
    int n = 0;
    MPI_Get_library_version(j->version, &n);
    j->version[strcspn(j->version, ",\n")] = 0;
}

/* ---- life ------------------------------------------------------------------
 */

/* Options are refused once, by the lowest rank that does. 0: go on. */
static int refuse(const tac__bench_start *s, const job *j)
{
    int code = s->parsed < 0 ? tac__bench_exit_code(s->parsed) : 0;
    const int mine = code ? j->rank : j->size;
    int first = j->size;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < j->size) {
        MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
        if (j->rank == first) fprintf(stderr, "comm_bench: %s\n", s->message);
        return code;
    }
    if (s->told > 1 && j->size == 1 && !s->opt->allow_singleton) {
        if (s->first)
            fprintf(
                stderr,
                "comm_bench: started as one of %d, but MPI sees a world of "
                "one; use the mpirun of the MPI that tacit was built with, or "
                "srun --mpi=pmix; if separate jobs are wanted: "
                "--allow-singleton\n",
                s->told);
        return 2;
    }
    if (s->action == TAC_ACTION_RUN && s->opt->ranks > 0 && j->size > 1) {
        if (j->rank == 0)
            fprintf(stderr, "comm_bench: --ranks is for threads of one "
                            "process; under mpirun give -np N alone\n");
        return 2;
    }
    return 0;
}

static tac_status connect_again(void *state, tac_context *ctx,
                                const tac_comm_config *config, tac_comm **out)
{
    job *j = state;
    tac__watch_begin(&j->watch, 0);
    const tac_status s = tac_comm_create_mpi(MPI_COMM_WORLD, ctx, config, out);
    tac__watch_end(&j->watch, 0);
    return s;
}

static void keep_line(void *arg, tac_log_level level, const char *line)
{
    job *j = arg;
    if (level == TAC_LOG_ERROR) /* the last is the one that ends us */
        snprintf(j->text, sizeof j->text, "%s", line);
    else if (level != TAC_LOG_ERROR)
        fprintf(stderr, "%s\n", line);
}

static tac_status create(job *j, const tac__bench_start *s, tac__comm_bench *b)
{
    const tac_comm_config config = tac__bench_comm_config(s->opt);
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    cc.rank = j->rank;
    cc.world = j->size;
    cc.local_ranks = j->here;
    cc.threads = 1;
    cc.level = j->rank == 0 ? TAC_LOG_WARN : TAC_LOG_ERROR;
    cc.log = keep_line;
    cc.log_arg = j;
    TAC_TRY(tac_context_create(&cc, &b->ctx));
    return tac__bench_creation(connect_again(j, b->ctx, &config, &b->comm));
}

/* Every rank that failed has a text; without an MPI that still works there is
 * no telling whose matters, so rank 0's, or each its own after a failure. */
static void tell(const job *j, tac_status s, int healthy)
{
    if (s >= 0 || (healthy && j->rank != 0)) return;
    fprintf(stderr, "comm_bench: %s\n",
            j->text[0] ? j->text : tac_status_text(s));
}

static int run_rank(job *j, const tac__bench_start *s, int *healthy)
{
    tac__comm_bench b = {.group = {.rank = j->rank,
                                   .size = j->size,
                                   .here = j->here,
                                   .cpus = j->cpus,
                                   .same_clock = j->hosts == 1,
                                   .state = j,
                                   .barrier = barrier,
                                   .max = max_over,
                                   .sum = sum_over,
                                   .connect = connect_again}};
    if (strcmp(s->opt->baseline, "mpi") == 0) {
        b.group.baseline_name = j->version;
        b.group.can = can;
        b.group.baseline = run_mpi;
    }
    tac_status status = create(j, s, &b);
    if (status >= 0) status = tac__bench_rank(s, &b);
    *healthy = !b.comm || tac_comm_error(b.comm, NULL, 0) >= 0;
    tell(j, status, *healthy);
    tac__watch_begin(&j->watch, 0);
    tac_comm_destroy(b.comm);
    tac__watch_end(&j->watch, 0);
    tac_context_destroy(b.ctx);
    return tac__bench_exit_code(status);
}

/* After a broken communication MPI could wait for ever, in its abort, too. */
static void close_job(job *j, int healthy, int code)
{
    tac__watch_begin(&j->watch, 0);
    if (!healthy) MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    if (j->meeting) MPI_Win_free(&j->window);
    if (j->leaders != MPI_COMM_NULL) MPI_Comm_free(&j->leaders);
    MPI_Comm_free(&j->host);
    tac__watch_end(&j->watch, 0);
}

static void finish(job *j)
{
    tac__watch_begin(&j->watch, 0);
    MPI_Finalize();
    tac__watch_end(&j->watch, 0);
    tac__watch_close(&j->watch);
}

int tac__bench_mpi(const tac__bench_start *s)
{
    const int thread = s->parsed >= 0 && !strcmp(s->opt->progress, "thread");
    job j = {.size = 1};
    int provided = 0, healthy = 1;
    if (MPI_Init_thread(NULL, NULL,
                        thread ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED,
                        &provided) != MPI_SUCCESS) {
        fprintf(stderr, "comm_bench: MPI_Init_thread failed\n");
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.size);
    tac__watch_open(&j.watch, 1, j.rank, tac__bench_patience(s));
    tac__watch_begin(&j.watch, 0);
    int code = refuse(s, &j);
    tac__watch_end(&j.watch, 0);
    if (!code && s->action != TAC_ACTION_RUN) {
        if (j.rank == 0) tac__bench_print(s);
        fflush(stdout);
        finish(&j);
        return 0;
    }
    if (!code) {
        tac__watch_begin(&j.watch, 0);
        find_host(&j);
        open_meeting(&j);
        tac__watch_end(&j.watch, 0);
        read_version(&j);
        code = run_rank(&j, s, &healthy);
        fflush(stdout);
        close_job(&j, healthy, code);
    }
    finish(&j);
    return code;
}
