/* safetensors.c: opening a file, and what it holds.
 *
 * The file is mapped, so opening costs its header and tensors are read where
 * they lie. It must not be cut shorter while it is open. */
#include "safetensors_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian: bytes must be swapped here"
#endif

static const char *const dtype_names[TAC_DTYPE_COUNT] = {
    [TAC_F32] = "F32",   [TAC_F64] = "F64", [TAC_F16] = "F16",
    [TAC_BF16] = "BF16", [TAC_I32] = "I32", [TAC_I64] = "I64",
    [TAC_U8] = "U8",
};

const char *tac__safetensors_dtype_name(tac_dtype t)
{
    return tac_dtype_size(t) ? dtype_names[t] : NULL;
}

int tac__safetensors_dtype_parse(const char *name, tac_dtype *out)
{
    for (int t = 0; t < TAC_DTYPE_COUNT; t++) {
        if (strcmp(dtype_names[t], name)) continue;
        *out = (tac_dtype)t;
        return 1;
    }
    return 0;
}

tac_status tac__safetensors_bad(const tac_safetensors *f, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return tac_fail(f->ctx, TAC_ERR_DATA,
                    "%s: %s; the file is damaged or of another format", f->path,
                    text);
}

static tac_status cannot_read(const tac_safetensors *f)
{
    return tac_fail(f->ctx, TAC_ERR_IO,
                    "cannot read %s: %m; check the path and its permissions",
                    f->path);
}

static tac_status map_file(tac_safetensors *f, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) return cannot_read(f);
    if (!S_ISREG(st.st_mode))
        return tac_fail(f->ctx, TAC_ERR_IO,
                        "cannot read %s: it is no regular file", f->path);
    if (st.st_size < 8)
        return tac__safetensors_bad(
            f, "it has %lld bytes, fewer than the 8 that it begins with",
            (long long)st.st_size);
    f->bytes = (size_t)st.st_size;
    f->map = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (f->map != MAP_FAILED) return TAC_OK;
    f->map = NULL;
    return cannot_read(f);
}

/* The length of the header, checked against the limit and the file. */
static tac_status find_header(tac_safetensors *f, tac__span *header)
{
    const unsigned char *p = f->map;
    uint64_t n = 0;

    for (int i = 0; i < 8; i++) n |= (uint64_t)p[i] << (8 * i);
    if (n > TAC_SAFETENSORS_MAX_HEADER)
        return tac__safetensors_bad(f,
                                    "its header says it has %" PRIu64
                                    " bytes; at most %d are "
                                    "allowed",
                                    n, TAC_SAFETENSORS_MAX_HEADER);
    if (n > f->bytes - 8)
        return tac__safetensors_bad(
            f,
            "its header says it has %" PRIu64
            " bytes, but only %zu follow: it is cut short",
            n, f->bytes - 8);
    *header = (tac__span){(const char *)p + 8, (size_t)n};
    f->data = p + 8 + n;
    f->data_bytes = f->bytes - 8 - (size_t)n;
    return TAC_OK;
}

static tac_status read_header(tac_safetensors *f)
{
    tac__span header;

    TAC_TRY(find_header(f, &header));
    f->text = malloc(header.n + 1);
    if (!f->text)
        return tac_fail(f->ctx, TAC_ERR_NOMEM, "no memory for the header of %s",
                        f->path);
    TAC_TRY(tac__safetensors_parse(f, header));
    return tac__safetensors_check_layout(f);
}

tac_status tac_safetensors_open(tac_context *ctx, const char *path,
                                tac_safetensors **out)
{
    tac_safetensors *f = calloc(1, sizeof *f);
    int fd;
    tac_status s;

    if (f) f->path = strdup(path);
    if (!f || !f->path) {
        free(f);
        return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to open %s", path);
    }
    f->ctx = ctx;
    /* Not waiting for the writer of a pipe, which is refused anyway. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    s = fd < 0 ? cannot_read(f) : map_file(f, fd);
    if (fd >= 0) close(fd);
    if (s >= 0) s = read_header(f);
    if (s < 0) {
        tac_safetensors_close(f);
        return s;
    }
    *out = f;
    return TAC_OK;
}

void tac_safetensors_close(tac_safetensors *f)
{
    if (!f) return;
    if (f->map) munmap(f->map, f->bytes);
    free(f->pairs);
    free(f->by_name);
    free(f->items);
    free(f->text);
    free(f->path);
    free(f);
}

size_t tac_safetensors_count(const tac_safetensors *f)
{
    return f->count;
}

const tac_safetensors_item *tac_safetensors_get(const tac_safetensors *f,
                                                size_t i)
{
    return i < f->count ? &f->items[i] : NULL;
}

const tac_safetensors_item *tac_safetensors_find(const tac_safetensors *f,
                                                 const char *name)
{
    size_t low = 0, high = f->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const tac_safetensors_item *item = &f->items[f->by_name[middle]];
        const int order = strcmp(item->name, name);

        if (order == 0) return item;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *tac_safetensors_metadata(const tac_safetensors *f, const char *key)
{
    for (size_t i = 0; i < f->n_pairs; i++) {
        const char *text = f->text + f->pairs[i];

        if (!strcmp(text, key)) return text + strlen(text) + 1;
    }
    return NULL;
}
