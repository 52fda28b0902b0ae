/* A folder of four IDX files that make a dataset. */
#include "fuzz.h"

#include "tacit/data.h"
#include "tacit/dataset.h"

static const char *const names[] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

static void take_some(tac_dataset *set)
{
    const tac_dataset_info info = tac_dataset_get_info(set);

    if (info.count > UINT32_MAX) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_part rest = {data, bytes};
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    tac_data out;
    char spec[96];

    for (int i = 0; i < 4; i++) {
        const fuzz_part part = i < 3 ? fuzz_cut(&rest) : rest;

        fuzz_put(names[i], part.p, part.n);
    }
    snprintf(spec, sizeof spec, "idx:%s", fuzz_dir());
    if (tac_data_open(fuzz_context(), spec, &dc, &out) < 0) return 0;
    take_some(out.train);
    take_some(out.val);
    take_some(out.test);
    tac_data_close(&out);
    return 0;
}

static size_t images(uint8_t *out, int ndim, uint8_t n)
{
    size_t count = n;

    memset(out, 0, 20);
    out[2] = 8;
    out[3] = (uint8_t)ndim;
    out[7] = n;
    for (int d = 1; d < ndim; d++) {
        out[4 + 4 * d + 3] = 2;
        count *= 2;
    }
    for (size_t i = 0; i < count; i++)
        out[4 + 4 * ndim + i] = (uint8_t)(ndim == 1 ? i % 3 : 5 * i);
    return 4 + 4 * (size_t)ndim + count;
}

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const uint8_t counts[][2] = {{24, 4}, {60, 9}, {1, 1}, {0, 0}};
    uint8_t file[4096], *at = out;

    if (i >= 4) return 0;
    const int ndim = i == 1 ? 4 : 3;
    at = fuzz_append(at, file, images(file, ndim, counts[i][0]));
    at = fuzz_append(at, file, images(file, 1, counts[i][0]));
    at = fuzz_append(at, file, images(file, ndim, counts[i][1]));
    return (size_t)(at - out) + images(at, 1, counts[i][1]);
}
