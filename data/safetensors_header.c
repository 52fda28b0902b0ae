/* safetensors_header.c: from the header's text to a list of tensors and the
 * metadata. Each piece is parsed by itself (jansson, no key twice). */
#include "safetensors_impl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 65535 };

/* ---- text ---------------------------------------------------------------- */

/* Decodes a quoted text into f->text; *place is where. A decoded text and its 0
 * are no longer than the quoted one, so there is always room. */
static tac_status keep_text(tac_safetensors *f, tac__span quoted,
                            const char *what, size_t *place)
{
    json_error_t e = {.text = "it is of another type"};
    json_t *j = NULL;

    if (*quoted.p == '"')
        j = json_loadb(quoted.p, quoted.n, JSON_DECODE_ANY, &e);
    if (!j)
        return tac__safetensors_bad(f, "%s in the header is no text: %s", what,
                                    e.text);
    *place = f->text_used;
    memcpy(f->text + f->text_used, json_string_value(j),
           json_string_length(j) + 1);
    f->text_used += json_string_length(j) + 1;
    json_decref(j);
    return TAC_OK;
}

/* The array with room for one more element of `size` bytes; NULL: no memory,
 * which was reported, and the array is as it was. */
static void *grow(const tac_safetensors *f, void *array, size_t used,
                  size_t *room, size_t size)
{
    const size_t more = *room ? 2 * *room : 16;
    void *p = used < *room ? array : realloc(array, more * size);

    if (!p)
        tac_fail(f->ctx, TAC_ERR_NOMEM, "no memory for the header of %s",
                 f->path);
    else if (used >= *room)
        *room = more;
    return p;
}

static tac_status add_pair(tac_safetensors *f, size_t place)
{
    size_t *pairs =
        grow(f, f->pairs, f->n_pairs, &f->pairs_room, sizeof *f->pairs);

    if (!pairs) return TAC_ERR_NOMEM;
    f->pairs = pairs;
    pairs[f->n_pairs++] = place;
    return TAC_OK;
}

static tac_status add_item(tac_safetensors *f, const tac_safetensors_item *item)
{
    tac_safetensors_item *items =
        grow(f, f->items, f->count, &f->room, sizeof *f->items);

    if (!items) return TAC_ERR_NOMEM;
    f->items = items;
    items[f->count++] = *item;
    return TAC_OK;
}

/* ---- metadata ------------------------------------------------------------ */

static int compare_places(const void *a, const void *b, void *text)
{
    return strcmp((char *)text + *(const size_t *)a,
                  (char *)text + *(const size_t *)b);
}

static tac_status add_metadata(tac_safetensors *f, tac__span object)
{
    tac__pairs it = tac__pairs_of(object);
    tac__span key, value;
    size_t place, ignored;
    int more;

    if (f->has_metadata)
        return tac__safetensors_bad(f, "it has \"__metadata__\" twice");
    f->has_metadata = 1;
    while ((more = tac__pairs_next(&it, &key, &value)) > 0) {
        TAC_TRY(keep_text(f, key, "a key of the metadata", &place));
        TAC_TRY(keep_text(f, value, "a value of the metadata", &ignored));
        TAC_TRY(add_pair(f, place));
    }
    if (more < 0)
        return tac__safetensors_bad(f, "its metadata are no valid JSON: %s",
                                    it.problem);
    if (f->n_pairs)
        qsort_r(f->pairs, f->n_pairs, sizeof *f->pairs, compare_places,
                f->text);
    for (size_t i = 1; i < f->n_pairs; i++)
        if (!strcmp(f->text + f->pairs[i - 1], f->text + f->pairs[i]))
            return tac__safetensors_bad(
                f, "its metadata have the key '%.200s' twice",
                f->text + f->pairs[i]);
    return TAC_OK;
}

/* ---- the header ---------------------------------------------------------- */

static tac_status add_tensor(tac_safetensors *f, size_t name, tac__span text)
{
    tac_safetensors_item item = {.name = f->text + name};

    TAC_TRY(tac__safetensors_describe(f, text, &item));
    return add_item(f, &item);
}

tac_status tac__safetensors_parse(tac_safetensors *f, tac__span header)
{
    tac__pairs it = tac__pairs_of(header);
    tac__span key, value;
    size_t name = 0;
    int more;

    if (header.n == 0 || *header.p != '{')
        return tac__safetensors_bad(f, "its header does not begin with '{'");
    while ((more = tac__pairs_next(&it, &key, &value)) > 0) {
        if (key.n > MAX_NAME)
            return tac__safetensors_bad(f, "it has a name of %zu bytes", key.n);
        TAC_TRY(keep_text(f, key, "a name", &name));
        TAC_TRY(strcmp(f->text + name, "__metadata__")
                    ? add_tensor(f, name, value)
                    : add_metadata(f, value));
    }
    if (more < 0)
        return tac__safetensors_bad(f, "its header is no valid JSON: %s",
                                    it.problem);
    return TAC_OK;
}
