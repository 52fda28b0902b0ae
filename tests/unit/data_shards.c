/* Shards: exact partitions, sorted against its definition, mixes against the
 * moments of the Dirichlet distribution. */
#include <criterion/criterion.h>
#include <math.h>

#include "data_files.h"
#include "tacit/data.h"
#include "tacit/rng.h"
#include "tacit/shards.h"

enum { MOST = 4000, MOST_CLASSES = 12 };

static tac_context *ctx;
static int32_t labels[MOST];

static void setup(void)
{
    ctx = data_context();
}

static void teardown(void)
{
    tac_context_destroy(ctx);
}

TestSuite(data_shards, .init = setup, .fini = teardown);

static size_t draw(uint64_t i, uint64_t bound)
{
    const tac_rng_key key = {78, TAC_STREAM_USER, 0};
    return (size_t)tac_rng_below(&key, i, bound);
}

static tac_shards *make(const char *spec, size_t count, size_t classes,
                        size_t ranks, uint64_t seed)
{
    tac_shards_config c = TAC_SHARDS_CONFIG_INIT;
    tac_shards *s = NULL;
    c.labels = labels;
    c.count = count;
    c.classes = classes;
    c.ranks = ranks;
    c.seed = seed;
    cr_assert_eq(tac_shards_create(ctx, spec, &c, &s), TAC_OK);
    return s;
}

static void histogram(const tac_shards *s, size_t r, size_t *of)
{
    memset(of, 0, MOST_CLASSES * sizeof(*of));
    for (size_t i = 0; i < tac_shards_size(s, r); ++i)
        ++of[labels[tac_shards_index(s, r)[i]]];
}

/* Each sample once; sizes equal up to one, the larger ones first. */
static void check_partition(const tac_shards *s, size_t count, size_t ranks)
{
    unsigned char *seen = calloc(count, 1);
    cr_assert_eq(tac_shards_ranks(s), ranks);
    cr_assert_eq(tac_shards_count(s), count);
    for (size_t r = 0; r < ranks; ++r) {
        cr_expect_eq(tac_shards_size(s, r),
                     count / ranks + (r < count % ranks));
        for (size_t i = 0; i < tac_shards_size(s, r); ++i) {
            const uint32_t sample = tac_shards_index(s, r)[i];
            cr_assert_lt(sample, count);
            cr_expect_eq(seen[sample]++, 0);
        }
    }
    free(seen);
}

/* "sorted": class after class, of each the samples in order. */
static void check_sorted(const tac_shards *s, size_t count, size_t classes)
{
    const uint32_t *at = tac_shards_index(s, 0);
    for (size_t k = 0; k < classes; ++k)
        for (size_t i = 0; i < count; ++i)
            if ((size_t)labels[i] == k) cr_expect_eq(*at++, i);
}

Test(data_shards, every_sample_has_one_rank)
{
    static const char *const specs[] = {"sorted",        "dirichlet:1e-6",
                                        "dirichlet:0.1", "dirichlet:1",
                                        "dirichlet:100", "dirichlet:1e6"};
    for (uint64_t i = 0; i < 200; ++i) {
        const size_t count = 1 + draw(5 * i, i % 2 ? 20 : 500);
        const size_t classes = 1 + draw(5 * i + 1, MOST_CLASSES);
        const size_t ranks = i % 7 ? 1 + draw(5 * i + 2, 30) : 1;
        /* Few of the labels occur in some cases. */
        const size_t used = 1 + draw(5 * i + 3, classes);
        for (size_t j = 0; j < count; ++j)
            labels[j] = (int32_t)draw(10000 + i * 500 + j, used);
        for (size_t k = 0; k < sizeof(specs) / sizeof(*specs); ++k) {
            tac_shards *s = make(specs[k], count, classes, ranks, i);
            check_partition(s, count, ranks);
            if (k == 0) check_sorted(s, count, classes);
            tac_shards_destroy(s);
        }
    }
}

static int equal(const tac_shards *a, const tac_shards *b)
{
    return memcmp(tac_shards_index(a, 0), tac_shards_index(b, 0),
                  tac_shards_count(a) * sizeof(uint32_t)) == 0;
}

