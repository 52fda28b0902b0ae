/* engine_optim_state.c: an optimizer's state: bytes, predicted and allocated,
 * names, types of its own, and that it is all that a run needs to go on. */
#include "engine_optim_model.h"

/* ------------------------------------------------------- bytes of state */

static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

Test(optim_state, bytes_are_as_predicted_and_as_allocated)
{
    static const tac_dtype types[] = {TAC_F32, TAC_F64, TAC_F16};
    const size_t dense = 4208 + 304 + 80; /* with padding of 16 elements */
    const size_t quantised = 2 * (lines(4200) + lines(17 * 4));
    const size_t factors = lines(70 * 4) + lines(60 * 4) + lines(5 * 4) +
                           lines(60 * 4) + lines(70 * 4);
    const size_t want[4] = {0, 8 * dense, factors, quantised + 8 * (304 + 80)};

    for (int t = 0; t < 3; ++t) {
        for (int k = 0; k < 4; ++k) {
            if (types[t] == TAC_F64 && k == TAC_OPTIMIZER_ADAMW8BIT) continue;
            eng_world w = model(types[t]), later = eng_open(NULL, types[t], 2);
            tac_optimizer_config c =
                tac_optimizer_defaults((tac_optimizer_kind)k);
            eng_counter n = {0, 0, 0};
            const tac_allocator alloc = eng_allocator(&n);
            size_t state = 9, scratch = 9;

            c.state = &alloc;
            add(&later, "fc.weight", 2, 70, 60, 0);
            add(&later, "out.weight", 2, 5, 60, 0);
            add(&later, "fc.bias", 1, 70, 0, 0);
            add(&later, "old.weight", 2, 64, 64, TAC_PARAM_FROZEN);
            cr_assert_eq(
                tac_optimizer_predict(later.params, &c, &state, &scratch),
                TAC_OK);
            tac_optimizer *o = make(&w, &c);
            cr_assert_eq(tac_optimizer_state_bytes(o), state);
            cr_assert_eq(tac_optimizer_scratch_bytes(o), scratch);
            cr_assert_eq(n.bytes, state);
            if (types[t] == TAC_F32) cr_assert_eq(state, want[k], "kind %d", k);
            cr_assert_eq(scratch > 0, k == TAC_OPTIMIZER_ADAFACTOR);
            tac_optimizer_destroy(o);
            cr_assert_eq(n.frees, n.allocs);
            eng_close(&w);
            eng_close(&later);
        }
    }
}

/* --------------------------------------------------- names and own types */

typedef struct item {
    char name[64];
    tac_dtype dtype;
    size_t count, bytes;
    void *data;
} item;

typedef struct shown {
    item list[40];
    size_t n;
} shown;

static tac_status show(void *arg, const tac_state_item *i)
{
    shown *s = arg;
    item *x = &s->list[s->n++];

    snprintf(x->name, sizeof x->name, "%s", i->name);
    x->dtype = i->dtype;
    x->count = tac_state_item_count(i);
    x->bytes = x->count * tac_dtype_size(i->dtype);
    x->data = i->data;
    return TAC_OK;
}

static shown walk(tac_optimizer *o)
{
    shown s = {.n = 0};
    const tac_state_visitor v = {show, &s, NULL};

    cr_assert_eq(tac_optimizer_walk(o, &v), TAC_OK);
    return s;
}

static void expect(const shown *s, size_t i, const char *name, tac_dtype t,
                   size_t count)
{
    cr_assert_str_eq(s->list[i].name, name);
    cr_assert_eq(s->list[i].dtype, t, "%s", name);
    cr_assert_eq(s->list[i].count, count, "%s", name);
}

