/* Damaged and hostile safetensors files: each known defect has its message, a
 * file cut at any byte is refused, thousands of mutated files do no harm, and
 * nothing larger than the file is allocated on its say-so. The seed of the
 * mutations is printed; an argument replaces it. */
#include "tac_check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "data_defects.h"
#include "data_files.h"
#include "tacit/rng.h"
#include "tacit/safetensors.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { MUTATIONS = 20000 };

static tac_context *ctx;
static char path[64]; /* a file in memory */
static int file_fd;

static void set_file(const void *p, size_t n)
{
    if (ftruncate(file_fd, 0) != 0 || pwrite(file_fd, p, n, 0) != (ssize_t)n)
        abort();
}

static tac_status try_open(void)
{
    tac_safetensors *f = NULL;
    const tac_status s = tac_safetensors_open(ctx, path, &f);

    CHECK((s == TAC_OK) == (f != NULL));
    tac_safetensors_close(f);
    return s;
}

/* ---- known defects ------------------------------------------------------- */

/* `length` is what the first 8 bytes say. */
static size_t build(unsigned char *out, uint64_t length, const char *header,
                    size_t n, size_t data)
{
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(length >> (8 * i));
    memcpy(out + 8, header, n);
    for (size_t i = 0; i < data; i++) out[8 + n + i] = (unsigned char)i;
    return 8 + n + data;
}

static void expect_message(const char *what, const char *message)
{
    char text[4096];

    CHECK_MSG(try_open() == TAC_ERR_DATA, "%s was taken", what);
    tac_context_error(ctx, text, sizeof text);
    CHECK_MSG(strstr(text, message) && strstr(text, path),
              "%s: \"%s\" lacks \"%s\"", what, text, message);
}

static void test_defects(void)
{
    static unsigned char file[4096];

    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++) {
        const defect *d = &defects[i];
        const size_t n = strlen(d->header) + (d->message ? 0 : 1);

        set_file(file, build(file, n, d->header, n, d->data));
        expect_message(d->what, d->message ? d->message : "follows the last");
    }
}

/* The first 8 bytes. */
static void test_lengths(void)
{
    unsigned char file[64] = {0};

    set_file(file, 0);
    expect_message("an empty file", "it has 0 bytes");
    set_file("\2\0\0\0\0\0\0", 7);
    expect_message("seven bytes", "it has 7 bytes");
    set_file(file, build(file, 0, "", 0, 0));
    expect_message("no header", "does not begin with '{'");
    set_file(file, build(file, 3, "{}", 2, 0));
    expect_message("header beyond the file", "but only 2 follow");
    set_file(file, build(file, 100000000, "{}", 2, 0));
    expect_message("the longest header", "but only 2 follow");
    set_file(file, build(file, 100000001, "{}", 2, 0));
    expect_message("header over the limit", "at most 100000000 are allowed");
    set_file(file, build(file, UINT64_MAX, "{}", 2, 0));
    expect_message("header of 2^64 - 1", "at most 100000000");
    set_file(file, build(file, UINT64_MAX - 7, "{}", 2, 0));
    expect_message("header that wraps", "at most 100000000");
}

static void test_oddities(void)
{
    static unsigned char file[4096];

    for (size_t i = 0; i < sizeof oddities / sizeof *oddities; i++) {
        const defect *d = &oddities[i];
        char text[1024];

        set_file(file, build(file, strlen(d->header), d->header,
                             strlen(d->header), d->data));
        const int ok = try_open() == TAC_OK;
        tac_context_error(ctx, text, sizeof text);
        CHECK_MSG(ok, "%s was refused: %s", d->what, text);
    }
}

