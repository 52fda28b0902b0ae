/* Safetensors files: what is written is read back, to the byte; states are
 * loaded whole or not at all, and never converted; weights are, if asked for.
 * (Damaged files: battery/data_damaged.c.) */
#include <criterion/criterion.h>
#include <math.h>

#include "data_files.h"
#include "tacit/half.h"
#include "tacit/safetensors.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static tac_context *ctx;
static char dir[64], path[128];

static void setup(void)
{
    ctx = data_context();
    data_make_dir(dir);
    data_path(path, dir, "t.safetensors");
}

static void teardown(void)
{
    data_remove_dir(dir);
    tac_context_destroy(ctx);
}

TestSuite(data_safetensors, .init = setup, .fini = teardown);

static tac_safetensors_writer *writer(void)
{
    tac_safetensors_writer *w = NULL;
    cr_assert_eq(tac_safetensors_writer_create(ctx, &w), TAC_OK);
    return w;
}

static void write_out(tac_safetensors_writer *w)
{
    cr_assert_eq(tac_safetensors_write(w, path, NULL), TAC_OK);
    tac_safetensors_writer_destroy(w);
}

static tac_safetensors *reopen(void)
{
    tac_safetensors *f = NULL;
    cr_assert_eq(tac_safetensors_open(ctx, path, &f), TAC_OK);
    return f;
}

static size_t read_file(unsigned char *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    cr_assert(f);
    const size_t n = fread(out, 1, room, f);
    fclose(f);
    return n;
}

/* A file of two tensors and metadata, byte by byte. */
Test(data_safetensors, layout_of_the_file)
{
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
    const float b[2] = {1, -2};
    const unsigned char a[3] = {7, 8, 9};
    unsigned char got[512];
    const size_t n = sizeof header - 1, padded = (n + 7) / 8 * 8;
    tac_safetensors_writer *w = writer();
    uint64_t hash = 0;
    cr_expect_eq(tac_safetensors_set_metadata(w, "k", "v"), TAC_OK);
    cr_expect_eq(tac_safetensors_add(w, "a", TAC_U8, 1, (size_t[]){3}, a),
                 TAC_OK);
    cr_expect_eq(tac_safetensors_add(w, "b", TAC_F32, 2, (size_t[]){1, 2}, b),
                 TAC_OK);
    cr_assert_eq(tac_safetensors_write(w, path, &hash), TAC_OK);
    tac_safetensors_writer_destroy(w);
    const size_t bytes = read_file(got, sizeof got);
    cr_assert_eq(bytes, 8 + padded + 11);
    cr_expect(got[0] == padded && !got[1] && !got[7]);
    cr_expect_arr_eq(got + 8, header, n);
    for (size_t i = n; i < padded; ++i) cr_expect_eq(got[8 + i], ' ');
    cr_expect_arr_eq(got + 8 + padded, b, 8);
    cr_expect_arr_eq(got + 8 + padded + 8, a, 3);
    cr_expect_eq(hash, XXH3_64bits(got, bytes));
}

typedef struct shape {
    int ndim;
    size_t size[TAC_STATE_MAX_DIMS];
} shape;

