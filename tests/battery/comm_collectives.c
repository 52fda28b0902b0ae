/* comm_collectives.c: the suite of tests/comm_suite.h with ranks that are
 * threads: 1, 2, 3, 4, 7, 8; other chunk sizes and a progress thread give the
 * same bits. */
#include "comm_suite.h"
#include "comm_threads.h"

static void whole(tac_comm *comm, void *arg)
{
    uint64_t *bits = arg;
    const int brief = TESTS_SLOW && tac_comm_size(comm) > 4;
    const uint64_t h = brief ? suite_run_brief(comm, 50)
                             : suite_run(comm, TESTS_SLOW ? 100 : 300);
    CHECK_EQ_STR(tac_comm_transport_name(comm),
                 tac_comm_size(comm) == 1 ? "self" : "thread");
    if (tac_comm_rank(comm) == 0) *bits = h;
}

static void bits_only(tac_comm *comm, void *arg)
{
    CHECK_EQ_U64(suite_run_bits(comm), *(const uint64_t *)arg);
}

static void same_bits(int p, uint64_t *bits)
{
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    config.staging_bytes = 4096; /* many chunks */
    with_threads(p, &config, bits_only, bits);
    config.staging_bytes = (size_t)1 << 22;
    with_threads(p, &config, bits_only, bits);
    config.progress = TAC_PROGRESS_THREAD;
    with_threads(p, &config, bits_only, bits);
    config.transport = "shm"; /* between threads it works as well */
    with_threads(p, &config, bits_only, bits);
}

/* With a progress thread a request completes without anybody's help. */
static void completes_alone(tac_comm *comm, void *arg)
{
    tac_req *req = NULL;
    int32_t x = 1;
    (void)arg;
    for (int i = 0; i < 50; i++) {
        x = 1;
        CHECK_OK(
            tac_allreduce(comm, NULL, &x, 1, TAC_I32, TAC_SUM, NULL, &req));
        if (i % 10 == 0)
            for (int k = 0; k < 2000 && !atomic_load(&req->done); k++)
                tac_clock_sleep_ns(1000000u);
        if (i % 10 == 0) CHECK(atomic_load(&req->done));
        CHECK_OK(tac_wait(req, 0));
        CHECK_EQ(x, tac_comm_size(comm));
    }
}

/* Two communicators of one rank, each driven by a thread of its own. */
static void *drive(void *p)
{
    tac_comm *comm = p;
    for (int i = 0; i < 100; i++) {
        tac_req *req = NULL;
        float x[100];
        for (int k = 0; k < 100; k++) x[k] = (float)(i + k);
        CHECK_OK(finish(
            tac_allreduce(comm, NULL, x, 100, TAC_F32, TAC_SUM, NULL, &req),
            &req));
        CHECK_EQ_F64(x[99], (float)(i + 99) * (float)tac_comm_size(comm));
    }
    return NULL;
}

static void two_threads(tac_comm *comm, void *arg)
{
    pthread_t other;
    tac_comm *child = NULL;
    (void)arg;
    if (!CHECK_OK(tac_comm_split(comm, 0, 0, &child))) return;
    CHECK(pthread_create(&other, NULL, drive, child) == 0);
    drive(comm);
    pthread_join(other, NULL);
    tac_comm_destroy(child);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 4, 7, 8};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    for (int i = 0; i < 6; i++) {
        uint64_t bits = 0;
        with_threads(sizes[i], NULL, whole, &bits);
        if (sizes[i] < 7) same_bits(sizes[i], &bits);
        printf("%d ranks: %ld failed so far\n", sizes[i], tac_check_failed());
    }
    with_threads(3, NULL, two_threads, NULL);
    config.progress = TAC_PROGRESS_THREAD;
    with_threads(4, &config, completes_alone, NULL);
    with_threads(3, &config, two_threads, NULL);
    return tac_check_summary();
}