static void test_what_is_no_file(void)
{
    char dir[64], name[128];

    data_make_dir(dir);
    tac_safetensors *f = NULL;
    CHECK_STATUS(tac_safetensors_open(ctx, dir, &f), TAC_ERR_IO);
    CHECK_STATUS(tac_safetensors_open(ctx, "/no/such", &f), TAC_ERR_IO);
    CHECK_STATUS(tac_safetensors_open(ctx, "/dev/zero", &f), TAC_ERR_IO);
    data_path(name, dir, "pipe");
    CHECK(mkfifo(name, 0600) == 0);
    CHECK_STATUS(tac_safetensors_open(ctx, name, &f), TAC_ERR_IO);
    CHECK(data_message_has(ctx, "no regular file"));
    data_remove_dir(dir);
}

/* ---- mutations ----------------------------------------------------------- */

/* A good file of several tensors and metadata. */
static size_t good_file(unsigned char *out)
{
    static const char header[] =
        "{\"__metadata__\":{\"model\":\"cnn\",\"seed\":\"42\"}," T(
            "optimizer.applied", "I64", "",
            "0,8") "," T("fc1.weight", "F32", "3,4",
                         "8,56") "," T("fc1.bias", "BF16", "3",
                                       "56,62") "," T("half", "F16", "1,2",
                                                      "62,66") "," T("none",
                                                                     "U8",
                                                                     "0,7",
                                                                     "66,66") "," T("bytes",
                                                                                    "U8",
                                                                                    "5",
                                                                                    "66,71") "}   ";

    return build(out, sizeof header - 1, header, sizeof header - 1, 71);
}

/* Everything that the accessors promise of an open file: items lie in it, one
 * behind the other. Reads every byte. */
static uint64_t use(tac_safetensors *f)
{
    uint64_t sum = 0;
    const unsigned char *end = NULL;

    for (size_t i = 0; i < tac_safetensors_count(f); i++) {
        const tac_safetensors_item *item = tac_safetensors_get(f, i);
        const unsigned char *p = item->data;
        size_t n = tac_dtype_size(item->dtype);

        for (int d = 0; d < item->ndim; d++) n *= item->shape[d];
        CHECK_EQ_U64(n, item->bytes);
        CHECK(!end || p == end);
        end = p + item->bytes;
        CHECK(tac_safetensors_find(f, item->name) == item);
        for (size_t k = 0; k < item->bytes; k++) sum += p[k];
        sum += strlen(item->name);
    }
    tac_safetensors_metadata(f, "model");
    return sum;
}

/* Bytes, digits or brackets that change; pieces that go or come twice; another
 * length in front. */
static size_t mutate(const tac_rng_key *key, unsigned char *p, size_t n)
{
    static const char favourites[] = "{}[]\",:\\0123456789-.eEu\0 \xff";
    uint32_t r[4];
    uint64_t at = 0;

    tac_rng_block(key, at, r);
    const int times = 1 + (int)(r[0] % 4);
    for (int i = 0; i < times; i++) {
        tac_rng_block(key, ++at, r);
        const size_t place = r[1] % 3 ? 8 + r[2] % (n - 8) : r[2] % n;
        const size_t span = 1 + r[3] % 24;

        switch (r[0] % 6) {
        case 0: p[place] = (unsigned char)r[3]; break;
        case 1: p[place] ^= (unsigned char)(1u << (r[3] % 8)); break;
        case 2:
            p[place] =
                (unsigned char)favourites[r[3] % (sizeof favourites - 1)];
            break;
        case 3: /* goes */
            if (place + span >= n || n - span < 16) break;
            memmove(p + place, p + place + span, n - place - span);
            n -= span;
            break;
        case 4: /* comes twice */
            if (place + span > n || n + span > 2048) break;
            memmove(p + place + span, p + place, n - place);
            n += span;
            break;
        default: p[0] = (unsigned char)(p[0] + r[3] % 17 - 8); break;
        }
    }
    return n;
}

