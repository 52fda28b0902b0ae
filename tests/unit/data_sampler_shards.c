/* The sampler over shards, against lists: a rank's epoch is its shard in some
 * order, padded to what the largest has. */
#include <criterion/criterion.h>

#include "data_files.h"
#include "tacit/rng.h"
#include "tacit/sampler.h"

enum { MOST = 300, RANKS = 12 };

static tac_context *ctx;

static void setup(void)
{
    ctx = data_context();
}

static void teardown(void)
{
    tac_context_destroy(ctx);
}

TestSuite(data_sampler_shards, .init = setup, .fini = teardown);

static size_t draw(uint64_t i, uint64_t bound)
{
    const tac_rng_key key = {79, TAC_STREAM_USER, 0};
    return (size_t)tac_rng_below(&key, i, bound);
}

/* Shards of random sizes, some of them 0. */
typedef struct trial {
    size_t n, ranks, sizes[RANKS];
    int drop_last;
    tac_shards *shards;
} trial;

static trial begin(uint64_t i)
{
    trial t = {.ranks = 1 + draw(100 * i, RANKS),
               .drop_last = draw(100 * i + 1, 4) == 0};
    uint32_t index[MOST];
    for (size_t r = 0; r < t.ranks; ++r) {
        t.sizes[r] = draw(100 * i + 2 + r, 4) ? draw(100 * i + 20 + r, 25) : 0;
        t.n += t.sizes[r];
    }
    if (t.n == 0) t.n = t.sizes[0] = 1;
    tac_rng_permutation(&(tac_rng_key){i, TAC_STREAM_USER, 1}, index, t.n);
    cr_assert_eq(tac_shards_of(ctx, t.ranks, t.sizes, index, &t.shards),
                 TAC_OK);
    return t;
}

static tac_sampler *open_at(const trial *t, size_t rank, int shuffle,
                            uint64_t epoch)
{
    tac_sampler_config c = TAC_SAMPLER_CONFIG_INIT;
    tac_sampler *s = NULL;
    c.count = t->n;
    c.replicas = t->ranks;
    c.rank = rank;
    c.shuffle = shuffle;
    c.drop_last = t->drop_last;
    c.seed = 11;
    c.shards = t->shards;
    cr_assert_eq(tac_sampler_create(ctx, &c, &s), TAC_OK);
    tac_sampler_set_epoch(s, epoch);
    return s;
}

static size_t rows_of(const trial *t)
{
    size_t rows = t->sizes[0];
    for (size_t r = 1; r < t->ranks; ++r)
        if (t->drop_last ? t->sizes[r] < rows : t->sizes[r] > rows)
            rows = t->sizes[r];
    return rows;
}

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One rank's epoch: its shard, each sample once before any comes again. */
static void check_epoch(const trial *t, size_t r, int shuffle, uint64_t epoch)
{
    const uint32_t *mine = tac_shards_index(t->shards, r);
    const size_t rows = rows_of(t), size = t->sizes[r];
    unsigned char seen[MOST] = {0};
    tac_sample got[MOST];
    tac_sampler *s = open_at(t, r, shuffle, epoch);
    cr_expect_eq(tac_sampler_length(s), rows);
    cr_expect_eq(tac_sampler_next(s, MOST, got), rows);
    for (size_t k = 0; k < rows; ++k) {
        cr_expect_eq(got[k].position, k * t->ranks + r);
        cr_expect_eq(got[k].valid, k < size);
        cr_expect_lt(got[k].index, t->n);
        if (!shuffle && size) cr_expect_eq(got[k].index, mine[k % size]);
        if (k >= size && size) cr_expect_eq(got[k].index, got[k - size].index);
        if (k < size) ++seen[got[k].index];
    }
    size_t distinct = 0;
    for (size_t k = 0; k < size; ++k) distinct += seen[mine[k]] == 1;
    cr_expect_eq(distinct, less(size, rows));
    cr_expect_eq(tac_sampler_next(s, 1, got), 0);
    tac_sampler_destroy(s);
}

Test(data_sampler_shards, an_epoch_is_the_shard)
{
    for (uint64_t i = 0; i < 60; ++i) {
        const trial t = begin(i);
        for (size_t r = 0; r < t.ranks; ++r) {
            check_epoch(&t, r, 0, 0);
            check_epoch(&t, r, 1, 0);
            check_epoch(&t, r, 1, 5);
        }
        tac_shards_destroy(t.shards);
    }
}

/* Valid samples of ranks first .. end-1, counted. */
static size_t count_valid(tac_sampler *const *s, size_t first, size_t end,
                          uint64_t at, size_t n)
{
    tac_sample got[MOST];
    size_t valid = 0;
    for (size_t r = first; r < end; ++r) {
        const size_t m = tac_sampler_get(s[r], at, n, got);
        for (size_t k = 0; k < m; ++k) valid += got[k].valid != 0;
    }
    return valid;
}

static void check_counts(tac_sampler *const *s, size_t ranks, uint64_t at,
                         size_t n)
{
    for (size_t first = 0; first <= ranks; ++first)
        for (size_t end = first; end <= ranks; ++end)
            cr_expect_eq(tac_sampler_step_count_of(s[0], at, n, first, end),
                         count_valid(s, first, end, at, n));
    cr_expect_eq(tac_sampler_step_count(s[ranks - 1], at, n),
                 count_valid(s, 0, ranks, at, n));
}

