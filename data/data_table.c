/* data_table.c: which data can be named, and opening one of them. */
#include <stdio.h>
#include <string.h>

#include "families.h"

static const tac_data_family families[] = {
    {"fashion-mnist", "60,000 + 10,000 clothes, 28x28, 10 classes",
     tac__data_open_fashion_mnist},
    {"idx", "idx:DIR, a folder of four IDX files named as MNIST's",
     tac__data_open_idx},
    {"synth", "synth or synth:N, N made-up images, needs no files",
     tac__data_open_synth},
    {NULL, NULL, NULL},
};

const tac_data_family *tac_data_families(void)
{
    return families;
}

static tac_status unknown_name(tac_context *ctx, const char *name)
{
    char known[256] = "";
    for (const tac_data_family *f = families; f->name; ++f) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
                 f->name);
    }
    return tac_fail(ctx, TAC_ERR_CONFIG,
                    "unknown data '%s': known are %s (idx:DIR, synth:N)", name,
                    known);
}

tac_status tac_data_open(tac_context *ctx, const char *name,
                         const tac_data_config *config, tac_data *out)
{
    static const tac_data_config defaults = TAC_DATA_CONFIG_INIT;
    if (!name || !out)
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_data_open: name and out must not be NULL");
    const char *colon = strchr(name, ':');
    const size_t length = colon ? (size_t)(colon - name) : strlen(name);
    for (const tac_data_family *f = families; f->name; ++f) {
        if (strlen(f->name) == length && !memcmp(f->name, name, length))
            return f->open(ctx, colon ? colon + 1 : NULL,
                           config ? config : &defaults, out);
    }
    return unknown_name(ctx, name);
}

void tac_data_close(tac_data *data)
{
    if (!data) return;
    tac_dataset_destroy(data->train);
    tac_dataset_destroy(data->val);
    tac_dataset_destroy(data->test);
    memset(data, 0, sizeof(*data));
}

tac_status tac__data_assemble(tac_context *ctx, tac_dataset *all,
                              tac_dataset *test, tac_data *out)
{
    tac_data data = {NULL, NULL, test};
    const tac_status status =
        tac_dataset_split(ctx, all, &data.train, &data.val);
    tac_dataset_destroy(all); /* the two parts retain it */
    if (status < 0) {
        tac_dataset_destroy(test);
        return status;
    }
    *out = data;
    return TAC_OK;
}
