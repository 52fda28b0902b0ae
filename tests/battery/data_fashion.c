/* The real Fashion-MNIST, where it is installed: sizes, labels, normalisation
 * and a rank-by-rank pass in which every image comes once. */
#include "tac_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_files.h"
#include "tacit/data.h"
#include "tacit/loader.h"

/* All samples of a part: count by class, mean and mean square of pixels. */
static void scan(tac_context *ctx, tac_dataset *set, size_t classes[10],
                 double *mean, double *square)
{
    enum { CHUNK = 100 };
    static float x[CHUNK * 784];
    int32_t y[CHUNK];
    uint32_t index[CHUNK];
    const size_t n = tac_dataset_get_info(set).count;
    double sum = 0, squares = 0;
    for (uint32_t at = 0; at < n; at += CHUNK) {
        for (uint32_t i = 0; i < CHUNK; ++i) index[i] = at + i;
        if (!CHECK_OK(tac_dataset_gather(set, ctx, CHUNK, index, x, y))) return;
        for (int i = 0; i < CHUNK; ++i)
            if (CHECK(y[i] >= 0 && y[i] < 10)) ++classes[y[i]];
        for (int i = 0; i < CHUNK * 784; ++i) {
            sum += x[i];
            squares += (double)x[i] * x[i];
        }
    }
    *mean = sum / ((double)n * 784);
    *square = squares / ((double)n * 784);
}

static void check_parts(tac_context *ctx, const tac_data *d)
{
    const tac_dataset_info info = tac_dataset_get_info(d->train);
    CHECK_EQ(info.count, 55000);
    CHECK_EQ(info.h * 100 + info.w, 2828);
    CHECK_EQ(info.c, 1);
    CHECK_EQ(info.classes, 10);
    CHECK_EQ(tac_dataset_get_info(d->val).count, 5000);
    CHECK_EQ(tac_dataset_get_info(d->test).count, 10000);
    size_t classes[10] = {0}, test[10] = {0};
    double m1 = 0, s1 = 0, m2 = 0, s2 = 0, m3 = 0, s3 = 0;
    scan(ctx, d->train, classes, &m1, &s1);
    scan(ctx, d->val, classes, &m2, &s2);
    scan(ctx, d->test, test, &m3, &s3);
    for (int k = 0; k < 10; ++k) {
        CHECK_EQ(classes[k], 6000);
        CHECK_EQ(test[k], 1000);
    }
    const double mean = (11 * m1 + m2) / 12;
    CHECK_NEAR(mean, 0, 1e-3);
    CHECK_NEAR((11 * s1 + s2) / 12 - mean * mean, 1, 1e-3);
}

/* Three ranks over the test images: each image is valid once. */
static void check_test_pass(tac_context *ctx, const tac_data *d)
{
    size_t valid = 0;
    unsigned char *seen = calloc(10000, 1);
    for (size_t rank = 0; rank < 3; ++rank) {
        tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;
        tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
        tac_sampler *sampler = NULL;
        tac_loader *loader = NULL;
        sc.count = 10000;
        sc.replicas = 3;
        sc.rank = rank;
        lc.batch = 128;
        CHECK_OK(tac_sampler_create(ctx, &sc, &sampler));
        CHECK_OK(tac_loader_create(ctx, d->test, sampler, &lc, &loader));
        CHECK_OK(tac_loader_start_epoch(loader, 0));
        for (;;) {
            const tac_batch *b;
            if (!CHECK_OK(tac_loader_next(loader, &b)) || !b) break;
            valid += b->valid_count;
            for (size_t i = 0; i < b->count; ++i)
                if (b->valid[i]) ++seen[b->index[i]];
        }
        tac_loader_destroy(loader);
        tac_sampler_destroy(sampler);
    }
    CHECK_EQ(valid, 10000);
    size_t once = 0;
    for (int i = 0; i < 10000; ++i) once += seen[i] == 1;
    CHECK_EQ(once, 10000);
    free(seen);
}

int main(void)
{
    if (access(TAC_FASHION_MNIST_DIR, F_OK) != 0)
        return tac_check_skip("no " TAC_FASHION_MNIST_DIR
                              " (apt install dataset-fashion-mnist)");
    tac_context *ctx = data_context();
    tac_data d, same;
    if (CHECK_OK(tac_data_open(ctx, "fashion-mnist", NULL, &d))) {
        check_parts(ctx, &d);
        check_test_pass(ctx, &d);
        CHECK_OK(tac_data_open(ctx, "idx:" TAC_FASHION_MNIST_DIR, NULL, &same));
        CHECK_EQ(tac_dataset_get_info(same.train).count, 55000);
        tac_data_close(&same);
        tac_data_close(&d);
    }
    tac_context_destroy(ctx);
    return tac_check_summary();
}
