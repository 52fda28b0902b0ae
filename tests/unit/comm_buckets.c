/* comm_buckets.c: which parameters form which bucket.
 *
 * The vectors are those of the field's reference implementation (its test of
 * the bucket assignment by size); a random test checks the rule's invariants
 * against a straightforward second implementation. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "tacit/reducer.h"
#include "tacit/rng.h"

enum { MAX = 64 };

typedef struct expect {
    size_t buckets;
    size_t first[8], params[8], limits[8];
} expect;

static tac_param_desc desc(size_t count, tac_dtype dtype)
{
    return (tac_param_desc){.name = "p", .count = count, .dtype = dtype};
}

static void check(const tac_param_desc *d, size_t n, const size_t *order,
                  const size_t *limits, size_t n_limits, const expect *want)
{
    tac_bucket_plan plan;
    const tac_status s =
        tac_reducer_assign_buckets(d, n, order, limits, n_limits, &plan);
    cr_assert_eq(s, TAC_OK);
    cr_assert_eq(plan.buckets, want->buckets, "%zu buckets, not %zu",
                 plan.buckets, want->buckets);
    for (size_t b = 0; b < plan.buckets; ++b) {
        cr_assert_eq(plan.first[b], want->first[b], "bucket %zu", b);
        if (want->limits[0])
            cr_assert_eq(plan.limits[b], want->limits[b], "limit of %zu", b);
    }
    cr_assert_eq(plan.first[plan.buckets], n);
    for (size_t k = 0; k < n; ++k)
        cr_assert_eq(plan.params[k], want->params[k], "place %zu", k);
    tac_bucket_plan_free(&plan);
    cr_assert_eq(plan.buckets, 0);
}

Test(buckets, one_dtype_closes_at_the_limit)
{
    const tac_param_desc d[] = {desc(100, TAC_F32), desc(200, TAC_F32),
                                desc(100, TAC_F32), desc(50, TAC_F32)};
    const size_t limits[] = {400};
    const expect want = {4, {0, 1, 2, 3}, {0, 1, 2, 3}, {400, 400, 400, 400}};
    check(d, 4, NULL, limits, 1, &want);
}

Test(buckets, each_dtype_has_its_own_bucket)
{
    const tac_param_desc d[] = {desc(50, TAC_F32), desc(25, TAC_F64),
                                desc(50, TAC_F32), desc(25, TAC_F64),
                                desc(50, TAC_F32), desc(25, TAC_F64)};
    const size_t limits[] = {400};
    const expect want = {
        4, {0, 2, 4, 5}, {0, 2, 1, 3, 4, 5}, {400, 400, 400, 400}};
    check(d, 6, NULL, limits, 1, &want);
}

Test(buckets, the_last_limit_repeats)
{
    const tac_param_desc d[] = {desc(10, TAC_F32), desc(10, TAC_F32),
                                desc(10, TAC_F32), desc(10, TAC_F32)};
    const size_t limits[] = {40, 80};
    const expect want = {3, {0, 1, 3}, {0, 1, 2, 3}, {40, 80, 80}};
    check(d, 4, NULL, limits, 2, &want);
}

Test(buckets, each_dtype_walks_through_the_limits)
{
    const tac_param_desc d[] = {desc(50, TAC_F32), desc(25, TAC_F64),
                                desc(50, TAC_F32), desc(25, TAC_F64),
                                desc(50, TAC_F32), desc(25, TAC_F64)};
    const size_t limits[] = {200, 400};
    const expect want = {
        4, {0, 1, 2, 4}, {0, 1, 2, 4, 3, 5}, {200, 200, 400, 400}};
    check(d, 6, NULL, limits, 2, &want);
}

Test(buckets, a_parameter_is_never_split)
{
    const tac_param_desc d[] = {desc(1, TAC_F32), desc(1000000, TAC_F32),
                                desc(1, TAC_F32)};
    const size_t limits[] = {64};
    const expect want = {2, {0, 2}, {0, 1, 2}, {64, 64}};
    check(d, 3, NULL, limits, 1, &want);
}

Test(buckets, empty_parameters_and_none)
{
    const tac_param_desc d[] = {desc(0, TAC_F32), desc(0, TAC_F32)};
    const size_t limits[] = {64};
    const expect one = {1, {0}, {0, 1}, {64}};
    const expect none = {0};
    check(d, 2, NULL, limits, 1, &one);
    check(d, 0, NULL, limits, 1, &none);
    check(NULL, 0, NULL, limits, 1, &none);
}

Test(buckets, limit_zero_closes_at_once)
{
    const tac_param_desc d[] = {desc(0, TAC_F32), desc(3, TAC_F32)};
    const size_t limits[] = {0};
    const expect want = {2, {0, 1}, {0, 1}, {0}};
    check(d, 2, NULL, limits, 1, &want);
}

/* A given order: buckets are sorted by when their last parameter comes. */
Test(buckets, order_of_readiness)
{
    const tac_param_desc d[] = {desc(10, TAC_F32), desc(10, TAC_F64),
                                desc(10, TAC_F32), desc(10, TAC_F32)};
    const size_t order[] = {1, 3, 2, 0}, limits[] = {80};
    const expect want = {3, {0, 1, 3}, {1, 3, 2, 0}, {80, 80, 80}};
    check(d, 4, order, limits, 1, &want);
    const size_t open_first[] = {0, 1, 3, 2}; /* f32: {0,3}, {2}; f64: {1} */
    const expect later = {3, {0, 1, 3}, {1, 0, 3, 2}, {80, 80, 80}};
    check(d, 4, open_first, limits, 1, &later);
}

