/* localsgd_arrays.c: the constructors for plain arrays:
 * tac_reducer_create_arrays and tac_localsgd_create_array. Means are those that
 * a loop finds; sizes 0 and 1; a gradient that is forgotten; what can't be is
 * refused by all ranks. */
#include <stdlib.h>

#include "comm_threads.h"
#include "tacit/localsgd.h"
#include "tacit/reducer.h"

enum { ARRAYS = 4 };
static const size_t counts[ARRAYS] = {3, 0, 1, 70001};

/* Small integers: their means over 1, 2 and 4 ranks are exact. */
static float value(int rank, size_t array, size_t i, int step)
{
    return (float)((rank + 1) * (int)(i % 13) + (int)array * 4 + step * 8);
}

static float mean(int size, size_t array, size_t i, int step)
{
    float sum = 0;
    for (int r = 0; r < size; r++) sum += value(r, array, i, step);
    return sum / (float)size;
}

static void check_step(tac_comm *comm, tac_reducer *r, float *const *grads,
                       int step)
{
    const int rank = tac_comm_rank(comm), size = tac_comm_size(comm);
    CHECK_OK(tac_reducer_begin(r, 1, 1.0));
    for (size_t a = ARRAYS; a-- > 0;) {
        for (size_t i = 0; i < counts[a]; i++)
            grads[a][i] = value(rank, a, i, step);
        CHECK_OK(tac_reducer_ready(r, a, NULL));
    }
    CHECK_OK(tac_reducer_finish(r, 10000));
    size_t wrong = 0;
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < counts[a]; i++)
            wrong += grads[a][i] != mean(size, a, i, step);
    CHECK_EQ_U64(wrong, 0);
}

static void average_gradients(tac_comm *comm, void *arg)
{
    float *grads[ARRAYS];
    tac_reducer *r = NULL;
    (void)arg;
    for (size_t a = 0; a < ARRAYS; a++)
        grads[a] = malloc((counts[a] + 1) * sizeof(float));
    if (CHECK_OK(tac_reducer_create_arrays(comm, grads, counts, ARRAYS, &r))) {
        for (int step = 0; step < 3; step++) check_step(comm, r, grads, step);
        /* One is forgotten: all ranks are told, and can go on. */
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        CHECK_OK(tac_reducer_ready(r, 3, NULL));
        CHECK_STATUS(tac_reducer_finish(r, 10000), TAC_ERR_INCOMPLETE);
        check_step(comm, r, grads, 7);
    }
    tac_reducer_destroy(r);
    for (size_t a = 0; a < ARRAYS; a++) free(grads[a]);
}

static void refuse_arrays(tac_comm *comm, void *arg)
{
    float x[8] = {0};
    float *const grads[1] = {x};
    size_t count = 8;
    tac_reducer *r = NULL;
    (void)arg;
    CHECK_STATUS(tac_reducer_create_arrays(NULL, grads, &count, 1, &r),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_reducer_create_arrays(comm, NULL, &count, 1, &r),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_reducer_create_arrays(comm, grads, NULL, 1, &r),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_reducer_create_arrays(comm, grads, &count, 1, NULL),
                 TAC_ERR_ARG);
    if (tac_comm_size(comm) > 1) {
        count = tac_comm_rank(comm) == 1 ? 7 : 8;
        CHECK_STATUS(tac_reducer_create_arrays(comm, grads, &count, 1, &r),
                     TAC_ERR_MISMATCH);
    }
    CHECK(r == NULL);
    /* No arrays at all are a reducer with nothing to do. */
    if (CHECK_OK(tac_reducer_create_arrays(comm, NULL, NULL, 0, &r))) {
        CHECK_OK(tac_reducer_begin(r, 1, 1.0));
        CHECK_OK(tac_reducer_finish(r, 10000));
    }
    tac_reducer_destroy(r);
}

static void average_parameters(tac_comm *comm, void *arg)
{
    enum { N = 1001, H = 3, STEPS = 7 };
    const int rank = tac_comm_rank(comm), size = tac_comm_size(comm);
    float x[N];
    tac_localsgd *l = NULL;
    (void)arg;
    for (int i = 0; i < N; i++) x[i] = (float)(i + 100 * rank);
    if (!CHECK_OK(tac_localsgd_create_array(comm, "local", H, x, N, &l)))
        return;
    CHECK_EQ_F64(x[5], 5); /* rank 0's */
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < N; i++) x[i] = value(rank, 1, (size_t)i, step);
        CHECK_OK(tac_localsgd_step(l, &(tac_local_step){.lr = 1}, NULL));
        const int due = step % H == 0;
        CHECK_EQ_F64(x[12],
                     due ? mean(size, 1, 12, step) : value(rank, 1, 12, step));
    }
    CHECK_OK(tac_localsgd_finish(l));
    CHECK_EQ_F64(x[12], mean(size, 1, 12, STEPS));
    tac_localsgd_destroy(l);
}

static void refuse_parameters(tac_comm *comm, void *arg)
{
    float x = 3;
    tac_localsgd *l = NULL;
    (void)arg;
    CHECK_STATUS(tac_localsgd_create_array(comm, "nonsense", 2, &x, 1, &l),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_localsgd_create_array(comm, "local", 0, &x, 1, &l),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_localsgd_create_array(comm, "local", 2, NULL, 1, &l),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_localsgd_create_array(comm, "local", 2, &x, 1, NULL),
                 TAC_ERR_ARG);
    CHECK_STATUS(tac_localsgd_create_array(NULL, "local", 2, &x, 1, &l),
                 TAC_ERR_ARG);
    CHECK(l == NULL);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        with_threads(sizes[i], NULL, average_gradients, NULL);
        with_threads(sizes[i], NULL, refuse_arrays, NULL);
        with_threads(sizes[i], NULL, average_parameters, NULL);
        with_threads(sizes[i], NULL, refuse_parameters, NULL);
    }
    return tac_check_summary();
}
