/* engine_params.c: registering, laying out, first values. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "engine_test.h"
#include "tacit/state.h"

static const tac_init zeros = {TAC_INIT_ZEROS, 0};

static size_t add(eng_world *w, const char *name, int ndim, size_t a, size_t b,
                  tac_init init)
{
    const size_t shape[2] = {a, b};
    size_t index = SIZE_MAX;

    cr_assert_eq(tac_params_add(w->params, name, ndim, shape, init, 0, &index),
                 TAC_OK);
    return index;
}

Test(params, layout_follows_the_order_and_is_aligned)
{
    const tac_dtype types[4] = {TAC_F32, TAC_F64, TAC_F16, TAC_BF16};

    for (int k = 0; k < 4; ++k) {
        eng_world w = eng_open("ref", types[k], 1);
        eng_counter values = {0, 0, 0}, grads = {0, 0, 0};
        const tac_allocator va = eng_allocator(&values);
        const tac_allocator ga = eng_allocator(&grads);
        const size_t order[4] = {2, 0, 3, 1};
        const size_t unit = 64 / tac_dtype_size(types[k]);

        add(&w, "a", 2, 3, 5, zeros);
        add(&w, "b", 1, unit, 0, zeros);
        add(&w, "c", 0, 0, 0, zeros);
        add(&w, "d", 2, 0, 9, zeros);
        cr_assert_eq(tac_params_elements(w.params), 15 + unit + 1);
        cr_assert_null(tac_params_values(w.params));
        cr_assert_eq(tac_params_layout(w.params, order, &va, &ga), TAC_OK);
        const size_t a_size = types[k] == TAC_F64 ? 16 : unit;
        const tac_dtype grad = types[k] == TAC_F64 ? TAC_F64 : TAC_F32;
        cr_assert_eq(tac_params_get(w.params, 2)->offset, 0);
        cr_assert_eq(tac_params_get(w.params, 0)->offset, unit);
        cr_assert_eq(tac_params_get(w.params, 3)->offset, unit + a_size);
        cr_assert_eq(tac_params_get(w.params, 1)->offset, unit + a_size);
        cr_assert_eq(tac_params_padded(w.params), unit + a_size + unit);
        cr_assert_eq(values.allocs, 1);
        cr_assert_eq(grads.allocs, 1);
        for (size_t i = 0; i < tac_params_padded(w.params); ++i) {
            cr_assert_eq(eng_get(types[k], tac_params_values(w.params), i), 0);
            cr_assert_eq(eng_get(grad, tac_params_grads(w.params), i), 0);
        }
        cr_assert_eq(tac_params_grad_dtype(w.params), grad);
        cr_assert_eq(values.bytes,
                     tac_params_padded(w.params) * tac_dtype_size(types[k]));
        cr_assert_eq(grads.bytes,
                     tac_params_padded(w.params) * tac_dtype_size(grad));
        for (size_t i = 0; i < 4; ++i) {
            const size_t at = tac_params_get(w.params, i)->offset;
            cr_assert_eq((uintptr_t)tac_params_value(w.params, i) % 64, 0);
            cr_assert_eq((uintptr_t)tac_params_grad(w.params, i) % 64, 0);
            cr_assert_eq((char *)tac_params_grad(w.params, i),
                         (char *)tac_params_grads(w.params) +
                             at * tac_dtype_size(grad));
        }
        cr_assert_arr_eq(tac_params_order(w.params), order, sizeof order);
        cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL),
                     TAC_ERR_STATE);
        eng_close(&w);
        cr_assert_eq(values.frees, 1);
        cr_assert_eq(grads.frees, 1);
    }
}

/* Whose an element is, against the plain definition. */
Test(params, at)
{
    const size_t sizes[7] = {0, 3, 64, 0, 1, 17, 0};
    const size_t order[7] = {5, 0, 1, 3, 2, 4, 6};
    eng_world w = eng_open("ref", TAC_F16, 1);
    char name[2] = "a";

    for (size_t i = 0; i < 7; ++i, ++name[0])
        add(&w, name, 1, sizes[i], 0, zeros);
    cr_assert_eq(tac_params_at(w.params, 0), SIZE_MAX);
    cr_assert_eq(tac_params_layout(w.params, order, NULL, NULL), TAC_OK);
    for (size_t at = 0; at < tac_params_padded(w.params) + 2; ++at) {
        size_t want = SIZE_MAX;
        for (size_t i = 0; i < 7; ++i) {
            const tac_param *q = tac_params_get(w.params, i);
            if (at >= q->offset && at < q->offset + q->count) want = i;
        }
        cr_assert_eq(tac_params_at(w.params, at), want, "element %zu", at);
    }
    cr_assert_eq(tac_params_at(w.params, SIZE_MAX), SIZE_MAX);
    eng_close(&w);
}

