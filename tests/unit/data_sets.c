/* Datasets: the object, subsets, the split, synth, folders of IDX files, and
 * data by name. */
#include <criterion/criterion.h>
#include <math.h>

#include "data_files.h"
#include "tacit/data.h"
#include "tacit/hash.h"
#include "tacit/loader.h"
#include "tacit/rng.h"

static tac_context *ctx;
static char dir[64];

static void setup(void)
{
    ctx = data_context();
    data_make_dir(dir);
}

static void teardown(void)
{
    data_remove_dir(dir);
    tac_context_destroy(ctx);
}

TestSuite(data_sets, .init = setup, .fini = teardown);

/* A dataset of the test's own: sample i is {i, -i} with label i mod 3. */
typedef struct own {
    int freed;
    int fail_at;
} own;

static tac_status own_gather(void *impl, tac_context *c, size_t n,
                             const uint32_t *index, float *x, int32_t *y)
{
    const own *o = impl;
    for (size_t i = 0; i < n; ++i) {
        if ((int)index[i] == o->fail_at)
            return tac_fail(c, TAC_ERR_IO, "sample %u is unreadable", index[i]);
        x[2 * i] = (float)index[i];
        x[2 * i + 1] = -(float)index[i];
        y[i] = (int32_t)(index[i] % 3);
    }
    return TAC_OK;
}

static void own_destroy(void *impl)
{
    ++((own *)impl)->freed;
}

static size_t own_bytes(const void *impl)
{
    (void)impl;
    return 900;
}

static const tac_dataset_ops own_ops = {
    sizeof(tac_dataset_ops), "own", own_gather, own_destroy, own_bytes, NULL};

static tac_dataset *make_own(own *o, size_t count)
{
    const tac_dataset_info info = {count, 1, 1, 2, 3};
    tac_dataset *set = NULL;
    cr_assert_eq(tac_dataset_create(ctx, &own_ops, o, &info, &set), TAC_OK);
    return set;
}

/* Parts add up to the whole, and to their own indices. A dataset of before
 * there was `bytes` says nothing. */
Test(data_sets, bytes)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 9), *a = NULL, *b = NULL;
    cr_expect_eq(tac_dataset_bytes(set), 900);
    cr_assert_eq(tac_dataset_subset(ctx, set, 3, (uint32_t[]){1, 2, 3}, &a),
                 TAC_OK);
    cr_assert_eq(tac_dataset_subset(ctx, a, 2, (uint32_t[]){0, 2}, &b), TAC_OK);
    cr_expect_eq(tac_dataset_bytes(a), 3 * 4 + 300);
    cr_expect_eq(tac_dataset_bytes(b), 2 * 4 + 208);
    tac_dataset_destroy(b);
    tac_dataset_destroy(a);
    tac_dataset_destroy(set);

    const tac_dataset_ops old = {offsetof(tac_dataset_ops, bytes),
                                 "old",
                                 own_gather,
                                 NULL,
                                 own_bytes,
                                 NULL};
    const tac_dataset_info info = {9, 1, 1, 2, 3};
    cr_assert_eq(tac_dataset_create(ctx, &old, &o, &info, &set), TAC_OK);
    cr_expect_eq(tac_dataset_bytes(set), 0);
    tac_dataset_destroy(set);
}

/* As gathered, whether the dataset has a way of its own or not. */
static void expect_labels(tac_dataset *set)
{
    enum { N = 150 };
    const tac_dataset_info info = tac_dataset_get_info(set);
    float *x = malloc(N * tac_dataset_sample_size(set) * sizeof(*x));
    uint32_t index[N];
    int32_t want[N], got[N];
    for (uint32_t i = 0; i < N; ++i)
        index[i] = (uint32_t)((i * 7u) % info.count);
    memset(got, 0xA5, sizeof(got));
    cr_assert_eq(tac_dataset_gather(set, ctx, N, index, x, want), TAC_OK);
    cr_assert_eq(tac_dataset_labels(set, ctx, N, index, got), TAC_OK);
    cr_expect_eq(memcmp(want, got, sizeof(got)), 0);
    cr_expect_eq(tac_dataset_labels(set, ctx, 0, NULL, NULL), TAC_OK);
    index[3] = (uint32_t)info.count;
    cr_expect_eq(tac_dataset_labels(set, ctx, N, index, got), TAC_ERR_ARG);
    free(x);
}

