/* safetensors_writer.c: collecting tensors and metadata, with the checks that a
 * file needs of them. */
#include "safetensors_writer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

tac_status tac_safetensors_writer_create(tac_context *ctx,
                                         tac_safetensors_writer **out)
{
    tac_safetensors_writer *w = calloc(1, sizeof *w);

    if (!w)
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for a list of tensors");
    w->ctx = ctx;
    *out = w;
    return TAC_OK;
}

void tac_safetensors_writer_destroy(tac_safetensors_writer *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->count; i++) free(w->entries[i].name);
    for (size_t i = 0; i < w->n_pairs; i++) {
        free(w->pairs[i].key);
        free(w->pairs[i].value);
    }
    free(w->entries);
    free(w->pairs);
    free(w);
}

static tac_status no_memory(const tac_safetensors_writer *w)
{
    return tac_fail(w->ctx, TAC_ERR_NOMEM, "no memory for a list of tensors");
}

/* JSON has no other text. */
static int is_utf8(const char *text)
{
    json_t *j = json_string(text);

    json_decref(j);
    return j != NULL;
}

tac_status tac_safetensors_set_metadata(tac_safetensors_writer *w,
                                        const char *key, const char *value)
{
    tac__pair *p;

    if (!is_utf8(key) || !is_utf8(value))
        return tac_fail(w->ctx, TAC_ERR_ARG,
                        "metadata '%.200s' are no UTF-8 text", key);
    for (size_t i = 0; i < w->n_pairs; i++)
        if (!strcmp(w->pairs[i].key, key))
            return tac_fail(w->ctx, TAC_ERR_ARG,
                            "metadata '%.200s' are given twice", key);
    p = realloc(w->pairs, (w->n_pairs + 1) * sizeof *p);
    if (!p) return no_memory(w);
    w->pairs = p;
    p[w->n_pairs] = (tac__pair){strdup(key), strdup(value)};
    w->n_pairs++;
    return p[w->n_pairs - 1].key && p[w->n_pairs - 1].value ? TAC_OK
                                                            : no_memory(w);
}

/* Bytes of the tensor; 0 is fine, SIZE_MAX means that there is none such. */
static size_t tensor_bytes(tac_dtype dtype, int ndim, const size_t *shape)
{
    const size_t size = tac_dtype_size(dtype);
    size_t n = 1, empty = 0;

    if (size == 0 || ndim < 0 || ndim > TAC_STATE_MAX_DIMS) return SIZE_MAX;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            empty = 1;
        else if (n > SIZE_MAX / size / shape[d])
            return SIZE_MAX;
        else
            n *= shape[d];
    }
    return empty ? 0 : n * size;
}

static tac_status check_new(const tac_safetensors_writer *w, const char *name,
                            size_t bytes)
{
    if (!*name || !strcmp(name, "__metadata__") || !is_utf8(name))
        return tac_fail(w->ctx, TAC_ERR_ARG,
                        "'%.200s' is no name for a tensor: it is %s", name,
                        !*name          ? "empty"
                        : is_utf8(name) ? "reserved"
                                        : "no UTF-8 text");
    if (bytes == SIZE_MAX)
        return tac_fail(w->ctx, TAC_ERR_ARG,
                        "tensor '%.200s' has a type or shape that can't be",
                        name);
    for (size_t i = 0; i < w->count; i++)
        if (!strcmp(w->entries[i].name, name))
            return tac_fail(w->ctx, TAC_ERR_ARG,
                            "tensor '%.200s' is given twice", name);
    return TAC_OK;
}

static tac_status make_room(tac_safetensors_writer *w)
{
    const size_t room = w->room ? 2 * w->room : 16;
    tac__entry *list;

    if (w->count < w->room) return TAC_OK;
    list = realloc(w->entries, room * sizeof *list);
    if (!list) return no_memory(w);
    w->entries = list;
    w->room = room;
    return TAC_OK;
}

tac_status tac_safetensors_add(tac_safetensors_writer *w, const char *name,
                               tac_dtype dtype, int ndim, const size_t *shape,
                               const void *data)
{
    tac__entry e = {.dtype = dtype,
                    .ndim = ndim,
                    .bytes = tensor_bytes(dtype, ndim, shape),
                    .data = data};

    TAC_TRY(check_new(w, name, e.bytes));
    TAC_TRY(make_room(w));
    for (int d = 0; d < ndim; d++) e.shape[d] = shape[d];
    if (e.bytes <= TAC__SMALL) {
        if (e.bytes) memcpy(e.small, data, e.bytes);
        e.data = NULL;
    }
    e.name = strdup(name);
    if (!e.name) return no_memory(w);
    w->entries[w->count++] = e;
    return TAC_OK;
}

static tac_status collect(void *arg, const tac_state_item *item)
{
    return tac_safetensors_add(arg, item->name, item->dtype, item->ndim,
                               item->shape, item->data);
}

tac_state_visitor tac_safetensors_collect(tac_safetensors_writer *w)
{
    return (tac_state_visitor){collect, w, NULL};
}
