/* 04_allreduce.c: comm/ alone: ranks add up their arrays.
 *
 *     04_allreduce [RANKS]             ranks are threads; 4 if not said
 *     mpirun -np 4 04_allreduce        ranks are processes, with MPI
 *
 * What a rank does is in add_up(). The rest shows the two ways by which ranks
 * come to be that need no more than this: a group of threads, an MPI
 * communicator. 04_allreduce_oob.c has the third: processes that find each
 * other by a means of your own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacit/comm.h"
#ifdef TAC_HAVE_MPI
#include "tacit/comm_mpi.h"
#endif

enum { N = 1000003, MAX_RANKS = 64 };

/* Every rank has an array; afterwards every rank has the arrays' sum. */
static tac_status add_up(tac_comm *comm)
{
    const int rank = tac_comm_rank(comm), size = tac_comm_size(comm);
    tac_req *req = NULL;
    float *x = malloc(sizeof(float) * N);
    if (!x) return TAC_ERR_NOMEM;
    for (int i = 0; i < N; i++) x[i] = (float)(rank + i % 7);

    /* In place. The call returns at once: the array is the library's until the
     * wait, and in between the rank may compute something else. */
    tac_status s =
        tac_allreduce(comm, NULL, x, N, TAC_F32, TAC_SUM, NULL, &req);
    if (s >= 0) s = tac_wait(req, 0);

    int wrong = 0;
    for (int i = 0; s >= 0 && i < N; i++)
        wrong += x[i] != (float)(size * (size - 1) / 2 + size * (i % 7));
    if (s >= 0 && rank == 0)
        printf("%d ranks, %d elements, transport %s (%s): %d wrong\n", size, N,
               tac_comm_transport_name(comm), tac_comm_transport_why(comm),
               wrong);
    free(x); /* after the wait, so it is ours again */
    return s < 0 ? s : wrong ? TAC_ERR_INTERNAL : TAC_OK;
}

/* ---- ranks that are threads ---------------------------------------------- */

typedef struct member {
    pthread_t thread;
    tac_thread_group *group;
    int rank, size;
    tac_status status;
} member;

static void *run_member(void *arg)
{
    member *m = arg;
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    config.rank = m->rank;
    config.world = config.local_ranks = m->size;
    m->status = tac_context_create(&config, &ctx);
    if (m->status >= 0)
        m->status =
            tac_comm_create_threads(ctx, m->group, m->rank, NULL, &comm);
    if (m->status >= 0) m->status = add_up(comm);
    tac_comm_destroy(comm); /* NULL is legal */
    tac_context_destroy(ctx);
    return NULL;
}

static int run_threads(int size)
{
    member all[MAX_RANKS];
    tac_thread_group *group = NULL;
    int failed = 0;
    if (tac_thread_group_create(size, &group) < 0) return 1;
    for (int r = 0; r < size; r++) {
        all[r] = (member){.group = group, .rank = r, .size = size};
        if (pthread_create(&all[r].thread, NULL, run_member, &all[r]) != 0)
            exit(1); /* the others would wait for it */
    }
    for (int r = 0; r < size; r++) {
        pthread_join(all[r].thread, NULL);
        failed |= all[r].status < 0; /* its message was printed */
    }
    tac_thread_group_destroy(group);
    return failed;
}

/* ---- ranks that are processes, with MPI ---------------------------------- */

#ifdef TAC_HAVE_MPI
static int run_mpi(int *size)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    MPI_Comm_size(MPI_COMM_WORLD, size);
    if (*size == 1) return 0; /* no launcher */
    MPI_Comm_rank(MPI_COMM_WORLD, &config.rank);
    config.world = *size;
    tac_status s = tac_context_create(&config, &ctx);
    if (s >= 0) s = tac_comm_create_mpi(MPI_COMM_WORLD, ctx, NULL, &comm);
    if (s >= 0) s = add_up(comm);
    tac_comm_destroy(comm); /* before MPI_Finalize */
    tac_context_destroy(ctx);
    return s < 0;
}
#endif

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2 || size < 1 || size > MAX_RANKS) {
        fprintf(stderr, "usage: %s [RANKS], 1 to %d\n", argv[0], MAX_RANKS);
        return 2;
    }
#ifdef TAC_HAVE_MPI
    if (argc == 1) {
        int processes = 1, level;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
        const int failed = run_mpi(&processes);
        MPI_Finalize();
        if (processes > 1) return failed;
    }
#endif
    return run_threads(size);
}