static const shape shapes[] = {
    {0, {0}},       {1, {1}},
    {1, {0}},       {1, {17}},
    {2, {3, 5}},    {2, {0, 5}},
    {3, {2, 0, 3}}, {4, {1, 3, 1, 7}},
    {1, {4097}},    {8, {1, 2, 1, 2, 1, 2, 1, 3}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static size_t elements(const shape *s)
{
    size_t n = 1;
    for (int d = 0; d < s->ndim; ++d) n *= s->size[d];
    return n;
}

static void name_of(char out[64], int t, int i)
{
    snprintf(out, 64, "%s.%d \"q\\\" \xc3\xa9\n", tac_dtype_name((tac_dtype)t),
             i);
}

/* Every type in every shape, with arbitrary bits: 70 tensors. */
Test(data_safetensors, all_types_and_shapes)
{
    static unsigned char data[TAC_DTYPE_COUNT][SHAPES][4097 * 8];
    tac_safetensors_writer *w = writer();
    char name[64];
    for (int t = 0; t < TAC_DTYPE_COUNT; ++t)
        for (int i = 0; i < SHAPES; ++i) {
            for (size_t k = 0; k < sizeof data[t][i]; ++k)
                data[t][i][k] = (unsigned char)(k * 37 + (size_t)(t * 11 + i));
            name_of(name, t, i);
            cr_assert_eq(tac_safetensors_add(w, name, (tac_dtype)t,
                                             shapes[i].ndim, shapes[i].size,
                                             data[t][i]),
                         TAC_OK);
        }
    write_out(w);
    tac_safetensors *f = reopen();
    cr_expect_eq(tac_safetensors_count(f), TAC_DTYPE_COUNT * SHAPES);
    for (int t = 0; t < TAC_DTYPE_COUNT; ++t)
        for (int i = 0; i < SHAPES; ++i) {
            name_of(name, t, i);
            const tac_safetensors_item *item = tac_safetensors_find(f, name);
            cr_assert(item, "%s", name);
            const size_t n =
                elements(&shapes[i]) * tac_dtype_size((tac_dtype)t);
            cr_expect_eq(item->dtype, (tac_dtype)t);
            cr_expect_eq(item->ndim, shapes[i].ndim);
            cr_expect_eq(item->bytes, n);
            for (int d = 0; d < item->ndim; ++d)
                cr_expect_eq(item->shape[d], shapes[i].size[d]);
            cr_expect(!memcmp(item->data, data[t][i], n));
        }
    /* In the file's order: types, then names; each element aligned, as the
     * header is padded and large elements come first. */
    for (size_t i = 0; i < tac_safetensors_count(f); ++i) {
        const tac_safetensors_item *item = tac_safetensors_get(f, i);
        cr_expect_eq((uintptr_t)item->data % tac_dtype_size(item->dtype), 0);
    }
    cr_expect_null(tac_safetensors_get(f, TAC_DTYPE_COUNT * SHAPES));
    cr_expect_null(tac_safetensors_find(f, "f32"));
    tac_safetensors_close(f);
}

Test(data_safetensors, nothing_in_it)
{
    write_out(writer());
    tac_safetensors *f = reopen();
    cr_expect_eq(tac_safetensors_count(f), 0);
    cr_expect_null(tac_safetensors_find(f, "a"));
    cr_expect_null(tac_safetensors_metadata(f, "a"));
    tac_safetensors_close(f);
    tac_safetensors_close(NULL);
    tac_safetensors_writer_destroy(NULL);
}

Test(data_safetensors, metadata)
{
    tac_safetensors_writer *w = writer();
    cr_expect_eq(tac_safetensors_set_metadata(w, "model", "cnn"), TAC_OK);
    cr_expect_eq(tac_safetensors_set_metadata(w, "", ""), TAC_OK);
    cr_expect_eq(tac_safetensors_set_metadata(w, "t\n\"", "\\ \xe2\x82\xac"),
                 TAC_OK);
    cr_expect_eq(tac_safetensors_set_metadata(w, "model", "mlp"), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "'model' are given twice"));
    cr_expect_eq(tac_safetensors_set_metadata(w, "x", "\xff"), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "no UTF-8"));
    write_out(w);
    tac_safetensors *f = reopen();
    cr_expect_str_eq(tac_safetensors_metadata(f, "model"), "cnn");
    cr_expect_str_eq(tac_safetensors_metadata(f, ""), "");
    cr_expect_str_eq(tac_safetensors_metadata(f, "t\n\""), "\\ \xe2\x82\xac");
    cr_expect_null(tac_safetensors_metadata(f, "data"));
    tac_safetensors_close(f);
}