/* 16-bit values are the f32 ones, rounded; a walk shows them as they are. */
static tac_status see(void *arg, const tac_state_item *item)
{
    cr_assert_eq(item->dtype, *(tac_dtype *)arg);
    return TAC_OK;
}

Test(params, init_of_16_bits)
{
    tac_dtype types[2] = {TAC_F16, TAC_BF16};

    for (int k = 0; k < 2; ++k) {
        eng_world a = eng_open("ref", TAC_F32, 1);
        eng_world b = eng_open("ref", types[k], 3);
        const tac_state_visitor v = {.arg = &types[k], .visit = see};
        add(&a, "x", 2, 70, 91, (tac_init){TAC_INIT_NORMAL, 0.1});
        add(&b, "x", 2, 70, 91, (tac_init){TAC_INIT_NORMAL, 0.1});
        cr_assert_eq(tac_params_layout(a.params, NULL, NULL, NULL), TAC_OK);
        cr_assert_eq(tac_params_layout(b.params, NULL, NULL, NULL), TAC_OK);
        cr_assert_eq(tac_params_init(a.params, 7), TAC_OK);
        cr_assert_eq(tac_params_init(b.params, 7), TAC_OK);
        for (size_t i = 0; i < 70 * 91; ++i) {
            const double x = eng_get(TAC_F32, tac_params_values(a.params), i);
            double rounded;
            eng_set(types[k], &rounded, 0, x);
            cr_assert_eq(eng_get(types[k], tac_params_values(b.params), i),
                         eng_get(types[k], &rounded, 0));
        }
        cr_assert_eq(tac_params_walk(b.params, &v), TAC_OK);
        eng_close(&a);
        eng_close(&b);
    }
}

Test(params, errors)
{
    eng_world w = eng_open("ref", TAC_F32, 1);
    const size_t shape[2] = {SIZE_MAX / 2, 3};
    const size_t twice[2] = {1, 1}, out[2] = {0, 2};
    tac_params *p = NULL;
    char text[512];

    cr_assert_eq(tac_params_create(w.dev, TAC_I32, &p), TAC_ERR_ARG);
    cr_assert_eq(tac_params_add(w.params, "x", 2, shape, zeros, 0, NULL),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_params_add(w.params, "", 1, twice, zeros, 0, NULL),
                 TAC_ERR_ARG);
    cr_assert_eq(tac_params_add(w.params, "x", 9, twice, zeros, 0, NULL),
                 TAC_ERR_ARG);
    add(&w, "x", 1, 3, 0, zeros);
    cr_assert_eq(tac_params_add(w.params, "x", 1, twice, zeros, 0, NULL),
                 TAC_ERR_ARG);
    cr_assert_not_null(strstr(eng_error(&w, text, sizeof text), "x"));
    add(&w, "y", 1, 3, 0, zeros);
    cr_assert_eq(tac_params_init(w.params, 1), TAC_ERR_STATE);
    cr_assert_eq(tac_params_layout(w.params, twice, NULL, NULL), TAC_ERR_ARG);
    cr_assert_eq(tac_params_layout(w.params, out, NULL, NULL), TAC_ERR_ARG);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_add(w.params, "z", 1, twice, zeros, 0, NULL),
                 TAC_ERR_STATE);
    cr_assert_eq(tac_params_find(w.params, "y"), 1);
    cr_assert_eq(tac_params_find(w.params, "z"), SIZE_MAX);
    cr_assert_null(tac_params_get(w.params, 2));
    cr_assert_null(tac_params_value(w.params, 2));
    tac_params_destroy(NULL);
    eng_close(&w);
}

Test(params, empty_registry)
{
    eng_world w = eng_open("ref", TAC_F32, 1);

    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(w.params, 1), TAC_OK);
    cr_assert_eq(tac_params_padded(w.params), 0);
    eng_close(&w);
}

/* Mean, variance, range and fourth moment of n draws. */
typedef struct moments {
    double mean, var, kurtosis, least, most;
} moments;

static moments measure(const float *x, size_t n)
{
    moments m = {0, 0, 0, 1e9, -1e9};

    for (size_t i = 0; i < n; ++i) m.mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; ++i) {
        const double d = (double)x[i] - m.mean;
        m.var += d * d / (double)n;
        m.kurtosis += d * d * d * d / (double)n;
        if (x[i] < m.least) m.least = x[i];
        if (x[i] > m.most) m.most = x[i];
    }
    m.kurtosis /= m.var * m.var;
    return m;
}

