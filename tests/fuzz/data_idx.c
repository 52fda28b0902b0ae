/* An IDX file, plain or compressed. */
#include "fuzz.h"

#include <zlib.h>

#include "tacit/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tac_idx idx = {0};

    if (tac_idx_read(fuzz_context(), fuzz_file(data, bytes), TAC_IDX_ANY, 0,
                     &idx) < 0)
        return 0;
    volatile unsigned sum = 0;
    const unsigned char *p = idx.data;

    for (size_t i = 0; i < idx.count * tac_idx_type_size(idx.type); i++)
        sum += p[i];
    (void)sum; /* that the bytes can be read is all */
    tac_idx_free(&idx);
    return 0;
}

/* One member; level 0 stores, so that a mutation reaches what is inside. */
static size_t compress_into(uint8_t *out, const uint8_t *p, size_t n, int level)
{
    z_stream z = {0};

    if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
        abort();
    z.next_in = (unsigned char *)(uintptr_t)p;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = FUZZ_ROOM / 4;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    deflateEnd(&z);
    return z.total_out;
}

static size_t plain(uint8_t *out, uint8_t type, int ndim, uint8_t size)
{
    const size_t each = tac_idx_type_size((tac_idx_type)type);
    size_t n = each;

    memset(out, 0, 4 + 4 * (size_t)ndim);
    out[2] = type;
    out[3] = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) {
        out[4 + 4 * d + 3] = size;
        n *= size;
    }
    for (size_t i = 0; i < n; i++) out[4 + 4 * ndim + i] = (uint8_t)(7 * i);
    return 4 + 4 * (size_t)ndim + n;
}

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const uint8_t types[] = {TAC_IDX_U8,  TAC_IDX_I8,  TAC_IDX_I16,
                                    TAC_IDX_I32, TAC_IDX_F32, TAC_IDX_F64};
    uint8_t file[4096];

    if (i < 6) return plain(out, types[i], 1 + (int)i % 3, 3);
    if (i > 9) return 0;
    const size_t n = plain(file, TAC_IDX_U8, 3, 4);
    size_t m = compress_into(out, file, n, i % 2 ? 6 : 0);

    /* Two members: the stream is both. */
    if (i > 7) {
        m = compress_into(out, file, n / 2, 0);
        m += compress_into(out + m, file + n / 2, n - n / 2, i % 2 ? 6 : 0);
    }
    return m;
}