/* With shards, and dealt to all: at rows and between them. */
Test(data_sampler_shards, counts_of_a_step)
{
    for (uint64_t i = 0; i < 12; ++i) {
        trial t = begin(i);
        tac_sampler *s[RANKS];
        for (int with = 0; with < 2; ++with) {
            for (size_t r = 0; r < t.ranks; ++r) s[r] = open_at(&t, r, 1, 1);
            for (uint64_t at = 0; at < 30 * t.ranks; at += 1 + at % 3)
                check_counts(s, t.ranks, at, 1 + (size_t)at % 7);
            for (size_t r = 0; r < t.ranks; ++r) tac_sampler_destroy(s[r]);
            tac_shards_destroy(t.shards);
            t.shards = NULL;
        }
    }
}

Test(data_sampler_shards, orders_of_epochs_and_ranks_differ)
{
    const size_t sizes[] = {100, 100};
    uint32_t index[200];
    tac_sample a[100], b[100], c[100];
    for (uint32_t i = 0; i < 200; ++i) index[i] = i;
    trial t = {.n = 200, .ranks = 2};
    cr_assert_eq(tac_shards_of(ctx, 2, sizes, index, &t.shards), TAC_OK);
    tac_sampler *s = open_at(&t, 0, 1, 1), *other = open_at(&t, 1, 1, 1);
    tac_sampler_next(s, 100, a);
    tac_sampler_next(other, 100, b);
    tac_sampler_set_epoch(s, 2);
    tac_sampler_next(s, 100, c);
    size_t as_the_other = 0, as_before = 0;
    for (int i = 0; i < 100; ++i) {
        as_the_other += a[i].index == b[i].index - 100;
        as_before += a[i].index == c[i].index;
    }
    cr_expect_lt(as_the_other, 20);
    cr_expect_lt(as_before, 20);
    tac_sampler_set_epoch(s, 1);
    tac_sampler_next(s, 100, c);
    for (int i = 0; i < 100; ++i) cr_expect_eq(a[i].index, c[i].index);
    tac_sampler_destroy(other);
    tac_sampler_destroy(s);
    tac_shards_destroy(t.shards);
}

typedef struct saved {
    int loading, count;
    uint64_t values[3];
} saved;

static tac_status visit(void *arg, const tac_state_item *item)
{
    saved *v = arg;
    uint64_t *at = &v->values[v->count++];
    if (v->loading)
        memcpy(item->data, at, 8);
    else
        memcpy(at, item->data, 8);
    return TAC_OK;
}

/* Saved at any position, in batches of 3: the rest is the same. */
Test(data_sampler_shards, resume_anywhere)
{
    for (uint64_t i = 0; i < 20; ++i) {
        const trial t = begin(200 + i);
        for (size_t stop = 0; stop <= rows_of(&t) / 3 + 1; ++stop) {
            tac_sampler *s = open_at(&t, t.ranks - 1, 1, i % 3);
            tac_sampler *other = open_at(&t, t.ranks - 1, 1, 9);
            tac_sample a[MOST], b[MOST];
            saved v = {0};
            const tac_state_visitor visitor = {visit, &v, "sampler."};
            for (size_t k = 0; k < stop; ++k) tac_sampler_next(s, 3, a);
            cr_assert_eq(tac_sampler_walk(s, &visitor), TAC_OK);
            v.loading = 1;
            v.count = 0;
            cr_assert_eq(tac_sampler_walk(other, &visitor), TAC_OK);
            const size_t got = tac_sampler_next(s, MOST, a);
            cr_expect_eq(tac_sampler_next(other, MOST, b), got);
            for (size_t k = 0; k < got; ++k) {
                cr_expect_eq(a[k].index, b[k].index);
                cr_expect_eq(a[k].position, b[k].position);
                cr_expect_eq(a[k].valid, b[k].valid);
            }
            tac_sampler_destroy(other);
            tac_sampler_destroy(s);
        }
        tac_shards_destroy(t.shards);
    }
}

/* Equal shards keep the promise that positions below N are the valid ones. */
Test(data_sampler_shards, equal_shards_count_as_dealt)
{
    for (size_t n = 1; n < 40; n += 3) {
        trial t = {.n = n, .ranks = 4};
        int32_t labels[40];
        tac_shards_config c = TAC_SHARDS_CONFIG_INIT;
        for (size_t i = 0; i < n; ++i) labels[i] = (int32_t)(i * 7 % 10);
        c.labels = labels;
        c.count = n;
        c.ranks = 4;
        cr_assert_eq(tac_shards_create(ctx, "sorted", &c, &t.shards), TAC_OK);
        tac_sampler *with = open_at(&t, 1, 1, 0);
        tac_shards_destroy(t.shards);
        t.shards = NULL;
        tac_sampler *dealt = open_at(&t, 1, 1, 0);
        cr_expect_eq(tac_sampler_length(with), tac_sampler_length(dealt));
        for (uint64_t at = 0; at < 60; at += 4)
            for (size_t b = 1; b < 5; ++b)
                cr_expect_eq(tac_sampler_step_count(with, at, b),
                             tac_sampler_step_count(dealt, at, b));
        tac_sampler_destroy(dealt);
        tac_sampler_destroy(with);
    }
}

Test(data_sampler_shards, shards_of_something_else)
{
    trial t = begin(0);
    tac_sampler_config c = TAC_SAMPLER_CONFIG_INIT;
    tac_sampler *s = NULL;
    c.shards = t.shards;
    c.count = t.n + 1;
    c.replicas = t.ranks;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    c.count = t.n;
    c.replicas = t.ranks + 1;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    cr_expect_null(s);
    tac_shards_destroy(t.shards);
}