Test(data_safetensors, writer_refuses)
{
    tac_safetensors_writer *w = writer();
    const float x = 1;
    cr_expect_eq(tac_safetensors_add(w, "a", TAC_F32, 0, NULL, &x), TAC_OK);
    cr_expect_eq(tac_safetensors_add(w, "a", TAC_F32, 0, NULL, &x),
                 TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "'a' is given twice"));
    cr_expect_eq(tac_safetensors_add(w, "", TAC_F32, 0, NULL, &x), TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "it is empty"));
    cr_expect_eq(tac_safetensors_add(w, "__metadata__", TAC_F32, 0, NULL, &x),
                 TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "it is reserved"));
    cr_expect_eq(tac_safetensors_add(w, "\xc0\x80", TAC_F32, 0, NULL, &x),
                 TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "no UTF-8"));
    cr_expect_eq(tac_safetensors_add(w, "b", (tac_dtype)99, 0, NULL, &x),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_safetensors_add(w, "b", TAC_F32, 9, NULL, &x),
                 TAC_ERR_ARG);
    cr_expect_eq(tac_safetensors_add(w, "b", TAC_F32, 2,
                                     (size_t[]){SIZE_MAX / 4, 2}, &x),
                 TAC_ERR_ARG);
    cr_expect(data_message_has(ctx, "can't be"));
    snprintf(path, sizeof path, "%s/none/t.safetensors", dir);
    cr_expect_eq(tac_safetensors_write(w, path, NULL), TAC_ERR_IO);
    cr_expect(data_message_has(ctx, "No such file"));
    cr_expect(data_message_has(ctx, "check the path"));
    tac_safetensors_writer_destroy(w);
}

/* ---- loading ------------------------------------------------------------- */

/* An object with state: a matrix, a counter, a scalar that lives only as long
 * as the visit, and, if asked for, 8-bit moments. */
typedef struct thing {
    float matrix[2][3];
    uint64_t counter;
    unsigned char moments[5];
    tac_dtype moments_dtype;
    double seen;
} thing;

static tac_status walk_thing(void *arg, const tac_state_visitor *v)
{
    thing *t = arg;
    double passing = 2.5;
    TAC_TRY(
        tac_state_visit(v, "matrix", TAC_F32, 2, (size_t[]){2, 3}, t->matrix));
    TAC_TRY(tac_state_visit_u64(v, "counter", &t->counter));
    TAC_TRY(tac_state_visit_f64(v, "passing", &passing));
    t->seen = passing;
    if (t->moments_dtype == TAC_DTYPE_COUNT) return TAC_OK;
    return tac_state_visit(v, "moments", t->moments_dtype, 1, (size_t[]){5},
                           t->moments);
}

static thing make_thing(void)
{
    return (thing){.matrix = {{1, -0.0f, INFINITY}, {4, 5, 6}},
                   .counter = UINT64_C(0xfedcba9876543210),
                   .moments = {1, 2, 3, 4, 255},
                   .moments_dtype = TAC_U8};
}

static void save_thing(thing *t)
{
    tac_safetensors_writer *w = writer();
    const tac_state_visitor v = tac_safetensors_collect(w);
    cr_assert_eq(walk_thing(t, &v), TAC_OK);
    write_out(w);
}

Test(data_safetensors, state_round_trip)
{
    thing a = make_thing(), b = {.moments_dtype = TAC_U8};
    save_thing(&a);
    a.seen = 0;
    tac_safetensors *f = reopen();
    cr_expect_eq(tac_safetensors_find(f, "moments")->dtype, TAC_U8);
    cr_expect_eq(tac_safetensors_load(f, walk_thing, &b, 0), TAC_OK);
    cr_expect(!memcmp(a.matrix, b.matrix, sizeof a.matrix));
    cr_expect_eq(b.counter, a.counter);
    cr_expect_eq(b.seen, 2.5);
    cr_expect_arr_eq(b.moments, a.moments, 5);
    tac_safetensors_close(f);
}