Test(data_sets, labels_alone)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 9);
    tac_data d;
    expect_labels(set);
    tac_dataset_destroy(set);
    cr_assert_eq(tac_data_open(ctx, "synth:500", NULL, &d), TAC_OK);
    expect_labels(d.train);
    expect_labels(d.test);
    tac_data_close(&d);
}

Test(data_sets, what_a_loader_holds)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 9);
    tac_loader_config c = TAC_LOADER_CONFIG_INIT;
    c.batch = 100;
    c.prefetch = 0;
    const size_t one = tac_loader_predict(set, &c);
    /* two floats, label, valid, position and index a sample at the least */
    cr_expect(one >= 100 * (8 + 4 + 1 + 8 + 4) && one < 100 * 64);
    c.prefetch = 2;
    cr_expect_eq(tac_loader_predict(set, &c), 3 * one);
    c.batch = SIZE_MAX / 4;
    cr_expect_eq(tac_loader_predict(set, &c), SIZE_MAX);
    tac_dataset_destroy(set);
}

Test(data_sets, own_dataset)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 9);
    cr_expect_str_eq(tac_dataset_name(set), "own");
    cr_expect_eq(tac_dataset_get_info(set).count, 9);
    cr_expect_eq(tac_dataset_sample_size(set), 2);
    float x[4];
    int32_t y[2];
    cr_expect_eq(tac_dataset_gather(set, ctx, 2, (uint32_t[]){8, 0}, x, y),
                 TAC_OK);
    cr_expect(x[0] == 8 && x[1] == -8 && x[2] == 0 && y[0] == 2 && y[1] == 0);
    cr_expect_eq(tac_dataset_gather(set, ctx, 0, NULL, NULL, NULL), TAC_OK);
    cr_expect_eq(tac_dataset_gather(set, ctx, 2, (uint32_t[]){0, 9}, x, y),
                 TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "has 9 samples; sample 9"));
    tac_dataset_destroy(set);
    cr_expect_eq(o.freed, 1);
    tac_dataset_destroy(NULL);
}

Test(data_sets, subset_shares_its_parent)
{
    own o = {0, 5};
    tac_dataset *set = make_own(&o, 200), *sub = NULL, *subsub = NULL;
    uint32_t index[150];
    for (uint32_t i = 0; i < 150; ++i) index[i] = 199 - i;
    cr_assert_eq(tac_dataset_subset(ctx, set, 150, index, &sub), TAC_OK);
    cr_assert_eq(
        tac_dataset_subset(ctx, sub, 3, (uint32_t[]){0, 2, 149}, &subsub),
        TAC_OK);
    tac_dataset_destroy(set);
    tac_dataset_destroy(sub);
    cr_expect_eq(o.freed, 0, "the subset still needs its parent");
    float x[2];
    int32_t y[1];
    cr_expect_eq(tac_dataset_gather(subsub, ctx, 1, (uint32_t[]){2}, x, y),
                 TAC_OK);
    cr_expect(x[0] == 50 && y[0] == 50 % 3);
    tac_dataset_destroy(subsub);
    cr_expect_eq(o.freed, 1);
}

/* More than one chunk of the subset's translation. */
Test(data_sets, subset_gathers_many)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 300), *sub = NULL;
    uint32_t index[300], all[300];
    float x[600];
    int32_t y[300];
    for (uint32_t i = 0; i < 300; ++i) index[i] = i * 7 % 300, all[i] = i;
    cr_assert_eq(tac_dataset_subset(ctx, set, 300, index, &sub), TAC_OK);
    cr_expect_eq(tac_dataset_gather(sub, ctx, 300, all, x, y), TAC_OK);
    for (uint32_t i = 0; i < 300; ++i)
        cr_expect(x[2 * i] == (float)index[i] &&
                  y[i] == (int32_t)(index[i] % 3));
    cr_expect_eq(tac_dataset_subset(ctx, set, 1, (uint32_t[]){300}, &sub),
                 TAC_ERR_ARG);
    tac_dataset_destroy(sub);
    tac_dataset_destroy(set);
}

