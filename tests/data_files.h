/* data_files.h: what the tests of data/ share: a quiet context, a folder under
 * the temporary directory, and IDX files written by hand. */
#ifndef TAC_TESTS_DATA_FILES_H
#define TAC_TESTS_DATA_FILES_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tacit/context.h"

typedef struct data_bytes {
    unsigned char *p;
    size_t n;
} data_bytes;

static inline void data_log_nothing(void *arg, tac_log_level level,
                                    const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

/* A context whose messages are read with data_message, not printed. */
static inline tac_context *data_context(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    config.log = data_log_nothing;
    config.threads = 1;
    if (tac_context_create(&config, &ctx) < 0) abort();
    return ctx;
}

static inline int data_message_has(const tac_context *ctx, const char *part)
{
    char text[4096];
    tac_context_error(ctx, text, sizeof(text));
    if (strstr(text, part)) return 1;
    fprintf(stderr, "message \"%s\" lacks \"%s\"\n", text, part);
    return 0;
}

/* Makes a new folder; `dir` gets its name. */
static inline void data_make_dir(char dir[64])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, 64, "%.40s/tacit-data-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) abort();
}

static inline int data_remove_one(const char *path, const struct stat *st,
                                  int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void data_remove_dir(const char *dir)
{
    nftw(dir, data_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* dir/name into a buffer of the caller's. */
static inline const char *data_path(char out[128], const char *dir,
                                    const char *name)
{
    snprintf(out, 128, "%s/%s", dir, name);
    return out;
}

static inline void data_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0) abort();
}

/* The bytes as one gzip member; free out.p. */
static inline data_bytes data_gzip(const void *p, size_t n)
{
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    data_bytes out = {NULL, deflateBound(&z, n) + 64};
    out.p = malloc(out.n);
    z.next_in = (unsigned char *)p;
    z.avail_in = (unsigned)n;
    z.next_out = out.p;
    z.avail_out = (unsigned)out.n;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    out.n = z.total_out;
    deflateEnd(&z);
    return out;
}

/* Magic, dimensions and body as an IDX file has them; free out.p. */
static inline data_bytes data_idx(int type, int ndim, const uint32_t *shape,
                                  const void *body, size_t n)
{
    const size_t head = 4 + 4 * (size_t)ndim;
    data_bytes out = {malloc(head + n + 1), head + n};
    out.p[0] = out.p[1] = 0;
    out.p[2] = (unsigned char)type;
    out.p[3] = (unsigned char)ndim;
    for (int d = 0; d < ndim; ++d)
        for (int b = 0; b < 4; ++b)
            out.p[4 + 4 * d + b] = (unsigned char)(shape[d] >> (24 - 8 * b));
    if (n) memcpy(out.p + head, body, n);
    return out;
}

/* Writes an IDX file, compressed or not. */
static inline void data_write_idx(const char *path, int gz, int type, int ndim,
                                  const uint32_t *shape, const void *body,
                                  size_t n)
{
    data_bytes raw = data_idx(type, ndim, shape, body, n);
    data_bytes out = gz ? data_gzip(raw.p, raw.n) : raw;
    data_write(path, out.p, out.n);
    if (gz) free(out.p);
    free(raw.p);
}

#endif
