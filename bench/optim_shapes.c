/* optim_shapes.c: the cnn of the models' library (421,642 parameters) and GPT-2
 * with 12 layers (124M), whose vocabulary of 50,257 is padded to 50,304 rows.
 */
#include "optim_shapes.h"

#include <stdio.h>

enum { WIDTH = 768, LAYERS = 12, VOCABULARY = 50304, CONTEXT = 1024 };

typedef struct entry {
    const char *name;
    int ndim;
    size_t shape[4];
} entry;

static tac_status add(tac_params *p, const char *prefix, const entry *e)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, e->name);
    return tac_params_add(p, name, e->ndim, e->shape,
                          (tac_init){TAC_INIT_NORMAL, 0.02}, 0, NULL);
}

static tac_status add_all(tac_params *p, const char *prefix, const entry *list)
{
    for (; list->name; ++list) TAC_TRY(add(p, prefix, list));
    return TAC_OK;
}

static tac_status add_cnn(tac_params *p)
{
    static const entry list[] = {
        {"conv1.weight", 4, {32, 1, 3, 3}},
        {"conv1.bias", 1, {32}},
        {"conv2.weight", 4, {64, 32, 3, 3}},
        {"conv2.bias", 1, {64}},
        {"fc1.weight", 2, {128, 3136}},
        {"fc1.bias", 1, {128}},
        {"fc2.weight", 2, {10, 128}},
        {"fc2.bias", 1, {10}},
        {0},
    };
    return add_all(p, "", list);
}

static tac_status add_gpt2(tac_params *p)
{
    static const entry ends[] = {
        {"wte.weight", 2, {VOCABULARY, WIDTH}},
        {"wpe.weight", 2, {CONTEXT, WIDTH}},
        {"ln_f.weight", 1, {WIDTH}},
        {"ln_f.bias", 1, {WIDTH}},
        {0},
    };
    static const entry layer[] = {
        {"ln_1.weight", 1, {WIDTH}},
        {"ln_1.bias", 1, {WIDTH}},
        {"attn.c_attn.weight", 2, {3 * WIDTH, WIDTH}},
        {"attn.c_attn.bias", 1, {3 * WIDTH}},
        {"attn.c_proj.weight", 2, {WIDTH, WIDTH}},
        {"attn.c_proj.bias", 1, {WIDTH}},
        {"ln_2.weight", 1, {WIDTH}},
        {"ln_2.bias", 1, {WIDTH}},
        {"mlp.c_fc.weight", 2, {4 * WIDTH, WIDTH}},
        {"mlp.c_fc.bias", 1, {4 * WIDTH}},
        {"mlp.c_proj.weight", 2, {WIDTH, 4 * WIDTH}},
        {"mlp.c_proj.bias", 1, {WIDTH}},
        {0},
    };
    char prefix[16];
    TAC_TRY(add_all(p, "", ends));
    for (int i = 0; i < LAYERS; ++i) {
        snprintf(prefix, sizeof prefix, "h.%d.", i);
        TAC_TRY(add_all(p, prefix, layer));
    }
    return TAC_OK;
}

const tac__bench_shape *tac__bench_shapes(void)
{
    static const tac__bench_shape shapes[] = {
        {"cnn", "28x28 images, two convolutions, two layers", add_cnn, 64e6},
        {"gpt2", "12 layers of 768", add_gpt2, 4.5e9},
        {0},
    };
    return shapes;
}