Test(data_shards, the_same_whenever_they_are_made)
{
    for (size_t i = 0; i < 1000; ++i) labels[i] = (int32_t)(i % 10);
    tac_shards *a = make("dirichlet:0.5", 1000, 10, 8, 3);
    tac_shards *b = make("dirichlet:0.5", 1000, 10, 8, 3);
    tac_shards *other = make("dirichlet:0.5", 1000, 10, 8, 4);
    cr_expect(equal(a, b));
    cr_expect_not(equal(a, other), "seeds differ");
    tac_shards_destroy(a);
    tac_shards_destroy(b);
    tac_shards_destroy(other);
}

/* Unequal classes: 60, 30 and 10 %. */
static void make_unequal(size_t count)
{
    for (size_t i = 0; i < count; ++i)
        labels[i] = i % 10 < 6 ? 0 : i % 10 < 9 ? 1 : 2;
}

Test(data_shards, a_large_concentration_is_even)
{
    size_t of[MOST_CLASSES];
    make_unequal(1000);
    tac_shards *s = make("dirichlet:1e6", 1000, 3, 10, 1);
    for (size_t r = 0; r < 10; ++r) {
        histogram(s, r, of);
        cr_expect_leq(labs((long)of[0] - 60), 1);
        cr_expect_leq(labs((long)of[1] - 30), 1);
        cr_expect_leq(labs((long)of[2] - 10), 1);
    }
    tac_shards_destroy(s);
}

static double largest_share(const tac_shards *s, size_t r)
{
    size_t of[MOST_CLASSES], largest = 0;
    histogram(s, r, of);
    for (size_t k = 0; k < MOST_CLASSES; ++k)
        if (of[k] > largest) largest = of[k];
    return (double)largest / (double)tac_shards_size(s, r);
}

/* Rank 0 finds all pools full, so that its mix is as drawn. */
static double mean_largest_share(const char *spec)
{
    double sum = 0;
    for (size_t i = 0; i < 2000; ++i) labels[i] = (int32_t)(i % 10);
    for (uint64_t seed = 0; seed < 50; ++seed) {
        tac_shards *s = make(spec, 2000, 10, 20, seed);
        sum += largest_share(s, 0);
        tac_shards_destroy(s);
    }
    return sum / 50;
}

Test(data_shards, a_small_concentration_is_uneven)
{
    cr_expect_gt(mean_largest_share("dirichlet:0.001"), 0.95);
    cr_expect_lt(mean_largest_share("dirichlet:1000"), 0.15);
}

/* Share p of a class has the mean p and the variance p(1-p)/(A*C+1). Within
 * five standard errors; that of a variance from the fourth moment. */
static void check_moments(const char *spec, double a)
{
    enum { SEEDS = 600, N = 4000, RANKS = 25, C = 3 };
    const double share[C] = {0.6, 0.3, 0.1};
    double m1[C] = {0}, m2[C] = {0}, m4[C] = {0};
    make_unequal(N);
    for (uint64_t seed = 0; seed < SEEDS; ++seed) {
        size_t of[MOST_CLASSES];
        tac_shards *s = make(spec, N, C, RANKS, seed);
        histogram(s, 0, of);
        for (int k = 0; k < C; ++k) {
            const double d = (double)of[k] / (N / RANKS) - share[k];
            m1[k] += d / SEEDS;
            m2[k] += d * d / SEEDS;
            m4[k] += d * d * d * d / SEEDS;
        }
        tac_shards_destroy(s);
    }
    for (int k = 0; k < C; ++k) {
        const double variance = share[k] * (1 - share[k]) / (a * C + 1);
        cr_expect_leq(fabs(m1[k]), 5 * sqrt(variance / SEEDS));
        cr_expect_leq(fabs(m2[k] - variance),
                      5 * sqrt((m4[k] - m2[k] * m2[k]) / SEEDS) + 1e-4);
    }
}

Test(data_shards, mixes_are_dirichlet)
{
    check_moments("dirichlet:0.1", 0.1); /* boosted variates */
    check_moments("dirichlet:0.5", 0.5);
    check_moments("dirichlet:4", 4);
}

Test(data_shards, iid_has_none)
{
    tac_shards_config c = TAC_SHARDS_CONFIG_INIT;
    tac_shards *s = (tac_shards *)(void *)labels;
    cr_expect_eq(tac_shards_create(ctx, "iid", &c, &s), TAC_OK);
    cr_expect_null(s);
    tac_shards_destroy(NULL);
}

