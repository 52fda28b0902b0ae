/* safetensors_tensor.c: the description of one tensor, checked alone: type,
 * shape, product, offsets within the file. */
#include "safetensors_impl.h"

#include <inttypes.h>
#include <jansson.h>

enum { MAX_DESCRIPTION = 4096 };

/* A size: a whole number from 0 on. `what` begins the message. */
static tac_status read_size(const tac_safetensors *f, const char *name,
                            const char *what, const json_t *j, uint64_t *out)
{
    if (!json_is_number(j))
        return tac__safetensors_bad(f, "%s of tensor '%.200s' is no number",
                                    what, name);
    if (!json_is_integer(j))
        return tac__safetensors_bad(
            f, "%s of tensor '%.200s' is %g, which is no whole number", what,
            name, json_real_value(j));
    if (json_integer_value(j) < 0)
        return tac__safetensors_bad(
            f, "%s of tensor '%.200s' is %lld, which is negative", what, name,
            (long long)json_integer_value(j));
    *out = (uint64_t)json_integer_value(j);
    return TAC_OK;
}

static tac_status read_dtype(const tac_safetensors *f, const json_t *j,
                             tac_safetensors_item *item)
{
    const json_t *dtype = json_object_get(j, "dtype");

    if (!json_is_string(dtype))
        return tac__safetensors_bad(f, "tensor '%.200s' has no \"dtype\"",
                                    item->name);
    if (tac__safetensors_dtype_parse(json_string_value(dtype), &item->dtype))
        return TAC_OK;
    return tac_fail(f->ctx, TAC_ERR_DATA,
                    "%s: tensor '%.200s' is of type %.40s, which is not "
                    "supported (F32 F64 F16 BF16 I32 I64 U8 are); convert it "
                    "with the program that wrote it",
                    f->path, item->name, json_string_value(dtype));
}

/* Sets item->bytes: what the shape asks for. */
static tac_status read_shape(const tac_safetensors *f, const json_t *j,
                             tac_safetensors_item *item)
{
    const json_t *shape = json_object_get(j, "shape");
    size_t most = SIZE_MAX / tac_dtype_size(item->dtype), n = 1;
    int empty = 0;

    if (!json_is_array(shape))
        return tac__safetensors_bad(f, "tensor '%.200s' has no \"shape\"",
                                    item->name);
    if (json_array_size(shape) > TAC_STATE_MAX_DIMS)
        return tac__safetensors_bad(
            f, "tensor '%.200s' has %zu dimensions; at most %d are supported",
            item->name, json_array_size(shape), TAC_STATE_MAX_DIMS);
    item->ndim = (int)json_array_size(shape);
    for (int d = 0; d < item->ndim; d++) {
        uint64_t size = 0;

        TAC_TRY(read_size(f, item->name, "the shape",
                          json_array_get(shape, (size_t)d), &size));
        if (size > 0 && n > most / size)
            return tac__safetensors_bad(
                f, "the shape of tensor '%.200s' has a product that overflows",
                item->name);
        item->shape[d] = (size_t)size;
        if (size == 0) empty = 1;
        if (size > 0) n *= (size_t)size;
    }
    item->bytes = empty ? 0 : n * tac_dtype_size(item->dtype);
    return TAC_OK;
}

static tac_status read_offsets(const tac_safetensors *f, const json_t *j,
                               tac_safetensors_item *item)
{
    const json_t *pair = json_object_get(j, "data_offsets");
    uint64_t begin = 0, end = 0;

    if (!json_is_array(pair) || json_array_size(pair) != 2)
        return tac__safetensors_bad(
            f, "tensor '%.200s' has no \"data_offsets\" of two numbers",
            item->name);
    TAC_TRY(read_size(f, item->name, "the offset", json_array_get(pair, 0),
                      &begin));
    TAC_TRY(
        read_size(f, item->name, "the offset", json_array_get(pair, 1), &end));
    if (begin > end)
        return tac__safetensors_bad(
            f,
            "the offsets of tensor '%.200s' are reversed: %" PRIu64
            " to %" PRIu64,
            item->name, begin, end);
    if (end - begin != item->bytes)
        return tac__safetensors_bad(
            f,
            "tensor '%.200s' has %" PRIu64
            " bytes by its offsets and %zu by its shape",
            item->name, end - begin, item->bytes);
    if (end > f->data_bytes)
        return tac__safetensors_bad(
            f,
            "tensor '%.200s' ends at byte %" PRIu64
            " of the data, of which the file has %zu: it is cut short",
            item->name, end, f->data_bytes);
    item->data = f->data + begin;
    return TAC_OK;
}

static tac_status read_description(const tac_safetensors *f, const json_t *j,
                                   tac_safetensors_item *item)
{
    TAC_TRY(read_dtype(f, j, item));
    TAC_TRY(read_shape(f, j, item));
    return read_offsets(f, j, item);
}

tac_status tac__safetensors_describe(const tac_safetensors *f, tac__span text,
                                     tac_safetensors_item *item)
{
    json_error_t e;
    json_t *j;
    tac_status s;

    if (text.n > MAX_DESCRIPTION || *text.p != '{')
        return tac__safetensors_bad(
            f, "the description of tensor '%.200s' is %s", item->name,
            *text.p == '{' ? "longer than any can be" : "no object");
    j = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        return tac__safetensors_bad(
            f, "the description of tensor '%.200s' is no valid JSON: %s",
            item->name, e.text);
    s = read_description(f, j, item);
    json_decref(j);
    return s;
}
