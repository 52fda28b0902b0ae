/* The IDX reader: every element type, plain and compressed, and every way in
 * which a file can be wrong, each with its own message. */
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "data_files.h"
#include "tacit/idx.h"

/* A sanitizer's shadow memory needs more address space than a limit leaves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#define UNDER_SANITIZER \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define UNDER_SANITIZER 0
#endif

static tac_context *ctx;
static char dir[64], path[128];

static void setup(void)
{
    ctx = data_context();
    data_make_dir(dir);
    data_path(path, dir, "file-idx");
}

static void teardown(void)
{
    data_remove_dir(dir);
    tac_context_destroy(ctx);
}

TestSuite(data_idx, .init = setup, .fini = teardown);

/* Reads `path` and expects failure with all of the given parts in the message;
 * the output must stay as it was. */
static void expect_failure(tac_idx_type type, int ndim, tac_status want,
                           const char *part1, const char *part2)
{
    tac_idx out, before;
    memset(&out, 0xA5, sizeof(out));
    before = out;
    cr_expect_eq(tac_idx_read(ctx, path, type, ndim, &out), want);
    cr_expect_eq(memcmp(&out, &before, sizeof(out)), 0);
    cr_expect(data_message_has(ctx, path));
    cr_expect(data_message_has(ctx, part1));
    cr_expect(data_message_has(ctx, part2));
}

static void expect_read(int type, int ndim, const uint32_t *shape,
                        const void *body, size_t body_bytes, const void *native)
{
    for (int gz = 0; gz < 2; ++gz) {
        data_write_idx(path, gz, type, ndim, shape, body, body_bytes);
        tac_idx idx;
        memset(&idx, 0xA5, sizeof(idx));
        cr_assert_eq(tac_idx_read(ctx, path, TAC_IDX_ANY, 0, &idx), TAC_OK);
        cr_expect_eq((int)idx.type, type);
        cr_expect_eq(idx.ndim, ndim);
        size_t count = 1;
        for (int d = 0; d < ndim; ++d) {
            cr_expect_eq(idx.shape[d], shape[d]);
            count *= shape[d];
        }
        cr_expect_eq(idx.count, count);
        if (body_bytes) cr_expect_eq(memcmp(idx.data, native, body_bytes), 0);
        tac_idx_free(&idx);
        cr_expect_null(idx.data);
    }
}

Test(data_idx, bytes)
{
    const uint32_t shape[] = {2, 3, 1};
    const uint8_t body[] = {0, 1, 127, 128, 254, 255};
    expect_read(TAC_IDX_U8, 3, shape, body, sizeof(body), body);
    expect_read(TAC_IDX_I8, 3, shape, body, sizeof(body), body);
}

Test(data_idx, wide_types)
{
    const uint32_t shape[] = {3};
    const uint8_t b16[] = {0x00, 0x01, 0xff, 0xfe, 0x12, 0x34};
    const int16_t n16[] = {1, -2, 0x1234};
    expect_read(TAC_IDX_I16, 1, shape, b16, sizeof(b16), n16);
    const uint8_t b32[] = {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4};
    const int32_t n32[] = {1, -2, 0x01020304};
    expect_read(TAC_IDX_I32, 1, shape, b32, sizeof(b32), n32);
    const uint8_t bf[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0};
    const float nf[] = {1, -2, 0};
    expect_read(TAC_IDX_F32, 1, shape, bf, sizeof(bf), nf);
    const uint32_t two[] = {2};
    const uint8_t bd[] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
                          0xc0, 0x04, 0, 0, 0, 0, 0, 0};
    const double nd[] = {1, -2.5};
    expect_read(TAC_IDX_F64, 1, two, bd, sizeof(bd), nd);
}

Test(data_idx, tiny_and_empty)
{
    const uint8_t one = 42;
    expect_read(TAC_IDX_U8, 1, (const uint32_t[]){1}, &one, 1, &one);
    expect_read(TAC_IDX_U8, 1, (const uint32_t[]){0}, NULL, 0, NULL);
    expect_read(TAC_IDX_U8, 3, (const uint32_t[]){0, 28, 28}, NULL, 0, NULL);
    expect_read(TAC_IDX_U8, 8, (const uint32_t[]){1, 1, 1, 1, 1, 1, 1, 1}, &one,
                1, &one);
    /* A zero after dimensions whose product overflows is still nothing. */
    expect_read(TAC_IDX_F64, 4,
                (const uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX, 0}, NULL,
                0, NULL);
}

/* Larger than the reader's buffers, so that growth and refills are used. */
Test(data_idx, large)
{
    enum { N = 5 * 1000 * 1000 + 7 };
    uint8_t *body = malloc(N);
    for (uint32_t i = 0; i < N; ++i) body[i] = (uint8_t)(i * 2654435761u >> 24);
    expect_read(TAC_IDX_U8, 1, (const uint32_t[]){N}, body, N, body);
    free(body);
}

