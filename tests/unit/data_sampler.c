/* The sampler against an oracle written from DistributedSampler's definition:
 * build the padded list, then slice it. */
#include <criterion/criterion.h>

#include "data_files.h"
#include "tacit/hash.h"
#include "tacit/rng.h"
#include "tacit/sampler.h"

static tac_context *ctx;

static void setup(void)
{
    ctx = data_context();
}

static void teardown(void)
{
    tac_context_destroy(ctx);
}

TestSuite(data_sampler, .init = setup, .fini = teardown);

static tac_sampler *make(size_t n, size_t replicas, size_t rank, int shuffle,
                         int drop_last, uint64_t seed)
{
    tac_sampler_config c = TAC_SAMPLER_CONFIG_INIT;
    c.count = n;
    c.replicas = replicas;
    c.rank = rank;
    c.shuffle = shuffle;
    c.drop_last = drop_last;
    c.seed = seed;
    tac_sampler *s = NULL;
    cr_assert_eq(tac_sampler_create(ctx, &c, &s), TAC_OK);
    return s;
}

/* A deterministic source of test cases. */
static uint64_t draw(uint64_t i, uint64_t bound)
{
    const tac_rng_key key = {77, TAC_STREAM_USER, 0};
    return tac_rng_below(&key, i, bound);
}

static void expect_list(size_t n, size_t replicas, size_t rank, int drop_last,
                        size_t want, const uint32_t *index, const char *valid)
{
    tac_sampler *s = make(n, replicas, rank, 0, drop_last, 0);
    tac_sample got[64];
    memset(got, 0xA5, sizeof(got));
    cr_expect_eq(tac_sampler_length(s), want);
    cr_expect_eq(tac_sampler_next(s, 64, got), want);
    for (size_t i = 0; i < want; ++i) {
        cr_expect_eq(got[i].index, index[i]);
        cr_expect_eq(got[i].valid, valid[i] == '1');
        cr_expect_eq(got[i].position, rank + i * replicas);
    }
    cr_expect_eq(tac_sampler_next(s, 64, got), 0);
    tac_sampler_destroy(s);
}

/* The vectors of PyTorch's definition. */
Test(data_sampler, vectors)
{
    expect_list(10, 3, 0, 0, 4, (uint32_t[]){0, 3, 6, 9}, "1111");
    expect_list(10, 3, 1, 0, 4, (uint32_t[]){1, 4, 7, 0}, "1110");
    expect_list(10, 3, 2, 0, 4, (uint32_t[]){2, 5, 8, 1}, "1110");
    expect_list(10, 3, 0, 1, 3, (uint32_t[]){0, 3, 6}, "111");
    expect_list(10, 3, 1, 1, 3, (uint32_t[]){1, 4, 7}, "111");
    expect_list(10, 3, 2, 1, 3, (uint32_t[]){2, 5, 8}, "111");
    for (size_t r = 0; r < 3; ++r) expect_list(2, 3, r, 1, 0, NULL, "");
    /* Padding of more than N repeats the list. */
    expect_list(1, 4, 3, 0, 1, (uint32_t[]){0}, "0");
    expect_list(2, 5, 0, 0, 1, (uint32_t[]){0}, "1");
    expect_list(2, 5, 3, 0, 1, (uint32_t[]){1}, "0");
    expect_list(2, 5, 4, 0, 1, (uint32_t[]){0}, "0");
    expect_list(9, 3, 2, 0, 3, (uint32_t[]){2, 5, 8}, "111");
    expect_list(1, 1, 0, 0, 1, (uint32_t[]){0}, "1");
}