Test(params, first_values_have_their_distributions)
{
    eng_world w = eng_open(NULL, TAC_F32, 2);
    const size_t n = 200 * 400;

    add(&w, "zeros", 2, 200, 400, zeros);
    add(&w, "ones", 2, 200, 400, (tac_init){TAC_INIT_ONES, 0});
    add(&w, "fan", 2, 200, 400, (tac_init){TAC_INIT_FAN_IN, 0});
    add(&w, "bias", 1, n, 0, (tac_init){TAC_INIT_FAN_IN, 25});
    add(&w, "normal", 2, 200, 400, (tac_init){TAC_INIT_NORMAL, 0.02});
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(w.params, 42), TAC_OK);

    for (size_t i = 0; i < n; ++i) {
        cr_assert_eq(((float *)tac_params_value(w.params, 0))[i], 0.0F);
        cr_assert_eq(((float *)tac_params_value(w.params, 1))[i], 1.0F);
    }
    const double bounds[2] = {1 / 20.0, 1 / 5.0};
    for (size_t k = 0; k < 2; ++k) {
        const double b = bounds[k];
        const moments m = measure(tac_params_value(w.params, 2 + k), n);
        cr_assert_float_eq(m.mean, 0, 5 * b / sqrt(3.0 * (double)n));
        cr_assert_float_eq(m.var, b * b / 3, 0.02 * b * b / 3);
        cr_assert_float_eq(m.kurtosis, 1.8, 0.03);
        cr_assert(m.least >= -b && m.least < -0.999 * b);
        cr_assert(m.most <= b && m.most > 0.999 * b);
    }
    const moments m = measure(tac_params_value(w.params, 4), n);
    cr_assert_float_eq(m.mean, 0, 5 * 0.02 / sqrt((double)n));
    cr_assert_float_eq(m.var, 0.0004, 0.02 * 0.0004);
    cr_assert_float_eq(m.kurtosis, 3, 0.1);
    eng_close(&w);
}

static void fill_model(eng_world *w)
{
    add(w, "a", 2, 70, 90, (tac_init){TAC_INIT_FAN_IN, 0});
    add(w, "b", 1, 70, 0, (tac_init){TAC_INIT_FAN_IN, 90});
    add(w, "c", 2, 33, 70, (tac_init){TAC_INIT_NORMAL, 1});
}

/* The values depend on seed and index, not on layout, threads or dtype. */
Test(params, first_values_are_a_pure_function)
{
    eng_world a = eng_open(NULL, TAC_F32, 1), b = eng_open(NULL, TAC_F32, 3);
    eng_world c = eng_open(NULL, TAC_F64, 1);
    const size_t order[3] = {2, 1, 0};

    fill_model(&a);
    fill_model(&b);
    fill_model(&c);
    cr_assert_eq(tac_params_layout(a.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_layout(b.params, order, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_layout(c.params, order, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_init(a.params, 7), TAC_OK);
    cr_assert_eq(tac_params_init(b.params, 7), TAC_OK);
    cr_assert_eq(tac_params_init(c.params, 7), TAC_OK);
    for (size_t i = 0; i < 3; ++i) {
        const size_t n = tac_params_get(a.params, i)->count;
        const float *x = tac_params_value(a.params, i);
        cr_assert_arr_eq(x, tac_params_value(b.params, i), n * sizeof *x);
        for (size_t e = 0; e < n; ++e)
            cr_assert_eq(x[e],
                         (float)((double *)tac_params_value(c.params, i))[e]);
    }
    float before[70];
    memcpy(before, tac_params_value(a.params, 1), sizeof before);
    cr_assert_eq(tac_params_init(a.params, 8), TAC_OK);
    cr_assert_neq(memcmp(before, tac_params_value(a.params, 1), sizeof before),
                  0);
    cr_assert_eq(tac_params_hash(a.params), tac_params_hash(b.params));
    cr_assert_neq(tac_params_hash(a.params), tac_params_hash(c.params));
    eng_close(&a);
    eng_close(&b);
    eng_close(&c);
}

static tac_status collect(void *arg, const tac_state_item *item)
{
    char *text = arg;
    const size_t used = strlen(text);

    snprintf(text + used, 256 - used, "%s/%zu ", item->name,
             tac_state_item_count(item));
    ((float *)item->data)[0] = 5.0F;
    return TAC_OK;
}

Test(params, walk_shows_all)
{
    eng_world w = eng_open(NULL, TAC_F32, 1);
    char text[256] = "";
    const tac_state_visitor v = {collect, text, NULL};

    fill_model(&w);
    cr_assert_eq(tac_params_layout(w.params, NULL, NULL, NULL), TAC_OK);
    cr_assert_eq(tac_params_walk(w.params, &v), TAC_OK);
    cr_assert_str_eq(text, "model.a/6300 model.b/70 model.c/2310 ");
    cr_assert_eq(*(float *)tac_params_value(w.params, 2), 5.0F);
    eng_close(&w);
}