Test(data_shards, specs_that_are_wrong)
{
    static const char *const wrong[] = {"",
                                        "IID",
                                        "sort",
                                        "sorted:1",
                                        "dirichlet",
                                        "dirichlet:",
                                        "x",
                                        "dirichlet:0",
                                        "dirichlet:-1",
                                        "dirichlet:1e7",
                                        "dirichlet:1x",
                                        "dirichlet:nan",
                                        "dirichlet:inf",
                                        "dirichlet:1e-7"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); ++i) {
        cr_expect_eq(tac_shards_check(ctx, wrong[i]), TAC_ERR_CONFIG);
        cr_expect(data_message_has(ctx, "iid, sorted, or dirichlet:A"));
    }
    cr_expect_eq(tac_shards_check(ctx, NULL), TAC_ERR_ARG);
}

Test(data_shards, counts_that_are_wrong)
{
    tac_shards_config good = TAC_SHARDS_CONFIG_INIT, c;
    tac_shards *s = NULL;
    good.labels = labels;
    good.count = 5;
    memset(labels, 0, sizeof(labels));
#define REFUSED(change) \
    c = good;           \
    change;             \
    cr_expect_eq(tac_shards_create(ctx, "sorted", &c, &s), TAC_ERR_ARG)
    REFUSED(c.labels = NULL);
    REFUSED(c.count = 0);
    REFUSED(c.classes = 0);
    REFUSED(c.ranks = 0);
    REFUSED(c.ranks = ((size_t)1 << 20) + 1);
    labels[3] = 10;
    REFUSED((void)0);
    cr_expect(data_message_has(ctx, "sample 3 has the label 10"));
    labels[3] = -1;
    REFUSED((void)0);
#undef REFUSED
    cr_expect_eq(tac_shards_create(ctx, "sorted", NULL, &s), TAC_ERR_ARG);
    cr_expect_null(s);
}

Test(data_shards, of_ones_own)
{
    const uint32_t index[] = {4, 0, 2, 1, 3}, twice[] = {4, 0, 2, 0, 3},
                   outside[] = {4, 0, 2, 5, 3};
    const size_t sizes[] = {1, 0, 4};
    tac_shards *s = NULL;
    cr_assert_eq(tac_shards_of(ctx, 3, sizes, index, &s), TAC_OK);
    cr_expect_eq(tac_shards_ranks(s), 3);
    cr_expect_eq(tac_shards_count(s), 5);
    cr_expect_eq(tac_shards_size(s, 1), 0);
    cr_expect_eq(tac_shards_size(s, 2), 4);
    cr_expect_eq(tac_shards_index(s, 2)[3], 3);
    tac_shards_destroy(s);
    s = NULL;
    cr_expect_eq(tac_shards_of(ctx, 3, sizes, twice, &s), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "there twice"));
    cr_expect_eq(tac_shards_of(ctx, 3, sizes, outside, &s), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "out of range"));
    cr_expect_eq(tac_shards_of(ctx, 1, &sizes[1], index, &s), TAC_ERR_ARG);
    cr_expect_eq(tac_shards_of(ctx, 0, sizes, index, &s), TAC_ERR_ARG);
    cr_expect_eq(tac_shards_of(ctx, 2, (size_t[]){SIZE_MAX, 2}, index, &s),
                 TAC_ERR_ARG);
    cr_expect_null(s);
}

/* With the labels of the training part, a subset of made-up images. */
Test(data_shards, of_a_dataset)
{
    tac_data d;
    tac_shards *s = NULL, *want;
    cr_assert_eq(tac_data_open(ctx, "synth:1200", NULL, &d), TAC_OK);
    const size_t n = tac_dataset_get_info(d.train).count;
    float x[28 * 28];
    for (uint32_t i = 0; i < n; ++i)
        tac_dataset_gather(d.train, ctx, 1, &i, x, &labels[i]);
    cr_assert_eq(tac_dataset_shards(ctx, d.train, "dirichlet:1", 4, 7, &s),
                 TAC_OK);
    want = make("dirichlet:1", n, 10, 4, 7);
    cr_expect(equal(s, want));
    tac_shards_destroy(want);
    tac_shards_destroy(s);
    cr_expect_eq(tac_dataset_shards(ctx, d.train, "iid", 4, 7, &s), TAC_OK);
    cr_expect_null(s);
    cr_expect_eq(tac_dataset_shards(ctx, NULL, "iid", 4, 7, &s), TAC_ERR_ARG);
    cr_expect_eq(tac_dataset_shards(ctx, d.train, "x", 4, 7, &s),
                 TAC_ERR_CONFIG);
    tac_data_close(&d);
}