static void test_mutations(uint64_t seed)
{
    static unsigned char file[4096];
    long taken = 0;

    for (uint64_t i = 0; i < MUTATIONS; i++) {
        const tac_rng_key key = {seed, TAC_STREAM_USER, i};
        tac_safetensors *f = NULL;

        set_file(file, mutate(&key, file, good_file(file)));
        if (tac_safetensors_open(ctx, path, &f) != TAC_OK) continue;
        use(f);
        taken++;
        tac_safetensors_close(f);
    }
    printf("%d mutations from seed %llu: %ld files still good\n",
           (int)MUTATIONS, (unsigned long long)seed, taken);
    CHECK(taken > 0 && taken < MUTATIONS / 2);
}

static void test_every_truncation(void)
{
    static unsigned char file[4096];
    const size_t n = good_file(file);
    tac_safetensors *f = NULL;

    set_file(file, n);
    if (CHECK_OK(tac_safetensors_open(ctx, path, &f))) {
        CHECK_EQ((long long)tac_safetensors_count(f), 6);
        use(f);
    }
    tac_safetensors_close(f);
    for (size_t k = 0; k < n; k++) {
        set_file(file, k);
        CHECK_MSG(try_open() == TAC_ERR_DATA, "cut at byte %zu of %zu", k, n);
    }
    file[n] = 0;
    set_file(file, n + 1);
    CHECK_STATUS(try_open(), TAC_ERR_DATA);
}

/* ---- memory -------------------------------------------------------------- */

static size_t address_space(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    if (!f || fscanf(f, "%zu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Opens the file with no more room than `spare`; 1 if the status is `want`. */
static int opens_within(size_t spare, tac_status want)
{
    int status = -1;
    const pid_t child = fork();

    if (child == 0) {
        const rlim_t most = address_space() + spare;
        const struct rlimit limit = {most, most};

        _exit(setrlimit(RLIMIT_AS, &limit) == 0 && try_open() == want ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Claims of terabytes, and headers that would be large as trees. */
static void test_memory(void)
{
    enum { SIZE = 4 << 20 };
    static char big[SIZE + 16];
    unsigned char small[256];
    const char *claim =
        "{" T("a", "F32", "1099511627776", "0,4398046511104") "}";
    size_t n = 1;

    if (SANITIZED) {
        printf("not measured under a sanitizer: memory of hostile headers\n");
        return;
    }
    set_file(small, build(small, strlen(claim), claim, strlen(claim), 8));
    CHECK(opens_within(1 << 20, TAC_ERR_DATA));
    /* A million keys of metadata; and as many brackets. */
    memcpy(big + 8, "{\"__metadata__\":{", 17);
    for (n = 17; n + 16 < SIZE; n += 7)
        memcpy(big + 8 + n, n == 17 ? "\"a\":\"\" " : ",\"a\":\"\"", 7);
    memcpy(big + 8 + n, "}}", 2);
    n += 2;
    for (int i = 0; i < 8; i++) big[i] = (char)(n >> (8 * i));
    set_file(big, n + 8);
    CHECK(opens_within((size_t)5 * SIZE, TAC_ERR_DATA));
    memcpy(big + 8, "{\"a\":[", 6);
    for (n = 6; n + 8 < SIZE; n += 3) memcpy(big + 8 + n, "[],", 3);
    memcpy(big + 8 + n, "[]]}", 4);
    n += 4;
    for (int i = 0; i < 8; i++) big[i] = (char)(n >> (8 * i));
    set_file(big, n + 8);
    CHECK(opens_within((size_t)5 * SIZE, TAC_ERR_DATA));
    CHECK_MSG(!opens_within(SIZE / 2, TAC_ERR_DATA),
              "the limit does not work: a file was mapped beyond it");
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240711;

    ctx = data_context();
    file_fd = memfd_create("damaged", MFD_CLOEXEC);
    if (file_fd < 0) return tac_check_skip("no files in memory here");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file_fd);
    test_defects();
    test_lengths();
    test_oddities();
    test_what_is_no_file();
    test_every_truncation();
    test_memory();
    test_mutations(seed);
    close(file_fd);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
