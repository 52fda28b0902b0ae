/* The order of samples survives: a sampler saved into a safetensors file in the
 * middle of an epoch and loaded into another deals the same samples from there
 * on, in this epoch and the next, whatever was prefetched when it was saved. */
#include "tac_check.h"

#include <stdint.h>
#include <stdlib.h>

#include "data_files.h"
#include "tacit/loader.h"
#include "tacit/safetensors.h"

enum { COUNT = 103, RANKS = 3, BATCH = 4, BATCHES = 9 };

static tac_context *ctx;
static char dir[64], path[128];

static tac_status gather(void *impl, tac_context *c, size_t n,
                         const uint32_t *index, float *x, int32_t *y)
{
    (void)impl;
    (void)c;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)index[i];
        y[i] = (int32_t)(index[i] % 5);
    }
    return TAC_OK;
}

static const tac_dataset_ops ops = {
    sizeof(tac_dataset_ops), "numbers", gather, NULL, NULL, NULL};

typedef struct dealer {
    tac_sampler *sampler;
    tac_loader *loader;
} dealer;

static dealer open_dealer(tac_dataset *set, size_t rank, size_t prefetch,
                          uint64_t seed)
{
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    dealer d = {NULL, NULL};

    sc.count = COUNT;
    sc.replicas = RANKS;
    sc.rank = rank;
    sc.seed = seed;
    lc.batch = BATCH;
    lc.prefetch = prefetch;
    CHECK_OK(tac_sampler_create(ctx, &sc, &d.sampler));
    CHECK_OK(tac_loader_create(ctx, set, d.sampler, &lc, &d.loader));
    return d;
}

static void close_dealer(dealer *d)
{
    tac_loader_destroy(d->loader);
    tac_sampler_destroy(d->sampler);
}

static void save(dealer *d)
{
    tac_safetensors_writer *w = NULL;

    CHECK_OK(tac_safetensors_writer_create(ctx, &w));
    const tac_state_visitor v = tac_safetensors_collect(w);
    CHECK_OK(tac_state_walk(&v, "sampler.", tac_sampler_walk, d->sampler));
    CHECK_OK(tac_safetensors_write(w, path, NULL));
    tac_safetensors_writer_destroy(w);
}

static tac_status walk(void *sampler, const tac_state_visitor *v)
{
    return tac_state_walk(v, "sampler.", tac_sampler_walk, sampler);
}

static void load(dealer *d)
{
    tac_safetensors *f = NULL;

    CHECK_OK(tac_safetensors_open(ctx, path, &f));
    CHECK_OK(tac_safetensors_load(f, walk, d->sampler, 0));
    tac_safetensors_close(f);
    CHECK_OK(tac_loader_resume(d->loader));
}

/* Both deal the same until the end of the epoch. */
static int same_until_end(dealer *a, dealer *b)
{
    const tac_batch *x = NULL, *y = NULL;
    int batches = 0;

    for (;;) {
        if (!CHECK_OK(tac_loader_next(a->loader, &x)) ||
            !CHECK_OK(tac_loader_next(b->loader, &y)))
            return batches;
        CHECK((x == NULL) == (y == NULL));
        if (!x || !y) return batches;
        CHECK_EQ_U64(y->step, x->step);
        CHECK_EQ_U64(y->count, x->count);
        CHECK_EQ_U64(y->step_count, x->step_count);
        if (y->count == x->count) {
            CHECK_EQ_MEM(y->index, x->index, x->count * sizeof *x->index);
            CHECK_EQ_MEM(y->position, x->position,
                         x->count * sizeof *x->position);
            CHECK_EQ_MEM(y->valid, x->valid, x->count);
        }
        batches++;
    }
}

/* Saves after `after` batches of `epoch` and goes on with both. */
static void compare(tac_dataset *set, uint64_t epoch, int after,
                    size_t prefetch)
{
    dealer a = open_dealer(set, 1, prefetch, 42);
    dealer b = open_dealer(set, 1, 2 - prefetch, 42 + (uint64_t)after);
    const tac_batch *batch = NULL;

    CHECK_OK(tac_loader_start_epoch(a.loader, epoch));
    for (int i = 0; i < after; i++) CHECK_OK(tac_loader_next(a.loader, &batch));
    save(&a);
    load(&b);
    CHECK_EQ(same_until_end(&a, &b), BATCHES - after);
    CHECK_OK(tac_loader_start_epoch(a.loader, epoch + 1));
    CHECK_OK(tac_loader_start_epoch(b.loader, epoch + 1));
    CHECK_EQ(same_until_end(&a, &b), BATCHES);
    close_dealer(&a);
    close_dealer(&b);
}

int main(void)
{
    const tac_dataset_info info = {COUNT, 1, 1, 1, 5};
    tac_dataset *set = NULL;
    static int nothing;

    ctx = data_context();
    data_make_dir(dir);
    data_path(path, dir, "sampler.safetensors");
    CHECK_OK(tac_dataset_create(ctx, &ops, &nothing, &info, &set));
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        for (int after = 0; after <= BATCHES; after++)
            compare(set, epoch, after, epoch % 3);
    tac_dataset_destroy(set);
    data_remove_dir(dir);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
