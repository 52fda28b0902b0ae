/* A program that knows an installed tacit alone: two ranks, which are threads,
 * average a gradient each step, and with TRY_LOCALSGD their parameters. Prints
 * "ok" and the version. */
#include <pthread.h>
#include <stdio.h>

#include <tacit/reducer.h>
#ifdef TRY_LOCALSGD
#include <tacit/localsgd.h>
#endif
#include <tacit/version.h>

static tac_thread_group *group;

static tac_status average(tac_comm *comm)
{
    float gradient[3] = {1, 2, 3};
    float *const grads[] = {gradient};
    const size_t counts[] = {3};
    tac_reducer *r = NULL;
    gradient[0] = (float)tac_comm_rank(comm);
    TAC_TRY(tac_reducer_create_arrays(comm, grads, counts, 1, &r));
    TAC_TRY(tac_reducer_begin(r, 1, 1.0));
    TAC_TRY(tac_reducer_ready(r, 0, NULL));
    TAC_TRY(tac_reducer_finish(r, 10000));
    tac_reducer_destroy(r);
    return gradient[0] == 0.5f && gradient[2] == 3 ? TAC_OK : TAC_ERR_INTERNAL;
}

static tac_status add_up(tac_comm *comm)
{
    float x = (float)(1 + tac_comm_rank(comm)), sum = -1;
    tac_req *req = NULL;
    TAC_TRY(tac_allreduce(comm, &x, &sum, 1, TAC_F32, TAC_SUM, NULL, &req));
    TAC_TRY(tac_wait(req, 10000));
    return sum == 3 ? TAC_OK : TAC_ERR_INTERNAL;
}

static tac_status average_now_and_then(tac_comm *comm)
{
#ifdef TRY_LOCALSGD
    float x = 1;
    tac_localsgd *l = NULL;
    TAC_TRY(tac_localsgd_create_array(comm, "local", 2, &x, 1, &l));
    x = (float)tac_comm_rank(comm);
    for (int i = 0; i < 2; i++) {
        const tac_local_step step = {.lr = 0.1};
        TAC_TRY(tac_localsgd_step(l, &step, NULL));
    }
    TAC_TRY(tac_localsgd_finish(l));
    tac_localsgd_destroy(l);
    return x == 0.5f ? TAC_OK : TAC_ERR_INTERNAL;
#else
    return tac_comm_size(comm) == 2 ? TAC_OK : TAC_ERR_INTERNAL;
#endif
}

static void *rank_main(void *arg)
{
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_status s = tac_context_create(NULL, &ctx);
    if (!s) s = tac_comm_create_threads(ctx, group, *(int *)arg, NULL, &comm);
    if (!s) s = add_up(comm);
    if (!s) s = average(comm);
    if (!s) s = average_now_and_then(comm);
    tac_comm_destroy(comm);
    tac_context_destroy(ctx);
    return s ? arg : NULL;
}

int main(void)
{
    int ranks[2] = {0, 1}, bad = 0;
    pthread_t threads[2];
    if (tac_thread_group_create(2, &group)) return 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, rank_main, &ranks[i]);
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        bad += result != NULL;
    }
    tac_thread_group_destroy(group);
    if (!bad) printf("ok %s\n", tac_version());
    return bad != 0;
}