/* A gzip file may have several members: their contents follow one another. */
Test(data_idx, two_members)
{
    const uint8_t body[] = {1, 2, 3, 4, 5};
    data_bytes raw = data_idx(8, 1, (const uint32_t[]){5}, body, 5);
    data_bytes a = data_gzip(raw.p, 6), b = data_gzip(raw.p + 6, raw.n - 6);
    unsigned char both[256];
    memcpy(both, a.p, a.n);
    memcpy(both + a.n, b.p, b.n);
    data_write(path, both, a.n + b.n);
    tac_idx idx;
    cr_assert_eq(tac_idx_read(ctx, path, TAC_IDX_U8, 1, &idx), TAC_OK);
    cr_expect_eq(memcmp(idx.data, body, 5), 0);
    tac_idx_free(&idx);
    free(a.p);
    free(b.p);
    free(raw.p);
}

Test(data_idx, missing_file)
{
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_IO, "can't open",
                   "No such file or directory");
}

Test(data_idx, directory)
{
    snprintf(path, sizeof(path), "%s", dir);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_IO, "can't read", "no regular file");
}

/* Which nobody writes to: it is not waited for. */
Test(data_idx, pipe)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_IO, "no regular file", "give a");
}

Test(data_idx, empty_file)
{
    data_write(path, "", 0);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "truncated",
                   "expected 4 bytes of IDX header, found 0");
}

Test(data_idx, short_header)
{
    data_write(path, "\0\0\x08\x03\0\0\0\x01\0\0", 10);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "truncated",
                   "expected 16 bytes of IDX header, found 10");
}

Test(data_idx, wrong_magic)
{
    data_write(path, "\x89PNG1234", 8);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "wrong magic", "0x89504e47");
    data_write(path, "\0\0\x0a\x01\0\0\0\0", 8); /* no such type */
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "wrong magic", "0x00000a01");
    data_write(path, "\0\x01\x08\x01\0\0\0\0", 8);
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "wrong magic", "0x00010801");
    data_write(path, "\0\0\x08\0", 4); /* no dimensions */
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "1 to 8 dimensions",
                   "found 0");
    data_write(path, "\0\0\x08\x09", 4); /* nine */
    expect_failure(TAC_IDX_ANY, 0, TAC_ERR_DATA, "1 to 8 dimensions",
                   "found 9");
}

Test(data_idx, not_what_was_wanted)
{
    const uint8_t body[] = {7, 8};
    data_write_idx(path, 0, 8, 1, (const uint32_t[]){2}, body, 2);
    expect_failure(TAC_IDX_U8, 3, TAC_ERR_DATA, "wrong magic",
                   "expected 0x00000803 (0: any), found 0x00000801");
    expect_failure(TAC_IDX_F32, 1, TAC_ERR_DATA, "wrong magic",
                   "expected 0x00000d01 (0: any), found 0x00000801");
}

Test(data_idx, truncated_body)
{
    uint8_t body[100] = {1};
    const uint32_t shape[] = {10, 3, 4};
    data_write_idx(path, 0, 8, 3, shape, body, 100);
    expect_failure(TAC_IDX_U8, 3, TAC_ERR_DATA, "truncated",
                   "expected 120 bytes of data, found 100");
    data_write_idx(path, 1, 8, 3, shape, body, 100);
    expect_failure(TAC_IDX_U8, 3, TAC_ERR_DATA, "truncated",
                   "expected 120 bytes of data, decompressed, found 100");
    data_write_idx(path, 0, 8, 3, shape, body, 0);
    expect_failure(TAC_IDX_U8, 3, TAC_ERR_DATA, "truncated",
                   "expected 120 bytes of data, found 0");
}

/* A compressed file cut at every byte: never accepted, never a crash. */
Test(data_idx, truncated_gzip_everywhere)
{
    uint8_t body[64];
    for (int i = 0; i < 64; ++i) body[i] = (uint8_t)(i * 37);
    data_bytes raw = data_idx(8, 1, (const uint32_t[]){64}, body, 64);
    data_bytes gz = data_gzip(raw.p, raw.n);
    for (size_t n = 2; n < gz.n; ++n) {
        data_write(path, gz.p, n);
        expect_failure(TAC_IDX_U8, 1, TAC_ERR_DATA, "truncated",
                       "compressed stream ends early");
    }
    free(gz.p);
    free(raw.p);
}

/* And with every byte flipped: an error or, where the format doesn't care
 * (time stamp, operating system), the right data. */