Test(data_sets, create_errors)
{
    own o = {0, -1};
    tac_dataset *set = NULL;
    tac_dataset_info info = {4, 0, 1, 1, 2};
    cr_expect_eq(tac_dataset_create(ctx, &own_ops, &o, &info, &set),
                 TAC_ERR_ARG);
    info = (tac_dataset_info){4, SIZE_MAX, 2, 1, 2};
    cr_expect_eq(tac_dataset_create(ctx, &own_ops, &o, &info, &set),
                 TAC_ERR_ARG);
    info = (tac_dataset_info){(size_t)UINT32_MAX + 1, 1, 1, 1, 2};
    cr_expect_eq(tac_dataset_create(ctx, &own_ops, &o, &info, &set),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_dataset_create(ctx, NULL, &o, &info, &set), TAC_ERR_ARG);
    cr_expect_null(set);
    cr_expect_eq(o.freed, 0, "a failed creation leaves impl to the caller");
}

static uint64_t hash_order(tac_dataset *part, size_t n, unsigned char *seen)
{
    uint64_t h = TAC_HASH_INIT;
    for (uint32_t i = 0; i < n; ++i) {
        float x[2];
        int32_t y;
        cr_assert_eq(tac_dataset_gather(part, ctx, 1, &i, x, &y), TAC_OK);
        const uint32_t v = (uint32_t)x[0];
        const unsigned char le[] = {(unsigned char)v, (unsigned char)(v >> 8),
                                    (unsigned char)(v >> 16),
                                    (unsigned char)(v >> 24)};
        ++seen[v];
        h = tac_hash_bytes(h, le, 4);
    }
    return h;
}

/* The division of Fashion-MNIST is part of every published number: its hashes
 * come from a separate program. */
Test(data_sets, split_is_fixed)
{
    own o = {0, -1};
    tac_dataset *set = make_own(&o, 60000), *train = NULL, *val = NULL;
    unsigned char *seen = calloc(60000, 1);
    cr_assert_eq(tac_dataset_split(ctx, set, &train, &val), TAC_OK);
    cr_assert_eq(tac_dataset_get_info(train).count, 55000);
    cr_assert_eq(tac_dataset_get_info(val).count, 5000);
    cr_expect_eq(hash_order(train, 55000, seen), 0xe32018de028841d6u);
    cr_expect_eq(hash_order(val, 5000, seen), 0xd70785f266c11396u);
    for (size_t i = 0; i < 60000; ++i) cr_assert_eq(seen[i], 1);
    tac_dataset_destroy(set);
    tac_dataset_destroy(train);
    tac_dataset_destroy(val);
    cr_expect_eq(o.freed, 1);
    free(seen);
}

Test(data_sets, split_of_few)
{
    for (size_t n = 0; n < 40; ++n) {
        own o = {0, -1};
        tac_dataset *set = make_own(&o, n), *train = NULL, *val = NULL;
        unsigned char seen[40] = {0};
        cr_assert_eq(tac_dataset_split(ctx, set, &train, &val), TAC_OK);
        cr_expect_eq(tac_dataset_get_info(val).count, n / 12);
        cr_expect_eq(tac_dataset_get_info(train).count, n - n / 12);
        hash_order(train, n - n / 12, seen);
        hash_order(val, n / 12, seen);
        for (size_t i = 0; i < n; ++i) cr_expect_eq(seen[i], 1);
        tac_dataset_destroy(set);
        tac_dataset_destroy(train);
        tac_dataset_destroy(val);
    }
}

static void gather_one(tac_dataset *set, uint32_t i, float *x, int32_t *y)
{
    cr_assert_eq(tac_dataset_gather(set, ctx, 1, &i, x, y), TAC_OK);
}