/* Refused, named, and nothing written: `b` stays as it was. */
static void refused(tac_state_walk_fn *walk, unsigned flags, const char *text,
                    const char *more)
{
    thing b = {.matrix = {{9}}, .counter = 9, .moments_dtype = TAC_U8};
    tac_safetensors *f = reopen();
    cr_expect_eq(tac_safetensors_load(f, walk, &b, flags), TAC_ERR_DATA,
                 "%s was loaded", text);
    cr_expect(data_message_has(ctx, text));
    cr_expect(data_message_has(ctx, more));
    cr_expect(data_message_has(ctx, path));
    cr_expect(b.matrix[0][0] == 9 && b.matrix[0][1] == 0 && b.counter == 9);
    tac_safetensors_close(f);
}

static tac_status walk_f32_moments(void *arg, const tac_state_visitor *v)
{
    thing *t = arg;
    float moments[5];
    TAC_TRY(
        tac_state_visit(v, "matrix", TAC_F32, 2, (size_t[]){2, 3}, t->matrix));
    TAC_TRY(tac_state_visit_u64(v, "counter", &t->counter));
    TAC_TRY(tac_state_visit_f64(v, "passing", &t->seen));
    return tac_state_visit(v, "moments", TAC_F32, 1, (size_t[]){5}, moments);
}

static tac_status walk_other_shape(void *arg, const tac_state_visitor *v)
{
    thing *t = arg;
    return tac_state_visit(v, "matrix", TAC_F32, 2, (size_t[]){3, 2},
                           t->matrix);
}

static tac_status walk_less(void *arg, const tac_state_visitor *v)
{
    thing *t = arg;
    return tac_state_visit(v, "matrix", TAC_F32, 2, (size_t[]){2, 3},
                           t->matrix);
}

static tac_status walk_more(void *arg, const tac_state_visitor *v)
{
    static float extra;
    TAC_TRY(walk_thing(arg, v));
    return tac_state_visit(v, "extra", TAC_F32, 0, NULL, &extra);
}

Test(data_safetensors, states_are_never_cast)
{
    thing a = make_thing();
    save_thing(&a);
    refused(walk_f32_moments, 0, "'moments' is u8, but f32 is needed",
            "a state is never converted");
    refused(walk_f32_moments, TAC_LOAD_CONVERT, "'moments' is u8",
            "only floating-point");
    refused(walk_f32_moments, TAC_LOAD_PARTIAL, "'moments' is u8", "never");
    refused(walk_other_shape, TAC_LOAD_PARTIAL, "shape (2,3)", "(3,2)");
    refused(walk_less, 0, "has tensor '", "no");
    refused(walk_more, 0, "lacks tensor 'extra'", "settings");
}

Test(data_safetensors, partial)
{
    thing a = make_thing(), b = {.moments_dtype = TAC_U8, .counter = 3};
    save_thing(&a);
    tac_safetensors *f = reopen();
    cr_expect_eq(tac_safetensors_load(f, walk_less, &b, TAC_LOAD_PARTIAL),
                 TAC_OK);
    cr_expect(b.matrix[1][2] == 6 && b.counter == 3);
    cr_expect_eq(tac_safetensors_load(f, walk_more, &b, TAC_LOAD_PARTIAL),
                 TAC_OK);
    cr_expect_eq(b.counter, a.counter);
    tac_safetensors_close(f);
}

/* ---- conversion ---------------------------------------------------------- */

enum { MANY = 2500 }; /* more than one chunk, and a rest */

typedef struct vector {
    tac_dtype dtype;
    void *data;
} vector;

static tac_status walk_vector(void *arg, const tac_state_visitor *v)
{
    vector *x = arg;
    return tac_state_visit(v, "w", x->dtype, 1, (size_t[]){MANY}, x->data);
}

static void save_vector(tac_dtype dtype, const void *data)
{
    tac_safetensors_writer *w = writer();
    cr_assert_eq(tac_safetensors_add(w, "w", dtype, 1, (size_t[]){MANY}, data),
                 TAC_OK);
    write_out(w);
}

