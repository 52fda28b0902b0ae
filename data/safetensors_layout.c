/* safetensors_layout.c: all tensors together: names are unique, and the offsets
 * cover the data exactly. O(n log n). */
#include "safetensors_impl.h"

#include <stdlib.h>
#include <string.h>

/* By place, empty tensors before what begins where they do. */
static int compare_items(const void *a, const void *b)
{
    const tac_safetensors_item *x = a, *y = b;

    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b, void *items)
{
    const tac_safetensors_item *list = items;

    return strcmp(list[*(const size_t *)a].name, list[*(const size_t *)b].name);
}

static tac_status check_names(tac_safetensors *f)
{
    f->by_name = malloc((f->count + 1) * sizeof *f->by_name);
    if (!f->by_name)
        return tac_fail(f->ctx, TAC_ERR_NOMEM, "no memory for the header of %s",
                        f->path);
    for (size_t i = 0; i < f->count; i++) f->by_name[i] = i;
    if (f->count)
        qsort_r(f->by_name, f->count, sizeof *f->by_name, compare_names,
                f->items);
    for (size_t i = 1; i < f->count; i++)
        if (!compare_names(&f->by_name[i - 1], &f->by_name[i], f->items))
            return tac__safetensors_bad(f, "it has tensor '%.200s' twice",
                                        f->items[f->by_name[i]].name);
    return TAC_OK;
}

static size_t begin_of(const tac_safetensors *f, size_t i)
{
    return (size_t)((const unsigned char *)f->items[i].data - f->data);
}

tac_status tac__safetensors_check_layout(tac_safetensors *f)
{
    size_t end = 0;

    if (f->count) qsort(f->items, f->count, sizeof *f->items, compare_items);
    TAC_TRY(check_names(f));
    for (size_t i = 0; i < f->count; i++) {
        const size_t begin = begin_of(f, i);

        if (begin < end)
            return tac__safetensors_bad(f,
                                        "tensors '%.200s' and '%.200s' overlap",
                                        f->items[i - 1].name, f->items[i].name);
        if (begin > end)
            return tac__safetensors_bad(
                f, "there is a hole of %zu bytes before tensor '%.200s'",
                begin - end, f->items[i].name);
        end = begin + f->items[i].bytes;
    }
    if (end < f->data_bytes)
        return tac__safetensors_bad(f, "%zu bytes follow the last tensor",
                                    f->data_bytes - end);
    return TAC_OK;
}