Test(data_sets, synth_is_a_pure_function)
{
    tac_synth_config g = TAC_SYNTH_CONFIG_INIT;
    g.count = 50;
    g.seed = 3;
    tac_dataset *a = NULL, *b = NULL, *later = NULL;
    cr_assert_eq(tac_dataset_synth(ctx, &g, &a), TAC_OK);
    cr_assert_eq(tac_dataset_synth(ctx, &g, &b), TAC_OK);
    g.first = 20;
    cr_assert_eq(tac_dataset_synth(ctx, &g, &later), TAC_OK);
    float x[784], z[784], w[50 * 784];
    int32_t y, yz, yw[50];
    uint32_t all[50];
    for (uint32_t i = 0; i < 50; ++i) all[i] = 49 - i;
    cr_assert_eq(tac_dataset_gather(b, ctx, 50, all, w, yw), TAC_OK);
    for (uint32_t i = 0; i < 50; ++i) {
        gather_one(a, i, x, &y);
        cr_expect_eq(y, (int32_t)(i % 10));
        cr_expect_eq(memcmp(x, w + (49 - i) * 784, sizeof(x)), 0);
        if (i < 20) continue;
        gather_one(later, i - 20, z, &yz);
        cr_expect_eq(yz, y);
        cr_expect_eq(memcmp(x, z, sizeof(x)), 0);
    }
    tac_dataset_destroy(a);
    tac_dataset_destroy(b);
    tac_dataset_destroy(later);
}

/* Nearest class mean, estimated from one half, must tell the other half. */
Test(data_sets, synth_is_learnable)
{
    tac_synth_config g = {sizeof(g), 600, 0, 9, 7, 3, 4, 11, 1.5f};
    tac_dataset *set = NULL;
    cr_assert_eq(tac_dataset_synth(ctx, &g, &set), TAC_OK);
    enum { D = 9 * 7 * 3 };
    static double mean[4][D];
    float x[D];
    int32_t y;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < 300; ++i) {
        gather_one(set, i, x, &y);
        for (int j = 0; j < D; ++j) {
            mean[y][j] += x[j] / 75.0;
            sum += x[j];
            squares += (double)x[j] * x[j];
        }
    }
    cr_expect_lt(fabs(sum / (300 * D)), 0.2);
    cr_expect(squares / (300 * D) > 0.5 && squares / (300 * D) < 2);
    int right = 0;
    for (uint32_t i = 300; i < 600; ++i) {
        gather_one(set, i, x, &y);
        int best = 0;
        double nearest = INFINITY;
        for (int k = 0; k < 4; ++k) {
            double d = 0;
            for (int j = 0; j < D; ++j)
                d += (x[j] - mean[k][j]) * (x[j] - mean[k][j]);
            if (d < nearest) nearest = d, best = k;
        }
        right += best == y;
    }
    cr_expect_geq(right, 290);
    tac_dataset_destroy(set);
}

Test(data_sets, synth_by_name)
{
    tac_data_config config = TAC_DATA_CONFIG_INIT;
    tac_data d;
    cr_assert_eq(tac_data_open(ctx, "synth", NULL, &d), TAC_OK);
    cr_expect_eq(tac_dataset_get_info(d.train).count, 11000);
    cr_expect_eq(tac_dataset_get_info(d.val).count, 1000);
    cr_expect_eq(tac_dataset_get_info(d.test).count, 2000);
    const tac_dataset_info info = tac_dataset_get_info(d.test);
    cr_expect(info.h == 28 && info.w == 28 && info.c == 1 &&
              info.classes == 10);
    float a[784], b[784];
    int32_t y;
    gather_one(d.test, 0, a, &y);
    tac_data_close(&d);
    cr_expect_null(d.train);

    config.seed = 1;
    cr_assert_eq(tac_data_open(ctx, "synth:24", &config, &d), TAC_OK);
    cr_expect_eq(tac_dataset_get_info(d.train).count, 22);
    cr_expect_eq(tac_dataset_get_info(d.val).count, 2);
    cr_expect_eq(tac_dataset_get_info(d.test).count, 4);
    gather_one(d.test, 0, b, &y);
    cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
    tac_data_close(&d);
    cr_assert_eq(tac_data_open(ctx, "synth:12", NULL, &d), TAC_OK);
    cr_expect_eq(tac_dataset_get_info(d.train).count, 11);
    cr_expect_eq(tac_dataset_get_info(d.val).count, 1);
    cr_expect_eq(tac_dataset_get_info(d.test).count, 2);
    tac_data_close(&d);
    tac_data_close(NULL);
}