/* The order itself: Philox and Fisher-Yates computed by a separate program. */
Test(data_sampler, golden_orders)
{
    const struct {
        uint64_t seed, epoch;
        uint32_t order[10];
    } golden[] = {
        {0, 0, {1, 5, 8, 4, 9, 3, 0, 2, 7, 6}},
        {0, 1, {3, 5, 7, 4, 0, 2, 9, 1, 8, 6}},
        {7, 3, {2, 6, 5, 8, 9, 3, 7, 0, 4, 1}},
    };
    for (size_t g = 0; g < 3; ++g) {
        tac_sampler *s = make(10, 1, 0, 1, 0, golden[g].seed);
        tac_sample got[10];
        tac_sampler_set_epoch(s, golden[g].epoch);
        cr_assert_eq(tac_sampler_next(s, 10, got), 10);
        for (size_t i = 0; i < 10; ++i)
            cr_expect_eq(got[i].index, golden[g].order[i]);
        tac_sampler_destroy(s);
    }
    enum { N = 55000 };
    tac_sampler *s = make(N, 1, 0, 1, 0, 0);
    tac_sample *all = malloc(N * sizeof(*all));
    uint64_t h = TAC_HASH_INIT;
    cr_assert_eq(tac_sampler_next(s, N, all), N);
    for (size_t i = 0; i < N; ++i) {
        const uint32_t v = all[i].index;
        const unsigned char le[] = {(unsigned char)v, (unsigned char)(v >> 8),
                                    (unsigned char)(v >> 16),
                                    (unsigned char)(v >> 24)};
        h = tac_hash_bytes(h, le, 4);
    }
    cr_expect_eq(h, 0x661e444064709319u);
    free(all);
    tac_sampler_destroy(s);
}

/* One random (N,R,b,drop_last): lists by the definition, batches of b. */
static void check_case(size_t n, size_t replicas, size_t b, int drop_last)
{
    const size_t num = drop_last ? n / replicas : (n + replicas - 1) / replicas;
    tac_sampler *one = make(n, 1, 0, 1, 0, n + replicas);
    tac_sample *order = malloc((n + 1) * sizeof(*order));
    tac_sample *batch = malloc(b * sizeof(*batch));
    unsigned char *seen = calloc(n, 1);
    cr_assert_eq(tac_sampler_next(one, n + 1, order), n);
    size_t valid = 0;
    for (size_t r = 0; r < replicas; ++r) {
        tac_sampler *s = make(n, replicas, r, 1, drop_last, n + replicas);
        cr_expect_eq(tac_sampler_length(s), num);
        size_t k = 0, got;
        while ((got = tac_sampler_next(s, b, batch)) > 0) {
            cr_expect_eq(got, num - k < b ? num - k : b);
            for (size_t i = 0; i < got; ++i, ++k) {
                const size_t at = r + k * replicas;
                cr_expect_eq(batch[i].position, at);
                cr_expect_eq(batch[i].index, order[at % n].index);
                cr_expect_eq(batch[i].valid, at < n);
                if (!batch[i].valid) continue;
                cr_expect_eq(seen[batch[i].index]++, 0, "seen twice");
                ++valid;
            }
        }
        cr_expect_eq(k, num);
        tac_sampler_destroy(s);
    }
    cr_expect_eq(valid, drop_last ? num * replicas : n);
    free(seen);
    free(batch);
    free(order);
    tac_sampler_destroy(one);
}

Test(data_sampler, random_cases)
{
    for (uint64_t i = 0; i < 300; ++i) {
        const size_t n = 1 + (size_t)draw(4 * i, 200);
        const size_t replicas = 1 + (size_t)draw(4 * i + 1, 20);
        const size_t b = 1 + (size_t)draw(4 * i + 2, 33);
        check_case(n, replicas, b, (int)draw(4 * i + 3, 2));
    }
    check_case(1, 1, 1, 0);
    check_case(1, 8, 3, 0);
    check_case(1, 8, 3, 1);
}

