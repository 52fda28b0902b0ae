/* N ranks as N threads of this process: no launcher, no MPI. */
#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct thread_rank {
    const tac__world *world;
    tac_thread_group *group;
    const tac_data *data;
    pthread_t thread;
    int rank, size, exit_code;
} thread_rank;

static void run_rank(thread_rank *t)
{
    const tac__world *w = t->world;
    const tac_comm_config comm_config = tac__world_comm_config(w->config);
    tac__capture capture;
    const tac_context_config cc =
        tac__world_context_config(w, &capture, t->rank, t->size, t->size);
    tac__rank self = {.options = w->options,
                      .config = *w->config,
                      .shared_data = t->data,
                      .stop = w->stop,
                      .catch_signals = w->catch_signals,
                      .capture = &capture,
                      .local_ranks = t->size,
                      .cpus = tac__launch_cpus(),
                      .rank = t->rank,
                      .world = t->size};
    tac_status s = tac_context_create(&cc, &self.ctx);

    if (s >= 0)
        s = tac_comm_create_threads(self.ctx, t->group, t->rank, &comm_config,
                                    &self.comm);
    if (s < 0) {
        if (t->rank == 0) tac__capture_flush(&capture);
        t->exit_code = tac__exit_code(s);
    } else {
        w->main(&self);
        t->exit_code = self.exit_code;
    }
    tac_comm_destroy(self.comm);
    tac_context_destroy(self.ctx);
}

static void *thread_main(void *arg)
{
    run_rank(arg);
    return NULL;
}

/* Starts ranks 1.., runs rank 0 here, waits for all. */
static int run_all(thread_rank *ranks, int size)
{
    int started = 1, code;

    for (; started < size; started++)
        if (pthread_create(&ranks[started].thread, NULL, thread_main,
                           &ranks[started]) != 0)
            break;
    if (started < size) {
        fprintf(stderr,
                "ddp_train: cannot start thread rank %d of %d; use fewer "
                "--ranks\n",
                started, size);
        exit(1);
    }
    run_rank(&ranks[0]);
    code = ranks[0].exit_code;
    for (int r = 1; r < size; r++) {
        pthread_join(ranks[r].thread, NULL);
        if (code == 0) code = ranks[r].exit_code;
    }
    return code;
}

/* All ranks read the same images, so they are loaded once. */
static tac_status open_data(const tac__world *w, tac_data *data)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    tac_status s;

    dc.dir = w->config->data_dir;
    cc.level = TAC_LOG_ERROR;
    TAC_TRY(tac_context_create(&cc, &ctx));
    s = tac_data_open(ctx, w->config->data, &dc, data);
    tac_context_destroy(ctx);
    return s;
}

int tac__world_threads(const tac__world *w)
{
    const int size = w->config->ranks > 0 ? (int)w->config->ranks : 1;
    thread_rank *ranks;
    tac_thread_group *group = NULL;
    tac_data data = {NULL, NULL, NULL};
    tac_status s;
    int code;

    if (w->parsed < 0) {
        fprintf(stderr, "ddp_train: %s\n", w->parse_error);
        return tac__exit_code(w->parsed);
    }
    if (w->action != TAC_ACTION_RUN) {
        w->print(w->options, w->action);
        return 0;
    }
    s = open_data(w, &data);
    if (s < 0) return tac__exit_code(s);
    ranks = calloc((size_t)size, sizeof *ranks);
    if (!ranks || tac_thread_group_create(size, &group) < 0) {
        fprintf(stderr, "ddp_train: no memory for %d ranks\n", size);
        free(ranks);
        tac_data_close(&data);
        return 1;
    }
    for (int r = 0; r < size; r++)
        ranks[r] = (thread_rank){
            .world = w, .group = group, .data = &data, .rank = r, .size = size};
    code = run_all(ranks, size);
    tac_thread_group_destroy(group);
    free(ranks);
    tac_data_close(&data);
    return code;
}