Test(data_sets, names_that_are_wrong)
{
    tac_data d;
    memset(&d, 0xA5, sizeof(d));
    const tac_data before = d;
    const char *const bad[] = {"synth:0",  "synth:-1",          "synth:",
                               "synth:1x", "synth:99999999999", "synth:11"};
    for (size_t i = 0; i < 6; ++i) {
        cr_expect_eq(tac_data_open(ctx, bad[i], NULL, &d), TAC_ERR_CONFIG);
        cr_expect(data_message_has(ctx, bad[i]));
    }
    cr_expect_eq(tac_data_open(ctx, "mnits", NULL, &d), TAC_ERR_CONFIG);
    cr_expect(data_message_has(ctx, "fashion-mnist, idx, synth"));
    cr_expect_eq(tac_data_open(ctx, "", NULL, &d), TAC_ERR_CONFIG);
    cr_expect_eq(tac_data_open(ctx, "idx", NULL, &d), TAC_ERR_CONFIG);
    cr_expect_eq(tac_data_open(ctx, "idx:", NULL, &d), TAC_ERR_CONFIG);
    cr_expect_eq(tac_data_open(ctx, "fashion-mnist:x", NULL, &d),
                 TAC_ERR_CONFIG);
    cr_expect_eq(tac_data_open(ctx, NULL, NULL, &d), TAC_ERR_ARG);
    cr_expect_eq(memcmp(&d, &before, sizeof(d)), 0);
}

/* A folder of n training and m test images of h x w (x c). */
static void write_part(const char *part, int gz, uint32_t n, uint32_t labels,
                       int ndim, uint32_t h, uint32_t w, uint32_t c)
{
    char name[64], path[128];
    uint8_t body[4096], label[64];
    const uint32_t shape[] = {n, h, w, c};
    for (uint32_t i = 0; i < sizeof(body); ++i) body[i] = (uint8_t)(i * 5);
    for (uint32_t i = 0; i < 64; ++i) label[i] = (uint8_t)(i % 3);
    snprintf(name, sizeof(name), "%s-images-idx3-ubyte%s", part,
             gz ? ".gz" : "");
    data_write_idx(data_path(path, dir, name), gz, 8, ndim, shape, body,
                   (size_t)n * h * w * (ndim == 4 ? c : 1));
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte%s", part,
             gz ? ".gz" : "");
    data_write_idx(data_path(path, dir, name), gz, 8, 1, &labels, label,
                   labels);
}

static tac_status open_folder(tac_data *d)
{
    char name[80];
    snprintf(name, sizeof(name), "idx:%s", dir);
    return tac_data_open(ctx, name, NULL, d);
}

Test(data_sets, folder_of_idx_files)
{
    for (int gz = 0; gz < 2; ++gz) {
        write_part("train", gz, 36, 36, 3, 5, 4, 1);
        write_part("t10k", !gz, 7, 7, 3, 5, 4, 1);
        tac_data d;
        cr_assert_eq(open_folder(&d), TAC_OK);
        const tac_dataset_info info = tac_dataset_get_info(d.train);
        cr_expect(info.count == 33 && info.h == 5 && info.w == 4 &&
                  info.c == 1 && info.classes == 3);
        cr_expect_eq(tac_dataset_get_info(d.val).count, 3);
        cr_expect_eq(tac_dataset_get_info(d.test).count, 7);
        expect_labels(d.train);

        /* Mean and deviation of the training bytes, straightforwardly. */
        double mean = 0, var = 0;
        for (int i = 0; i < 720; ++i) mean += (uint8_t)(i * 5) / 255.0 / 720;
        for (int i = 0; i < 720; ++i) {
            const double v = (uint8_t)(i * 5) / 255.0 - mean;
            var += v * v / 720;
        }
        float x[20];
        int32_t y;
        gather_one(d.test, 6, x, &y);
        cr_expect_eq(y, 0);
        for (int j = 0; j < 20; ++j) {
            const double v = (uint8_t)((6 * 20 + j) * 5) / 255.0;
            cr_expect_float_eq(x[j], (float)((v - mean) / sqrt(var)), 1e-6f);
        }
        tac_data_close(&d);
        data_remove_dir(dir);
        data_make_dir(dir);
    }
}

