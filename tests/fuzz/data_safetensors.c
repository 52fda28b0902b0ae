/* A safetensors file: opened, walked, read to the last byte and loaded. */
#include "fuzz.h"

#include "tacit/safetensors.h"

typedef struct thing {
    float a[2];
    int64_t step;
    uint8_t u[3];
} thing;

static tac_status walk_thing(void *object, const tac_state_visitor *v)
{
    const size_t two = 2, three = 3;
    thing *t = object;

    TAC_TRY(tac_state_visit(v, "a", TAC_F32, 1, &two, t->a));
    TAC_TRY(tac_state_visit(v, "step", TAC_I64, 0, NULL, &t->step));
    return tac_state_visit(v, "u", TAC_U8, 1, &three, t->u);
}

static void read_all(const tac_safetensors *f)
{
    volatile unsigned sum = 0;

    for (size_t i = 0; i < tac_safetensors_count(f); i++) {
        const tac_safetensors_item *item = tac_safetensors_get(f, i);
        const unsigned char *p = item->data;

        for (size_t k = 0; k < item->bytes; k++) sum += p[k];
        if (tac_safetensors_find(f, item->name) != item) abort();
    }
    (void)sum; /* that the bytes can be read is all */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tac_safetensors *f = NULL;
    thing t = {{0, 0}, 0, {0, 0, 0}};

    if (tac_safetensors_open(fuzz_context(), fuzz_file(data, bytes), &f) < 0)
        return 0;
    read_all(f);
    tac_safetensors_metadata(f, "format");
    tac_safetensors_load(f, walk_thing, &t, 0);
    tac_safetensors_load(f, walk_thing, &t,
                         TAC_LOAD_CONVERT | TAC_LOAD_PARTIAL);
    tac_safetensors_close(f);
    return 0;
}

static const struct {
    const char *header;
    size_t data;
} seeds[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
     "\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
     "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]},"
     "\"__metadata__\":{\"format\":\"pt\"}}",
     19},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1,2,1],\"data_offsets\":[0,16]},"
     "\"empty\":{\"dtype\":\"F16\",\"shape\":[0,4],\"data_offsets\":[0,0]}}",
     16},
    {"{}", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1099511627776],"
     "\"data_offsets\":[0,4398046511104]}}",
     8},
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    if (i >= sizeof seeds / sizeof *seeds) return 0;
    const size_t n = strlen(seeds[i].header), padded = (n + 7) / 8 * 8;

    for (int b = 0; b < 8; b++) out[b] = (uint8_t)(padded >> (8 * b));
    memset(out + 8, ' ', padded);
    memcpy(out + 8, seeds[i].header, n);
    for (size_t k = 0; k < seeds[i].data; k++)
        out[8 + padded + k] = (uint8_t)(3 * k);
    return 8 + padded + seeds[i].data;
}
