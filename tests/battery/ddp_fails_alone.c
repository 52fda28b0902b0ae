/* ddp_fails_alone.c: one rank's data can't be read any more in the middle of
 * training: the others stop at once, with its reason, instead of waiting for
 * their timeout, whether they average gradients or, now and then, parameters.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "tac_check.h"
#include "tacit/clock.h"
#include "tacit/data.h"
#include "tacit/train_config.h"
#include "tacit/trainer.h"

enum { RANKS = 4, SAMPLES = 600, GUILTY = 1, GATHERS = 10 };

/* Small made-up images; those of the guilty rank end. */
typedef struct images {
    _Atomic int left; /* gathers; negative: for ever */
} images;

static tac_status gather(void *impl, tac_context *ctx, size_t n,
                         const uint32_t *index, float *x, int32_t *y)
{
    images *im = impl;
    if (atomic_load(&im->left) >= 0 && atomic_fetch_sub(&im->left, 1) <= 0)
        return tac_fail(ctx, TAC_ERR_DATA, "the disk has gone");
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 784; k++)
            x[i * 784 + k] = (float)((index[i] + k) % 7) / 7.0f;
        y[i] = (int32_t)(index[i] % 10);
    }
    return TAC_OK;
}

static void drop_line(void *arg, tac_log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

typedef struct job {
    tac_thread_group *group;
    const tac_train_config *config;
    int rank;
    tac_status status;
    double seconds;
    char text[512];
} job;

static tac_dataset *open_images(tac_context *ctx, images *im)
{
    static const tac_dataset_ops ops = {sizeof ops, "images", gather,
                                        NULL,       NULL,     NULL};
    const tac_dataset_info info = {SAMPLES, 28, 28, 1, 10};
    tac_dataset *set = NULL;
    CHECK_OK(tac_dataset_create(ctx, &ops, im, &info, &set));
    return set;
}

static void *rank_main(void *arg)
{
    job *j = arg;
    images endless = {-1}, ends = {j->rank == GUILTY ? GATHERS : -1};
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_comm *comm = NULL;
    tac_trainer *trainer = NULL;
    cc.rank = j->rank;
    cc.world = cc.local_ranks = RANKS;
    cc.threads = 1;
    cc.log = drop_line;
    config.timeout_ms = 60000;
    CHECK_OK(tac_context_create(&cc, &ctx));
    if (!CHECK_OK(
            tac_comm_create_threads(ctx, j->group, j->rank, &config, &comm)))
        return NULL;
    const tac_data data = {open_images(ctx, &ends), open_images(ctx, &endless),
                           open_images(ctx, &endless)};
    const tac_trainer_config tc = {.struct_size = sizeof tc,
                                   .config = j->config,
                                   .train_dataset = data.train,
                                   .eval_dataset = data.val,
                                   .test_dataset = data.test};
    CHECK_OK(tac_trainer_create(ctx, comm, &tc, &trainer));
    const double from = tac_clock_s();
    j->status = tac_trainer_train(trainer, NULL, NULL);
    j->seconds = tac_clock_s() - from;
    tac_comm_error(comm, j->text, sizeof j->text);
    tac_trainer_destroy(trainer);
    tac_comm_destroy(comm);
    tac_dataset_destroy(data.train);
    tac_dataset_destroy(data.val);
    tac_dataset_destroy(data.test);
    tac_context_destroy(ctx);
    return NULL;
}

static void fails(tac_context *ctx, const char *sync, int64_t worker_size,
                  int64_t every)
{
    tac_train_config config;
    tac_thread_group *group = NULL;
    pthread_t thread[RANKS];
    job j[RANKS];

    (void)ctx;
    CHECK_OK(tac_train_config_defaults(&config));
    config.model = "mlp:8";
    config.batch = 10;
    config.steps = 200;
    config.quiet = 1;
    config.sync = sync;
    config.worker_size = worker_size;
    config.sync_every = every;
    CHECK_OK(tac_thread_group_create(RANKS, &group));
    for (int r = 0; r < RANKS; r++) {
        j[r] = (job){group, &config, r, TAC_OK, 0, ""};
        CHECK(pthread_create(&thread[r], NULL, rank_main, &j[r]) == 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
        CHECK_MSG(j[r].seconds < 20, "%s: rank %d took %.1f s", sync, r,
                  j[r].seconds);
        CHECK_MSG(strstr(j[r].text, "rank 1 aborted") &&
                      strstr(j[r].text, "the disk has gone"),
                  "%s: rank %d: \"%s\"", sync, r, j[r].text);
        CHECK_EQ(j[r].status, r == GUILTY ? TAC_ERR_DATA : TAC_ERR_ABORTED);
    }
    tac_thread_group_destroy(group);
}

/* In local modes the others wait in communicators of their own: those of the
 * guilty one's worker for it, and the other workers' first ranks for its. */
int main(void)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;

    cc.log = drop_line;
    CHECK_OK(tac_context_create(&cc, &ctx));
    fails(ctx, "grad", 1, 0);
    fails(ctx, "local", 1, 16);
    fails(ctx, "diloco", 2, 1);
    fails(ctx, "diloco", 4, 5);
    fails(ctx, "streaming", 1, 4);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