Test(buckets, bad_arguments)
{
    const tac_param_desc d[] = {desc(SIZE_MAX / 2, TAC_F32),
                                desc(1, (tac_dtype)99)};
    const tac_param_desc good[] = {desc(1, TAC_F32), desc(1, TAC_F32)};
    const size_t limits[] = {64}, twice[] = {0, 0}, beyond[] = {0, 2};
    tac_bucket_plan plan = {77, NULL, NULL, NULL};
    cr_assert_eq(tac_reducer_assign_buckets(d, 1, NULL, limits, 1, &plan),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_reducer_assign_buckets(d + 1, 1, NULL, limits, 1, &plan),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_reducer_assign_buckets(good, 2, twice, limits, 1, &plan),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_reducer_assign_buckets(good, 2, beyond, limits, 1, &plan),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_reducer_assign_buckets(good, 2, NULL, limits, 0, &plan),
                 TAC_ERR_ARG);
    cr_assert_eq(plan.buckets, 77, "written on failure");
    tac_bucket_plan_free(NULL);
}

/* ---- random lists against a second implementation -------------------------
 */

static tac_rng_key key = {11, TAC_STREAM_USER, 0};
static uint64_t drawn;

static size_t draw(size_t bound)
{
    return (size_t)tac_rng_below(&key, drawn++, bound);
}

/* bucket[k]: the bucket of the k-th taken, numbered by opening; one dtype at a
 * time, in a loop over all. */
static void second_opinion(const tac_param_desc *d, size_t n,
                           const size_t *order, const size_t *limits,
                           size_t n_limits, size_t *bucket, size_t *limit)
{
    for (int t = 0; t < TAC_DTYPE_COUNT; ++t) {
        size_t bytes = 0, step = 0, head = MAX;
        for (size_t k = 0; k < n; ++k) {
            const size_t p = order[k];
            if (d[p].dtype != (tac_dtype)t) continue;
            if (head == MAX) head = k;
            bucket[p] = head;
            limit[p] = limits[step];
            bytes += d[p].count * tac_dtype_size(d[p].dtype);
            if (bytes < limits[step]) continue;
            bytes = 0;
            head = MAX;
            if (step + 1 < n_limits) ++step;
        }
    }
}

Test(buckets, random_lists)
{
    for (int round = 0; round < 500; ++round) {
        tac_param_desc d[MAX];
        size_t order[MAX], bucket[MAX], limit[MAX], limits[3];
        const size_t n = draw(MAX), n_limits = 1 + draw(3);
        for (size_t i = 0; i < n; ++i) {
            d[i] = desc(draw(40), (tac_dtype)draw(TAC_DTYPE_COUNT));
            order[i] = i;
        }
        for (size_t i = n; i > 1; --i) {
            const size_t j = draw(i), t = order[j];
            order[j] = order[i - 1];
            order[i - 1] = t;
        }
        for (size_t i = 0; i < n_limits; ++i) limits[i] = draw(500);
        tac_bucket_plan plan;
        cr_assert_eq(
            tac_reducer_assign_buckets(d, n, order, limits, n_limits, &plan),
            TAC_OK);
        second_opinion(d, n, order, limits, n_limits, bucket, limit);
        size_t seen[MAX] = {0};
        for (size_t b = 0; b < plan.buckets; ++b) {
            const size_t head = bucket[plan.params[plan.first[b]]];
            cr_assert_lt(plan.first[b], plan.first[b + 1], "empty bucket");
            for (size_t k = plan.first[b]; k < plan.first[b + 1]; ++k) {
                cr_assert_eq(bucket[plan.params[k]], head);
                cr_assert_eq(limit[plan.params[k]], plan.limits[b]);
                ++seen[plan.params[k]];
            }
            for (size_t c = 0; c < b; ++c)
                cr_assert_neq(bucket[plan.params[plan.first[c]]], head);
        }
        for (size_t i = 0; i < n; ++i) cr_assert_eq(seen[i], 1);
        tac_bucket_plan_free(&plan);
    }
}