Test(data_sets, folder_with_channels)
{
    write_part("train", 0, 12, 12, 4, 3, 2, 3);
    write_part("t10k", 1, 2, 2, 4, 3, 2, 3);
    tac_data d;
    cr_assert_eq(open_folder(&d), TAC_OK);
    cr_expect_eq(tac_dataset_get_info(d.test).c, 3);
    cr_expect_eq(tac_dataset_sample_size(d.test), 18);
    tac_data_close(&d);
}

Test(data_sets, folder_without_images)
{
    write_part("train", 0, 0, 0, 3, 28, 28, 1);
    write_part("t10k", 0, 0, 0, 3, 28, 28, 1);
    tac_data d;
    cr_assert_eq(open_folder(&d), TAC_OK);
    cr_expect_eq(tac_dataset_get_info(d.train).count, 0);
    tac_data_close(&d);
}

Test(data_sets, missing_folder_has_a_remedy)
{
    tac_data_config config = TAC_DATA_CONFIG_INIT;
    config.dir = "/no/such/folder";
    tac_data d;
    cr_expect_eq(tac_data_open(ctx, "fashion-mnist", &config, &d), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "/no/such/folder"));
    cr_expect(data_message_has(ctx, "apt install dataset-fashion-mnist"));
    cr_expect(data_message_has(ctx, "--data synth"));
    cr_expect(data_message_has(ctx, "idx:DIR"));
    cr_expect_eq(tac_data_open(ctx, "idx:/no/such/folder", NULL, &d),
                 TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "--data synth"));
}

Test(data_sets, broken_folders)
{
    tac_data d;
    cr_expect_eq(open_folder(&d), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "train-images-idx3-ubyte.gz"));
    write_part("train", 0, 12, 11, 3, 4, 4, 1);
    write_part("t10k", 0, 3, 3, 3, 4, 4, 1);
    cr_expect_eq(open_folder(&d), TAC_ERR_DATA);
    cr_expect(data_message_has(ctx, "12 images but 11 labels"));
    write_part("train", 0, 12, 12, 3, 4, 5, 1);
    cr_expect_eq(open_folder(&d), TAC_ERR_DATA);
    cr_expect(data_message_has(ctx, "4x5, test images 4x4"));
    write_part("train", 0, 2, 2, 3, 4, 4, 1); /* labels 0, 1; the test has 2 */
    cr_expect_eq(open_folder(&d), TAC_ERR_DATA);
    cr_expect(data_message_has(ctx, "test label 2"));
    write_part("train", 0, 12, 12, 2, 4, 1, 1);
    cr_expect_eq(open_folder(&d), TAC_ERR_DATA);
    cr_expect(data_message_has(ctx, "3 or 4 dimensions"));
    write_part("train", 0, 12, 12, 3, 4, 0, 1);
    cr_expect_eq(open_folder(&d), TAC_ERR_DATA);
    write_part("train", 0, 12, 12, 3, 4, 4, 1);
    cr_assert_eq(open_folder(&d), TAC_OK);
    tac_data_close(&d);

    tac_data_config config = TAC_DATA_CONFIG_INIT;
    config.dir = dir;
    cr_expect_eq(tac_data_open(ctx, "fashion-mnist", &config, &d),
                 TAC_ERR_DATA);
    cr_expect(data_message_has(ctx, "is not Fashion-MNIST"));
    cr_expect(data_message_has(ctx, "found 12 + 3 of 4x4"));
}
