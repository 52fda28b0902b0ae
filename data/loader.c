/* loader.c: hand-over of batches from the filling thread to the caller.
 *
 * A ring of prefetch + 1 slots: `ready` filled ones from `head` on, before
 * them at most one that the caller holds. The thread fills the slot after the
 * ready ones whenever there is room. One mutex, two conditions; the thread
 * sleeps when it has nothing to do. Without prefetch the ring has one slot and
 * the caller fills it. */
#include "tacit/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "loader_impl.h"

struct tac_loader {
    tac_context *ctx;
    tac_sampler *sampler;
    tac_loader_config config;
    tac__loader_fill fill;
    tac__loader_slot *slots;
    size_t slot_count;

    int threaded;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all that follows, and fill's cursor */
    pthread_cond_t work;   /* for the thread: room, start, quit */
    pthread_cond_t news;   /* for the caller: a batch, the end, idle */
    size_t head, ready;
    int held;    /* the slot before head is the caller's */
    int active;  /* an epoch runs and slots may be filled */
    int filling; /* the thread is in a slot, without the mutex */
    int ended;   /* nothing left to fill */
    int quit;
    int started; /* an epoch was started since creation or the last stop */
    tac_status status; /* first failure of the epoch */
};

static size_t ring_add(const tac_loader *l, size_t i, size_t n)
{
    return (i + n) % l->slot_count;
}

static int has_room(const tac_loader *l)
{
    return l->active && !l->ended && l->status == TAC_OK &&
           l->ready + (size_t)l->held < l->slot_count;
}

/* Books the outcome of a filled slot. The mutex is held (or no thread). */
static void account(tac_loader *l, tac_status status, int end)
{
    if (status < 0)
        l->status = status;
    else if (end)
        l->ended = 1;
    else
        ++l->ready;
}

static void fill_one(tac_loader *l)
{
    tac__loader_slot *slot = &l->slots[ring_add(l, l->head, l->ready)];
    int end = 0;
    l->filling = 1;
    if (l->threaded) pthread_mutex_unlock(&l->mutex);
    const tac_status status = tac__loader_fill_slot(&l->fill, slot, &end);
    if (l->threaded) pthread_mutex_lock(&l->mutex);
    l->filling = 0;
    account(l, status, end);
}

static void *thread_main(void *arg)
{
    tac_loader *l = arg;
    pthread_mutex_lock(&l->mutex);
    while (!l->quit) {
        if (has_room(l)) {
            fill_one(l);
            pthread_cond_signal(&l->news);
        } else {
            pthread_cond_wait(&l->work, &l->mutex);
        }
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* The program's signals are for its own threads. */
static int start_thread(tac_loader *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&l->thread, NULL, thread_main, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void init_sync(tac_loader *l)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->news, &attr);
    pthread_condattr_destroy(&attr);
}

static void destroy_sync(tac_loader *l)
{
    pthread_cond_destroy(&l->news);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->mutex);
}

static tac_status check_create(tac_context *ctx, const tac_dataset *set,
                               const tac_sampler *sampler,
                               const tac_loader_config *config)
{
    if (!set || !sampler || !config)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_loader_create: set, sampler and config are "
                        "needed");
    if (config->batch == 0)
        return tac_fail(ctx, TAC_ERR_ARG, "loader: batch must be at least 1");
    if (config->prefetch > 1024)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "loader: prefetch %zu is over 1024 batches",
                        config->prefetch);
    const size_t samples = tac_dataset_get_info(set).count;
    if (samples != tac_sampler_count(sampler))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "loader: dataset %s has %zu samples, its sampler %zu",
                        tac_dataset_name(set), samples,
                        tac_sampler_count(sampler));
    return TAC_OK;
}

static void destroy_slots(tac_loader *l)
{
    for (size_t i = 0; l->slots && i < l->slot_count; ++i)
        tac__loader_slot_destroy(&l->slots[i]);
    free(l->slots);
}

static tac_status create_slots(tac_loader *l, const tac_dataset *set)
{
    l->slot_count = l->config.prefetch + 1;
    l->slots = calloc(l->slot_count, sizeof(*l->slots));
    if (!l->slots)
        return tac_fail(l->ctx, TAC_ERR_NOMEM, "no memory for a loader");
    for (size_t i = 0; i < l->slot_count; ++i)
        TAC_TRY(tac__loader_slot_create(l->ctx, l->config.batch,
                                        tac_dataset_sample_size(set),
                                        &l->slots[i]));
    return TAC_OK;
}

size_t tac_loader_predict(const tac_dataset *set,
                          const tac_loader_config *config)
{
    const size_t slot =
        tac__loader_slot_bytes(config->batch, tac_dataset_sample_size(set));
    size_t all;
    return __builtin_mul_overflow(slot, config->prefetch + 1, &all) ? SIZE_MAX
                                                                    : all;
}

