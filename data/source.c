/* source.c: reads a plain or gzip file piece by piece through zlib's inflate.
 *
 * zlib's own gzread accepts garbage behind a stream and reports a cut one only
 * at close, so the loop is here. Several gzip members one after another are
 * one stream, as the format says. Memory: two fixed buffers. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { INPUT_BYTES = 64 * 1024, GZIP_WINDOW = 15 + 16 };

struct tac__source {
    tac_context *ctx;
    const char *path;
    int fd;
    int gzip;      /* the file began with gzip's magic */
    int in_member; /* inflate has a member that has not ended */
    int at_end;    /* read(2) has returned 0 */
    size_t have;   /* unread bytes of input, from next on */
    const unsigned char *next;
    size_t produced; /* bytes given to the caller, for messages */
    z_stream z;
    unsigned char input[INPUT_BYTES];
};

/* Makes at least `want` bytes of input available unless the file ends. */
static tac_status fill_input(tac__source *s, size_t want)
{
    if (s->have && s->next != s->input) memmove(s->input, s->next, s->have);
    s->next = s->input;
    while (s->have < want && !s->at_end) {
        const ssize_t n =
            read(s->fd, s->input + s->have, INPUT_BYTES - s->have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return tac_fail(s->ctx, TAC_ERR_IO, "can't read %s: %s", s->path,
                            strerror(errno));
        if (n == 0) s->at_end = 1;
        s->have += (size_t)n;
    }
    return TAC_OK;
}

static int input_is_gzip(const tac__source *s)
{
    return s->have >= 2 && s->next[0] == 0x1f && s->next[1] == 0x8b;
}

static tac_status start(tac__source *s)
{
    TAC_TRY(fill_input(s, 2));
    s->gzip = input_is_gzip(s);
    if (!s->gzip) return TAC_OK;
    if (inflateInit2(&s->z, GZIP_WINDOW) != Z_OK)
        return tac_fail(s->ctx, TAC_ERR_NOMEM,
                        "can't read %s: no memory for decompression", s->path);
    s->in_member = 1;
    return TAC_OK;
}

/* Without waiting for the writer of a pipe, which is refused: data are read
 * more than once, and a pipe that nobody writes to would wait for ever. */
static tac_status open_file(tac__source *s)
{
    struct stat st;

    s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0)
        return tac_fail(s->ctx, TAC_ERR_IO, "can't open %s: %s", s->path,
                        strerror(errno));
    if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode)) return TAC_OK;
    close(s->fd);
    return tac_fail(s->ctx, TAC_ERR_IO,
                    "can't read %s: it is no regular file; give a file, or a "
                    "folder of them",
                    s->path);
}

tac_status tac__source_open(tac_context *ctx, const char *path,
                            tac__source **out)
{
    tac__source *s = calloc(1, sizeof(*s));
    if (!s) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory to read %s", path);
    s->ctx = ctx;
    s->path = path;
    s->next = s->input;
    tac_status status = open_file(s);
    if (status < 0) goto fail_open;
    status = start(s);
    if (status < 0) goto fail_start;
    *out = s;
    return TAC_OK;

fail_start:
    close(s->fd);
fail_open:
    free(s);
    return status;
}

void tac__source_close(tac__source *s)
{
    if (!s) return;
    if (s->gzip) inflateEnd(&s->z);
    close(s->fd);
    free(s);
}

int tac__source_is_gzip(const tac__source *s)
{
    return s->gzip;
}

/* Copies up to `bytes` (> 0) of plain input; *got 0 at the end. */
static tac_status read_plain(tac__source *s, unsigned char *p, size_t bytes,
                             size_t *got)
{
    if (!s->have) TAC_TRY(fill_input(s, 1));
    *got = s->have < bytes ? s->have : bytes;
    memcpy(p, s->next, *got);
    s->next += *got;
    s->have -= *got;
    return TAC_OK;
}

/* After a member's end: another member, the end, or garbage. */
static tac_status next_member(tac__source *s, int *end)
{
    TAC_TRY(fill_input(s, 2));
    *end = s->have == 0;
    if (*end) return TAC_OK;
    if (!input_is_gzip(s))
        return tac_fail(s->ctx, TAC_ERR_DATA,
                        "%s: trailing bytes that are no gzip data follow the "
                        "compressed stream of %zu decompressed bytes; get the "
                        "file again",
                        s->path, s->produced);
    inflateReset(&s->z);
    s->in_member = 1;
    return TAC_OK;
}

static tac_status inflate_failed(tac__source *s)
{
    return tac_fail(s->ctx, TAC_ERR_DATA,
                    "%s: corrupt gzip data (%s) after %zu decompressed bytes; "
                    "get the file again",
                    s->path, s->z.msg ? s->z.msg : "checksum or length",
                    s->produced);
}

/* One call of inflate for up to `bytes` (> 0); *got 0 only at the end. */
static tac_status read_gzip(tac__source *s, unsigned char *p, size_t bytes,
                            size_t *got)
{
    *got = 0;
    while (*got == 0) {
        if (!s->in_member) {
            int end = 0;
            TAC_TRY(next_member(s, &end));
            if (end) return TAC_OK;
        }
        if (!s->have) TAC_TRY(fill_input(s, 1));
        if (!s->have)
            return tac_fail(s->ctx, TAC_ERR_DATA,
                            "%s: truncated: the compressed stream ends early, "
                            "after %zu decompressed bytes; get the file again",
                            s->path, s->produced);
        const size_t room = bytes < INPUT_BYTES ? bytes : INPUT_BYTES;
        s->z.next_in = (unsigned char *)s->next;
        s->z.avail_in = (unsigned)s->have;
        s->z.next_out = p;
        s->z.avail_out = (unsigned)room;
        const int rc = inflate(&s->z, Z_NO_FLUSH);
        s->next += s->have - s->z.avail_in;
        s->have = s->z.avail_in;
        *got = room - s->z.avail_out;
        if (rc == Z_STREAM_END) s->in_member = 0;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return inflate_failed(s);
    }
    return TAC_OK;
}

tac_status tac__source_read(tac__source *s, void *p, size_t bytes, size_t *got)
{
    unsigned char *out = p;
    size_t total = 0;
    while (total < bytes) {
        size_t n = 0;
        TAC_TRY(s->gzip ? read_gzip(s, out + total, bytes - total, &n)
                        : read_plain(s, out + total, bytes - total, &n));
        if (n == 0) break;
        total += n;
        s->produced += n;
    }
    *got = total;
    return TAC_OK;
}
