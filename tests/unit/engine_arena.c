/* engine_arena.c: the bump arena. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "engine_test.h"

static tac_context *quiet(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;

    config.log = eng_no_log;
    config.threads = 1;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    return ctx;
}

static void *get(tac_arena *a, size_t bytes)
{
    void *p = NULL;

    cr_assert_eq(tac_arena_alloc(a, bytes, &p), TAC_OK);
    return p;
}

Test(arena, alignment_order_and_sizes)
{
    tac_context *ctx = quiet();
    eng_counter c = {0, 0, 0};
    const tac_allocator alloc = eng_allocator(&c);
    tac_arena *a = NULL;

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    cr_assert_eq(c.allocs, 0);
    unsigned char *p = get(a, 1), *q = get(a, 0), *r = get(a, 65);
    cr_assert_eq((uintptr_t)p % 64, 0);
    cr_assert_eq(q - p, 64);
    cr_assert_eq(r - q, 0);
    cr_assert_eq(tac_arena_used(a), 64 + 128);
    cr_assert_eq(tac_arena_high_water(a), 64 + 128);
    tac_arena_destroy(a);
    cr_assert_eq(c.allocs, c.frees);
    tac_context_destroy(ctx);
}

/* What overflowed is merged at the reset; then nothing is allocated. */
Test(arena, overflow_is_merged_and_steady)
{
    tac_context *ctx = quiet();
    eng_counter c = {0, 0, 0};
    const tac_allocator alloc = eng_allocator(&c);
    tac_arena *a = NULL;
    size_t after_first = 0;

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    for (int step = 0; step < 5; ++step) {
        cr_assert_eq(tac_arena_reset(a, 0), TAC_OK);
        if (step == 1) after_first = c.allocs;
        for (size_t i = 0; i < 40; ++i) {
            unsigned char *p = get(a, 10000 * (i % 7));
            memset(p, (int)i, 10000 * (i % 7)); /* the sanitizer looks */
        }
        if (step == 0) cr_assert_gt(c.allocs, 1);
    }
    cr_assert_eq(c.allocs, after_first, "%zu, %zu", c.allocs, after_first);
    cr_assert_eq(c.allocs, c.frees + 1);
    cr_assert_eq(tac_arena_capacity(a), tac_arena_high_water(a));
    tac_arena_destroy(a);
    tac_context_destroy(ctx);
}

Test(arena, chunks_keep_their_contents)
{
    tac_context *ctx = quiet();
    const tac_allocator alloc = tac_host_allocator();
    tac_arena *a = NULL;
    size_t *p[300];

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    for (size_t i = 0; i < 300; ++i) {
        p[i] = get(a, 8 * (i + 1));
        for (size_t k = 0; k <= i; ++k) p[i][k] = i * 1000 + k;
    }
    for (size_t i = 0; i < 300; ++i)
        for (size_t k = 0; k <= i; ++k) cr_assert_eq(p[i][k], i * 1000 + k);
    tac_arena_destroy(a);
    tac_context_destroy(ctx);
}

Test(arena, mark_and_release)
{
    tac_context *ctx = quiet();
    const tac_allocator alloc = tac_host_allocator();
    tac_arena *a = NULL;

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    (void)get(a, 100);
    const tac_arena_mark m = tac_arena_get_mark(a);
    void *first = get(a, 1000);
    (void)get(a, 500000); /* another chunk */
    const size_t high = tac_arena_high_water(a);
    tac_arena_release(a, m);
    cr_assert_eq(tac_arena_used(a), 128);
    cr_assert_eq(get(a, 1000), first, "memory is used again");
    const size_t held = tac_arena_capacity(a);
    (void)get(a, 400000); /* fits the chunk that is there */
    cr_assert_eq(tac_arena_capacity(a), held);
    cr_assert_eq(tac_arena_high_water(a), high);
    tac_arena_destroy(a);
    tac_context_destroy(ctx);
}

Test(arena, dry_counts_alone_and_reserves)
{
    tac_context *ctx = quiet();
    eng_counter c = {0, 0, 0};
    const tac_allocator alloc = eng_allocator(&c);
    tac_arena *a = NULL;

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    cr_assert_eq(tac_arena_reset(a, 1), TAC_OK);
    cr_assert_null(get(a, (size_t)1 << 40), "no memory behind it");
    tac_arena_release(a, (tac_arena_mark){0, 0, 0});
    cr_assert_eq(c.allocs, 0);
    cr_assert_eq(tac_arena_high_water(a), (size_t)1 << 40);
    tac_arena_destroy(a);

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    cr_assert_eq(tac_arena_reset(a, 1), TAC_OK);
    for (int i = 0; i < 10; ++i) (void)get(a, 30000);
    cr_assert_eq(tac_arena_reset(a, 0), TAC_OK);
    for (int i = 0; i < 10; ++i) cr_assert_not_null(get(a, 30000));
    cr_assert_eq(c.allocs, 1, "one piece of the right size");
    tac_arena_destroy(a);

    cr_assert_eq(tac_arena_create(ctx, &alloc, &a), TAC_OK);
    tac_arena_reserve(a, 12345);
    cr_assert_eq(tac_arena_reset(a, 0), TAC_OK);
    cr_assert_geq(tac_arena_capacity(a), 12345);
    tac_arena_destroy(a);
    tac_context_destroy(ctx);
}

static tac_status refuse(void *arg, size_t bytes, void **out)
{
    (void)arg;
    (void)bytes;
    (void)out;
    return TAC_ERR_NOMEM;
}

static void nothing(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

Test(arena, failures)
{
    tac_context *ctx = quiet();
    const tac_allocator none = {NULL, refuse, nothing};
    tac_arena *a = NULL;
    void *p = &a;

    tac_arena_destroy(NULL);
    cr_assert_eq(tac_arena_create(ctx, &none, &a), TAC_OK);
    cr_assert_eq(tac_arena_alloc(a, 8, &p), TAC_ERR_NOMEM);
    cr_assert_eq(p, (void *)&a, "written only on success");
    cr_assert_eq(tac_arena_alloc(a, SIZE_MAX - 3, &p), TAC_ERR_NOMEM);
    cr_assert_eq(tac_arena_used(a), 0);
    tac_arena_destroy(a);
    tac_context_destroy(ctx);
}