Test(data_idx, corrupt_gzip_everywhere)
{
    uint8_t body[64];
    for (int i = 0; i < 64; ++i) body[i] = (uint8_t)(i * 37);
    data_bytes raw = data_idx(8, 1, (const uint32_t[]){64}, body, 64);
    data_bytes gz = data_gzip(raw.p, raw.n);
    int accepted = 0;
    for (size_t i = 0; i < gz.n; ++i) {
        gz.p[i] ^= 0x5a;
        data_write(path, gz.p, gz.n);
        gz.p[i] ^= 0x5a;
        tac_idx idx;
        const tac_status s = tac_idx_read(ctx, path, TAC_IDX_U8, 1, &idx);
        if (s == TAC_OK) {
            ++accepted;
            cr_expect_eq(memcmp(idx.data, body, 64), 0);
            tac_idx_free(&idx);
        } else {
            cr_expect_eq(s, TAC_ERR_DATA);
        }
    }
    cr_expect_leq(accepted, 8, "%d corrupt files were accepted", accepted);
    free(gz.p);
    free(raw.p);
}

Test(data_idx, bad_checksum)
{
    const uint8_t body[] = {1, 2, 3};
    data_bytes raw = data_idx(8, 1, (const uint32_t[]){3}, body, 3);
    data_bytes gz = data_gzip(raw.p, raw.n);
    gz.p[gz.n - 8] ^= 1; /* CRC-32 */
    data_write(path, gz.p, gz.n);
    expect_failure(TAC_IDX_U8, 1, TAC_ERR_DATA, "corrupt gzip data",
                   "incorrect data check");
    free(gz.p);
    free(raw.p);
}

Test(data_idx, trailing_bytes)
{
    const uint8_t body[] = {1, 2, 3, 4, 5};
    data_write_idx(path, 0, 8, 1, (const uint32_t[]){3}, body, 5);
    expect_failure(TAC_IDX_U8, 1, TAC_ERR_DATA, "trailing bytes",
                   "expected 3 bytes of data, found 5");
    data_write_idx(path, 1, 8, 1, (const uint32_t[]){0}, body, 5);
    expect_failure(TAC_IDX_U8, 1, TAC_ERR_DATA, "trailing bytes",
                   "expected 0 bytes of data, found 5");
}

Test(data_idx, garbage_after_gzip)
{
    const uint8_t body[] = {1, 2, 3};
    data_bytes raw = data_idx(8, 1, (const uint32_t[]){3}, body, 3);
    data_bytes gz = data_gzip(raw.p, raw.n);
    unsigned char file[256];
    memcpy(file, gz.p, gz.n);
    memcpy(file + gz.n, "more", 4);
    data_write(path, file, gz.n + 4);
    expect_failure(TAC_IDX_U8, 1, TAC_ERR_DATA, "trailing bytes",
                   "no gzip data");
    free(gz.p);
    free(raw.p);
}

Test(data_idx, overflowing_dimensions)
{
    const uint32_t m = UINT32_MAX;
    data_write_idx(path, 0, 8, 4, (const uint32_t[]){m, m, m, m}, "", 0);
    expect_failure(TAC_IDX_U8, 4, TAC_ERR_DATA, "overflows", "4 dimensions");
    /* 2^63 elements fit, but not as 8 bytes each. */
    const uint32_t shape[] = {1u << 31, 1u << 31, 2};
    data_write_idx(path, 0, TAC_IDX_F64, 3, shape, "", 0);
    expect_failure(TAC_IDX_F64, 3, TAC_ERR_DATA, "overflows", "3 dimensions");
}

/* A header that claims 2^31 images must not cost 1.6 TB, nor even 64 MB. */
Test(data_idx, lying_header_costs_nothing)
{
#if !UNDER_SANITIZER
    const struct rlimit limit = {256u << 20, 256u << 20};
    setrlimit(RLIMIT_AS, &limit);
#endif
    const uint32_t shape[] = {1u << 31, 28, 28};
    const uint8_t body[1000] = {0};
    for (int gz = 0; gz < 2; ++gz) {
        data_write_idx(path, gz, 8, 3, shape, body, sizeof(body));
        expect_failure(TAC_IDX_U8, 3, TAC_ERR_DATA, "expected 1683627180032",
                       "found 1000");
    }
}

Test(data_idx, null_arguments)
{
    tac_idx idx;
    cr_expect_eq(tac_idx_read(ctx, NULL, TAC_IDX_ANY, 0, &idx), TAC_ERR_ARG);
    cr_expect_eq(tac_idx_read(ctx, path, TAC_IDX_ANY, 0, NULL), TAC_ERR_ARG);
    tac_idx_free(NULL);
    cr_expect_eq(tac_idx_type_size(TAC_IDX_ANY), 0);
    cr_expect_eq(tac_idx_type_size((tac_idx_type)0x0a), 0);
}