static void load_vector(tac_dtype dtype, void *data)
{
    vector x = {dtype, data};
    tac_safetensors *f = reopen();
    if (tac_safetensors_find(f, "w")->dtype != dtype)
        cr_expect_eq(tac_safetensors_load(f, walk_vector, &x, 0), TAC_ERR_DATA);
    cr_expect_eq(tac_safetensors_load(f, walk_vector, &x, TAC_LOAD_CONVERT),
                 TAC_OK);
    tac_safetensors_close(f);
}

/* All 16-bit patterns reach f32 as the scalar conversions say. */
Test(data_safetensors, half_weights_become_f32)
{
    static uint16_t in[MANY];
    static float out[MANY];
    for (int t = 0; t < 2; ++t)
        for (uint32_t base = 0; base < 65536; base += MANY) {
            for (uint32_t i = 0; i < MANY; ++i) in[i] = (uint16_t)(base + i);
            save_vector(t ? TAC_BF16 : TAC_F16, in);
            load_vector(TAC_F32, out);
            for (uint32_t i = 0; i < MANY; ++i) {
                const float want =
                    t ? tac_bf16_to_f32(in[i]) : tac_f16_to_f32(in[i]);
                cr_assert(!memcmp(&out[i], &want, 4) ||
                              (isnan(out[i]) && isnan(want)),
                          "%x", in[i]);
            }
        }
}

Test(data_safetensors, weights_between_all_float_types)
{
    static double wide[MANY], wide2[MANY];
    static float single[MANY];
    static uint16_t half[MANY];
    for (int i = 0; i < MANY; ++i)
        wide[i] = ldexp(1 + i / 3001.0, i % 40 - 25) * (i % 2 ? -1 : 1);
    /* 1 + 2^-11 is halfway between two f16; a hair more must round up, which
     * by way of an f32 it would not. And the same in bf16: 1 + 2^-8. */
    wide[0] = 1 + ldexp(1, -11) + ldexp(1, -40);
    wide[1] = 1 + ldexp(1, -8) + ldexp(1, -40);
    wide[2] = 1e300;
    wide[3] = NAN;
    wide[4] = -1e-300;
    wide[5] = 65520 - 1e-9; /* below the first that becomes inf */
    save_vector(TAC_F64, wide);
    load_vector(TAC_F16, half);
    cr_expect_eq(half[0], 0x3c01);
    cr_expect_eq(half[2], 0x7c00);
    cr_expect(isnan(tac_f16_to_f32(half[3])));
    cr_expect_eq(half[4], 0x8000);
    cr_expect_eq(half[5], 0x7bff);
    load_vector(TAC_BF16, half);
    cr_expect_eq(half[1], 0x3f81);
    load_vector(TAC_F32, single);
    for (int i = 0; i < MANY; ++i)
        if (i != 3) cr_assert_eq(single[i], (float)wide[i]);
    save_vector(TAC_F32, single);
    load_vector(TAC_F64, wide2);
    for (int i = 0; i < MANY; ++i)
        if (i != 3) cr_assert_eq(wide2[i], (double)single[i]);
    load_vector(TAC_F16, half);
    for (int i = 0; i < MANY; ++i)
        cr_assert(half[i] == tac_f32_to_f16(single[i]) || i == 3);
}

/* Others need not pad their headers. */
Test(data_safetensors, unaligned_data)
{
    static const char header[] = "{\"w\":{\"dtype\":\"F16\",\"shape\":[2500],"
                                 "\"data_offsets\":[0,5000]} }";
    static unsigned char file[8 + sizeof header + 5000];
    static float out[MANY];
    const size_t n = sizeof header - 1;
    cr_assert(n % 2 == 1, "make the header's length odd");
    file[0] = (unsigned char)n;
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < MANY; ++i) {
        const uint16_t h = tac_f32_to_f16((float)i);
        memcpy(file + 8 + n + 2 * i, &h, 2);
    }
    data_write(path, file, 8 + n + 5000);
    load_vector(TAC_F32, out);
    for (size_t i = 0; i < MANY; ++i)
        cr_assert_eq(out[i], tac_f16_to_f32(tac_f32_to_f16((float)i)));
}