tac_status tac_loader_create(tac_context *ctx, tac_dataset *set,
                             tac_sampler *sampler,
                             const tac_loader_config *config, tac_loader **out)
{
    TAC_TRY(check_create(ctx, set, sampler, config));
    tac_loader *l = calloc(1, sizeof(*l));
    if (!l) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a loader");
    l->ctx = ctx;
    l->sampler = sampler;
    l->config = *config;
    l->fill = (tac__loader_fill){
        ctx, set, sampler, config->batch, config->drop_partial, 0, 0};
    init_sync(l);
    tac_status status = create_slots(l, set);
    if (status < 0) goto fail_slots;
    l->threaded = config->prefetch > 0;
    if (l->threaded && start_thread(l) != 0) {
        status = tac_fail(ctx, TAC_ERR_NOMEM,
                          "loader: can't start a thread; use prefetch 0");
        goto fail_slots;
    }
    tac_dataset_retain(set);
    *out = l;
    return TAC_OK;

fail_slots:
    destroy_slots(l);
    destroy_sync(l);
    free(l);
    return status;
}

void tac_loader_destroy(tac_loader *l)
{
    if (!l) return;
    if (l->threaded) {
        pthread_mutex_lock(&l->mutex);
        l->quit = 1;
        pthread_cond_signal(&l->work);
        pthread_mutex_unlock(&l->mutex);
        pthread_join(l->thread, NULL);
    }
    destroy_slots(l);
    destroy_sync(l);
    tac_dataset_destroy(l->fill.set);
    free(l);
}

size_t tac_loader_batches(const tac_loader *l)
{
    const size_t n = tac_sampler_length(l->sampler), b = l->config.batch;
    return n / b + (!l->config.drop_partial && n % b != 0);
}

/* The thread leaves its slot within one gather. */
static void go_idle(tac_loader *l)
{
    l->active = 0;
    while (l->filling) pthread_cond_wait(&l->news, &l->mutex);
    l->head = l->ready = 0;
    l->held = l->ended = l->started = 0;
    l->status = TAC_OK;
}

void tac_loader_stop(tac_loader *l)
{
    pthread_mutex_lock(&l->mutex);
    go_idle(l);
    pthread_mutex_unlock(&l->mutex);
}

tac_status tac_loader_resume(tac_loader *l)
{
    pthread_mutex_lock(&l->mutex);
    go_idle(l);
    const size_t step = tac_sampler_replicas(l->sampler) * l->config.batch;
    l->fill.position = tac_sampler_position(l->sampler);
    l->fill.step = l->fill.position / step;
    l->active = l->started = 1;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->mutex);
    return TAC_OK;
}

tac_status tac_loader_start_epoch(tac_loader *l, uint64_t epoch)
{
    tac_loader_stop(l);
    tac_sampler_set_epoch(l->sampler, epoch);
    return tac_loader_resume(l);
}

static struct timespec deadline_after_ms(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        ++t.tv_sec;
    }
    return t;
}

/* Until a batch is ready, the epoch has ended or filling has failed. */
static tac_status wait_for_news(tac_loader *l)
{
    if (!l->threaded) {
        if (has_room(l)) fill_one(l);
        return TAC_OK;
    }
    pthread_cond_signal(&l->work);
    const struct timespec end = deadline_after_ms(l->config.timeout_ms);
    while (!l->ready && !l->ended && l->status == TAC_OK) {
        if (pthread_cond_timedwait(&l->news, &l->mutex, &end) == ETIMEDOUT &&
            !l->ready && !l->ended && l->status == TAC_OK)
            return tac_fail(l->ctx, TAC_ERR_TIMEOUT,
                            "loader: no batch of dataset %s within %d ms",
                            tac_dataset_name(l->fill.set),
                            l->config.timeout_ms);
    }
    return TAC_OK;
}

static const tac_batch *take(tac_loader *l)
{
    tac__loader_slot *slot = &l->slots[l->head];
    l->head = ring_add(l, l->head, 1);
    --l->ready;
    l->held = 1;
    tac_sampler_seek(l->sampler, slot->next_position);
    return &slot->batch;
}

tac_status tac_loader_next(tac_loader *l, const tac_batch **out)
{
    pthread_mutex_lock(&l->mutex);
    tac_status status = TAC_OK;
    l->held = 0; /* the batch handed out before may be overwritten */
    if (!l->started)
        status = tac_fail(l->ctx, TAC_ERR_STATE,
                          "tac_loader_next: call tac_loader_start_epoch or "
                          "tac_loader_resume first");
    else
        status = wait_for_news(l);
    if (status >= 0) {
        if (l->ready)
            *out = take(l);
        else if (l->status < 0)
            status = l->status;
        else
            *out = NULL;
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}
