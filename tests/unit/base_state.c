/* base_state.c: the state visitor's helpers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tacit/state.h"

typedef struct counter {
    uint64_t steps;
    double rate;
    float weights[2][3];
} counter;

static tac_status walk_counter(void *object, const tac_state_visitor *v)
{
    counter *c = object;
    const size_t shape[] = {2, 3};
    TAC_TRY(tac_state_visit_u64(v, "steps", &c->steps));
    TAC_TRY(tac_state_visit_f64(v, "rate", &c->rate));
    return tac_state_visit(v, "weights", TAC_F32, 2, shape, c->weights);
}

static tac_status walk_pair(void *object, const tac_state_visitor *v)
{
    counter *c = object;
    TAC_TRY(tac_state_walk(v, "first.", walk_counter, &c[0]));
    return tac_state_walk(v, "second.", walk_counter, &c[1]);
}

typedef struct seen {
    char text[1024];
    int calls, fail_at;
} seen;

static tac_status look(void *arg, const tac_state_item *item)
{
    seen *s = arg;
    const size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s:%s:%d:%zu ", item->name,
             tac_dtype_name(item->dtype), item->ndim,
             tac_state_item_count(item));
    return ++s->calls == s->fail_at ? TAC_ERR_IO : TAC_OK;
}

Test(state, names_types_and_counts)
{
    counter c = {0};
    seen s = {0};
    const tac_state_visitor v = {look, &s, NULL};
    cr_assert_eq(walk_counter(&c, &v), TAC_OK);
    cr_assert_str_eq(s.text, "steps:i64:0:1 rate:f64:0:1 weights:f32:2:6 ");
}

Test(state, prefixes_nest)
{
    counter c[2] = {{0}, {0}};
    seen s = {0};
    const tac_state_visitor v = {look, &s, "run."};
    cr_assert_eq(walk_pair(c, &v), TAC_OK);
    cr_assert_str_eq(s.text,
                     "run.first.steps:i64:0:1 run.first.rate:f64:0:1 "
                     "run.first.weights:f32:2:6 run.second.steps:i64:0:1 "
                     "run.second.rate:f64:0:1 run.second.weights:f32:2:6 ");
}

Test(state, stops_at_the_first_failure)
{
    counter c[2] = {{0}, {0}};
    for (int at = 1; at <= 6; ++at) {
        seen s = {.fail_at = at};
        const tac_state_visitor v = {look, &s, ""};
        cr_assert_eq(walk_pair(c, &v), TAC_ERR_IO);
        cr_assert_eq(s.calls, at);
    }
}

static tac_status load(void *arg, const tac_state_item *item)
{
    const unsigned char byte = *(const unsigned char *)arg;
    memset(item->data, byte,
           tac_state_item_count(item) * tac_dtype_size(item->dtype));
    return TAC_OK;
}

Test(state, visitors_may_write)
{
    counter c = {0};
    unsigned char byte = 0x7b;
    const tac_state_visitor v = {load, &byte, NULL};
    cr_assert_eq(walk_counter(&c, &v), TAC_OK);
    cr_assert_eq(c.steps, UINT64_C(0x7b7b7b7b7b7b7b7b));
    cr_assert_eq(memcmp(c.weights, &c.steps, 8), 0);
}

Test(state, empty_and_largest_shapes)
{
    float x = 0;
    seen s = {0};
    const tac_state_visitor v = {look, &s, NULL};
    const size_t empty[] = {3, 0, 5};
    const size_t ones[TAC_STATE_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    cr_assert_eq(tac_state_visit(&v, "e", TAC_F32, 3, empty, &x), TAC_OK);
    cr_assert_eq(tac_state_visit(&v, "o", TAC_U8, TAC_STATE_MAX_DIMS, ones, &x),
                 TAC_OK);
    cr_assert_str_eq(s.text, "e:f32:3:0 o:u8:8:1 ");
}