/* The valid samples of a step, as marks by index. */
static size_t step_set(size_t n, size_t replicas, size_t b, size_t step,
                       unsigned char *mark, size_t *count)
{
    size_t valid = 0;
    memset(mark, 0, n);
    for (size_t r = 0; r < replicas; ++r) {
        tac_sampler *s = make(n, replicas, r, 1, 0, 5);
        tac_sample batch[64];
        const uint64_t at = (uint64_t)step * replicas * b;
        const size_t got = tac_sampler_get(s, at, b, batch);
        for (size_t i = 0; i < got; ++i) {
            if (!batch[i].valid) continue;
            mark[batch[i].index] = 1;
            ++valid;
        }
        *count = tac_sampler_step_count(s, at, b);
        cr_expect_eq(tac_sampler_position(s), 0);
        tac_sampler_destroy(s);
    }
    return valid;
}

Test(data_sampler, step_does_not_depend_on_replicas)
{
    const struct {
        size_t replicas, b;
    } ways[] = {{1, 64}, {2, 32}, {4, 16}, {8, 8}, {64, 1}};
    const size_t counts[] = {1000, 1024, 63, 65, 127};
    unsigned char want[1024], got[1024];
    for (size_t c = 0; c < 5; ++c) {
        const size_t n = counts[c];
        for (size_t step = 0; step <= n / 64 + 1; ++step) {
            size_t global = 0;
            const size_t in_step = step_set(n, 1, 64, step, want, &global);
            cr_expect_eq(global, in_step);
            for (size_t w = 1; w < 5; ++w) {
                const size_t valid = step_set(n, ways[w].replicas, ways[w].b,
                                              step, got, &global);
                cr_expect_eq(valid, in_step);
                cr_expect_eq(global, in_step);
                cr_expect_eq(memcmp(got, want, n), 0);
            }
        }
    }
}

Test(data_sampler, epochs_and_seeds)
{
    enum { N = 500 };
    static tac_sample a[N], b[N];
    tac_sampler *s = make(N, 1, 0, 1, 0, 3), *t = make(N, 1, 0, 1, 0, 4);
    tac_sampler_set_epoch(s, 1);
    tac_sampler_next(s, N, a);
    tac_sampler_set_epoch(s, 2);
    cr_expect_eq(tac_sampler_position(s), 0);
    tac_sampler_next(s, N, b);
    cr_expect_neq(memcmp(a, b, sizeof(a)), 0, "epochs differ");
    tac_sampler_set_epoch(t, 1);
    tac_sampler_next(t, N, b);
    cr_expect_neq(memcmp(a, b, sizeof(a)), 0, "seeds differ");
    tac_sampler_set_epoch(s, 1);
    tac_sampler_next(s, N, b);
    cr_expect_eq(memcmp(a, b, sizeof(a)), 0, "same seed and epoch");
    tac_sampler_set_epoch(s, 1); /* the same epoch again starts it again */
    cr_expect_eq(tac_sampler_next(s, N, b), N);
    cr_expect_eq(memcmp(a, b, sizeof(a)), 0);
    tac_sampler_destroy(s);
    tac_sampler_destroy(t);
}

/* Saves and loads by name, as a checkpoint does. */
typedef struct saved {
    int loading, count;
    char names[4][32];
    uint64_t values[4];
} saved;

static tac_status visit(void *arg, const tac_state_item *item)
{
    saved *v = arg;
    cr_assert_eq(item->ndim, 0);
    cr_assert_eq(tac_dtype_size(item->dtype), 8);
    if (v->loading) {
        cr_assert_str_eq(item->name, v->names[v->count]);
        memcpy(item->data, &v->values[v->count++], 8);
    } else {
        snprintf(v->names[v->count], 32, "%s", item->name);
        memcpy(&v->values[v->count++], item->data, 8);
    }
    return TAC_OK;
}

static void save(tac_sampler *s, saved *v)
{
    memset(v, 0, sizeof(*v));
    const tac_state_visitor visitor = {visit, v, "sampler."};
    cr_assert_eq(tac_sampler_walk(s, &visitor), TAC_OK);
}

static void load(tac_sampler *s, saved *v)
{
    v->loading = 1;
    v->count = 0;
    const tac_state_visitor visitor = {visit, v, "sampler."};
    cr_assert_eq(tac_sampler_walk(s, &visitor), TAC_OK);
}

