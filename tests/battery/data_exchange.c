/* Safetensors files for other programs: cli/safetensors.sh compares them with
 * the Python library's.
 *
 *     battery_data_exchange write FILE   the tensors below
 *     battery_data_exchange dump FILE    "NAME DTYPE SHAPE HEX" a tensor,
 * sorted
 *
 * Without arguments it writes, reads and compares by itself. */
#include "tac_check.h"

#include "data_files.h"
#include "tacit/half.h"
#include "tacit/safetensors.h"

static tac_context *ctx;

typedef struct sample {
    const char *name;
    tac_dtype dtype;
    int ndim;
    size_t shape[3], count;
} sample;

static const sample samples[] = {
    {"fc1.weight", TAC_F32, 2, {3, 5}, 15},
    {"fc1.bias", TAC_F32, 1, {5}, 5},
    {"half.weight", TAC_F16, 3, {1, 7, 3}, 21},
    {"brain.weight", TAC_BF16, 2, {4, 3}, 12},
    {"wide", TAC_F64, 1, {9}, 9},
    {"counter", TAC_I64, 0, {0}, 1},
    {"ids", TAC_I32, 1, {6}, 6},
    {"state", TAC_U8, 1, {13}, 13},
    {"empty", TAC_F32, 2, {0, 4}, 0},
    {"half.scalar", TAC_F16, 0, {0}, 1},
    {"half.empty", TAC_F16, 1, {0}, 0},
    {"brain.empty", TAC_BF16, 3, {2, 0, 3}, 0},
    {"brain.odd", TAC_BF16, 3, {1, 1, 1}, 1},
    {"brain.scalar", TAC_BF16, 0, {0}, 1},
    {"\xc3\xa9t\xc3\xa9 \"x\"\\\n", TAC_F32, 0, {0}, 1},
};

/* Element i is (i - 3) * 0.375 in floating point, 3 * i otherwise: exact in
 * every type, so that the other side can compute it. */
static void fill(const sample *s, void *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const float x = ((float)i - 3) * 0.375f;

        switch (s->dtype) {
        case TAC_F32: ((float *)out)[i] = x; break;
        case TAC_F64: ((double *)out)[i] = x; break;
        case TAC_F16: ((uint16_t *)out)[i] = tac_f32_to_f16(x); break;
        case TAC_BF16: ((uint16_t *)out)[i] = tac_f32_to_bf16(x); break;
        case TAC_I32: ((int32_t *)out)[i] = (int32_t)i * 3; break;
        case TAC_I64: ((int64_t *)out)[i] = (int64_t)i * 3; break;
        default: ((uint8_t *)out)[i] = (uint8_t)(i * 3); break;
        }
    }
}

static tac_status write_file(const char *path)
{
    static double data[sizeof samples / sizeof *samples][32];
    tac_safetensors_writer *w = NULL;
    tac_status s = tac_safetensors_writer_create(ctx, &w);

    if (s >= 0)
        s = tac_safetensors_set_metadata(w, "format", "pt \"\xc3\xa9\"");
    for (size_t i = 0; s >= 0 && i < sizeof samples / sizeof *samples; i++) {
        const sample *t = &samples[i];

        fill(t, data[i]);
        s = tac_safetensors_add(w, t->name, t->dtype, t->ndim, t->shape,
                                data[i]);
    }
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    return s;
}

static void print_item(const tac_safetensors_item *item)
{
    const unsigned char *p = item->data;

    for (const char *c = item->name; *c; c++)
        printf(*c == '\n' ? "\\n" : "%c", *c);
    printf(" %s [", tac_dtype_name(item->dtype));
    for (int d = 0; d < item->ndim; d++)
        printf("%s%zu", d ? "," : "", item->shape[d]);
    printf("] ");
    for (size_t i = 0; i < item->bytes; i++) printf("%02x", p[i]);
    printf("\n");
}

static tac_status dump_file(const char *path)
{
    tac_safetensors *f = NULL;

    TAC_TRY(tac_safetensors_open(ctx, path, &f));
    for (size_t i = 0; i < tac_safetensors_count(f); i++)
        print_item(tac_safetensors_get(f, i));
    tac_safetensors_close(f);
    return TAC_OK;
}

static void compare_file(const char *path)
{
    tac_safetensors *f = NULL;
    double want[32];

    if (!CHECK_OK(tac_safetensors_open(ctx, path, &f))) return;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *t = &samples[i];
        const tac_safetensors_item *item = tac_safetensors_find(f, t->name);

        if (!CHECK(item)) continue;
        fill(t, want);
        CHECK_EQ(item->dtype, t->dtype);
        CHECK_EQ_U64(item->bytes, t->count * tac_dtype_size(t->dtype));
        CHECK_EQ_MEM(item->data, want, item->bytes);
    }
    tac_safetensors_close(f);
}

int main(int argc, char **argv)
{
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    char dir[64], path[128];

    cc.threads = 1;
    if (tac_context_create(&cc, &ctx) < 0) return 2;
    if (argc == 3) {
        const tac_status s =
            strcmp(argv[1], "write") ? dump_file(argv[2]) : write_file(argv[2]);
        tac_context_destroy(ctx);
        return s < 0;
    }
    data_make_dir(dir);
    data_path(path, dir, "t.safetensors");
    CHECK_OK(write_file(path));
    compare_file(path);
    data_remove_dir(dir);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