Test(optim_state, state_has_its_own_types)
{
    eng_world w = model(TAC_F32);
    tac_optimizer_config c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW8BIT);
    tac_optimizer *o = make(&w, &c);
    shown s = walk(o);

    cr_assert_eq(s.n, 9);
    expect(&s, 1, "optimizer.exp_avg.fc.weight", TAC_U8, 4200);
    expect(&s, 2, "optimizer.exp_avg_absmax.fc.weight", TAC_F32, 17);
    expect(&s, 3, "optimizer.exp_avg_sq.fc.weight", TAC_U8, 4200);
    expect(&s, 4, "optimizer.exp_avg_sq_absmax.fc.weight", TAC_F32, 17);
    expect(&s, 5, "optimizer.exp_avg.out.weight", TAC_F32, 300);
    expect(&s, 6, "optimizer.exp_avg_sq.out.weight", TAC_F32, 300);
    for (size_t e = 0; e < 4200; ++e) { /* codes of 0.0 */
        cr_assert_eq(((uint8_t *)s.list[1].data)[e], 127);
        cr_assert_eq(((uint8_t *)s.list[3].data)[e], 0);
    }
    tac_optimizer_destroy(o);
    c = tac_optimizer_defaults(TAC_OPTIMIZER_ADAFACTOR);
    c.beta1 = 0.9;
    o = make(&w, &c);
    s = walk(o);
    cr_assert_eq(s.n, 9);
    expect(&s, 1, "optimizer.exp_avg_sq_row.fc.weight", TAC_F32, 70);
    expect(&s, 2, "optimizer.exp_avg_sq_col.fc.weight", TAC_F32, 60);
    expect(&s, 3, "optimizer.exp_avg.fc.weight", TAC_F32, 4200);
    expect(&s, 7, "optimizer.exp_avg_sq.fc.bias", TAC_F32, 70);
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* The threshold itself. */
Test(optim_state, tensors_from_4096_elements_go_8_bit)
{
    eng_world w = eng_open(NULL, TAC_F32, 1);
    const tac_optimizer_config c =
        tac_optimizer_defaults(TAC_OPTIMIZER_ADAMW8BIT);

    add(&w, "small", 1, 4095, 0, 0);
    add(&w, "large", 1, 4096, 0, 0);
    layout(&w);
    tac_optimizer *o = make(&w, &c);
    cr_assert_str_eq(settings(o, 0).state, "exp_avg f32, exp_avg_sq f32");
    cr_assert_str_eq(settings(o, 1).state,
                     "exp_avg u8 / 256, exp_avg_sq u8 / 256");
    cr_assert_eq(settings(o, 1).state_bytes, 2 * (4096 + 16 * 4));
    tac_optimizer_destroy(o);
    eng_close(&w);
}

/* Everything shown, copied into a second optimizer, goes on as the first. */
Test(optim_state, state_can_be_carried_over)
{
    for (int k = 0; k < 4; ++k) {
        eng_world a = model(TAC_F32), b = model(TAC_F32);
        tac_optimizer_config c = tac_optimizer_defaults((tac_optimizer_kind)k);

        if (k == TAC_OPTIMIZER_SGD) c.momentum = 0.9;
        tac_optimizer *x = make(&a, &c), *y = make(&b, &c);
        const size_t bytes = 4 * tac_params_padded(a.params);
        for (uint64_t step = 0; step < 20; ++step) {
            if (step == 10) { /* "load" */
                const shown from = walk(x), to = walk(y);
                cr_assert_eq(from.n, to.n);
                for (size_t i = 0; i < from.n; ++i)
                    memcpy(to.list[i].data, from.list[i].data,
                           from.list[i].bytes);
                memcpy(tac_params_values(b.params), tac_params_values(a.params),
                       bytes);
            }
            fill_grads(&a, step, 0.1);
            fill_grads(&b, step, 0.1);
            cr_assert_eq(tac_optimizer_step(x, NULL), TAC_OK);
            if (step >= 10) cr_assert_eq(tac_optimizer_step(y, NULL), TAC_OK);
        }
        cr_assert_arr_eq(tac_params_values(a.params),
                         tac_params_values(b.params), bytes);
        const shown from = walk(x), to = walk(y);
        for (size_t i = 0; i < from.n; ++i)
            cr_assert_arr_eq(from.list[i].data, to.list[i].data,
                             from.list[i].bytes);
        tac_optimizer_destroy(x);
        tac_optimizer_destroy(y);
        eng_close(&a);
        eng_close(&b);
    }
}