Test(data_sampler, resume_is_the_uninterrupted_order)
{
    enum { N = 103, B = 5 };
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
        for (size_t stop = 0; stop <= 12; ++stop) {
            tac_sampler *s = make(N, 2, 1, 1, 0, 9);
            tac_sampler *other = make(N, 2, 1, 1, 0, 1234); /* other seed */
            tac_sample a[B], b[B];
            saved state;
            tac_sampler_set_epoch(s, epoch);
            for (size_t k = 0; k < stop; ++k) tac_sampler_next(s, B, a);
            save(s, &state);
            cr_expect_str_eq(state.names[0], "sampler.seed");
            cr_expect_str_eq(state.names[1], "sampler.epoch");
            cr_expect_str_eq(state.names[2], "sampler.position");
            cr_expect_eq(state.count, 3);
            load(other, &state);
            size_t got;
            do {
                memset(a, 0, sizeof(a));
                memset(b, 0, sizeof(b));
                got = tac_sampler_next(s, B, a);
                cr_expect_eq(tac_sampler_next(other, B, b), got);
                cr_expect_eq(memcmp(a, b, sizeof(a)), 0);
            } while (got);
            tac_sampler_destroy(s);
            tac_sampler_destroy(other);
        }
    }
}

/* A run saved with 4 replicas goes on with 3: every sample is used once. */
Test(data_sampler, resume_with_other_replicas)
{
    enum { N = 101, B = 4 };
    unsigned char seen[N] = {0};
    saved state;
    tac_sample batch[64];
    for (size_t r = 0; r < 4; ++r) {
        tac_sampler *s = make(N, 4, r, 1, 0, 2);
        for (int k = 0; k < 3; ++k) {
            const size_t got = tac_sampler_next(s, B, batch);
            for (size_t i = 0; i < got; ++i) ++seen[batch[i].index];
        }
        save(s, &state);
        tac_sampler_destroy(s);
    }
    for (size_t r = 0; r < 3; ++r) {
        tac_sampler *s = make(N, 3, r, 1, 0, 2);
        load(s, &state);
        const size_t got = tac_sampler_next(s, 64, batch);
        cr_expect_eq(got, (N - 48 + 2) / 3);
        for (size_t i = 0; i < got; ++i)
            if (batch[i].valid) ++seen[batch[i].index];
        tac_sampler_destroy(s);
    }
    for (size_t i = 0; i < N; ++i) cr_expect_eq(seen[i], 1);
}

Test(data_sampler, seek_past_the_end)
{
    tac_sampler *s = make(10, 3, 0, 1, 0, 0);
    tac_sample out[4];
    tac_sampler_seek(s, 10);
    cr_expect_eq(tac_sampler_next(s, 4, out), 0);
    tac_sampler_seek(s, UINT64_MAX);
    cr_expect_eq(tac_sampler_next(s, 4, out), 0);
    cr_expect_eq(tac_sampler_remaining(s, UINT64_MAX), 0);
    cr_expect_eq(tac_sampler_step_count(s, UINT64_MAX, 4), 0);
    tac_sampler_destroy(s);
}

Test(data_sampler, errors)
{
    tac_sampler_config c = TAC_SAMPLER_CONFIG_INIT;
    tac_sampler *const untouched = (tac_sampler *)&c;
    tac_sampler *s = untouched;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "empty"));
    c.count = 5;
    c.rank = 1;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "rank 1 is outside 0..0"));
    c.rank = c.replicas = 0;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "replicas must be at least 1"));
    c.replicas = 1;
    c.count = (size_t)UINT32_MAX + 1;
    cr_expect_eq(tac_sampler_create(ctx, &c, &s), TAC_ERR_ARG);
    cr_expect_eq(tac_sampler_create(ctx, NULL, &s), TAC_ERR_ARG);
    cr_expect_eq(s, untouched);
    tac_sampler_destroy(NULL);
}
