/* fuzz.h: what the fuzz targets share. A target reads one input with one of the
 * project's readers, and defines
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
 *     static size_t fuzz_seed(size_t i, uint8_t *out);   0: there are no more
 *
 * As a plain program it takes each seed and thousands of mutations of them
 * (no arguments; TACIT_FUZZ_RUNS, TACIT_FUZZ_SEED), or the files and folders
 * that it is given: what a fuzzer has found. Linked with libFuzzer (TAC_FUZZER)
 * it is driven by that. "--seeds DIR" writes the seeds as files, in both. */
#ifndef TAC_TESTS_FUZZ_H
#define TAC_TESTS_FUZZ_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tacit/context.h"
#include "tacit/rng.h"

enum { FUZZ_ROOM = 1 << 16 };

/* Mutations that are tried by default. */
#ifndef FUZZ_RUNS
#define FUZZ_RUNS 2000
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
static size_t fuzz_seed(size_t i, uint8_t *out);

/* ---- what targets use ----------------------------------------------------
 */

static inline void fuzz_say_nothing(void *arg, tac_log_level level,
                                    const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static inline tac_context *fuzz_context(void)
{
    static tac_context *ctx;
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;

    cc.log = fuzz_say_nothing;
    cc.threads = 1;
    if (!ctx && tac_context_create(&cc, &ctx) < 0) abort();
    return ctx;
}

/* The path of a file in memory with these bytes; the same one each time. */
static inline const char *fuzz_file(const uint8_t *data, size_t bytes)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 ||
        pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
        abort();
    return path;
}

static char fuzz_dir_path[64];

static inline void fuzz_dir_remove(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -rf '%s'", fuzz_dir_path);
    if (system(command) != 0) fprintf(stderr, "cannot %s\n", command);
}

/* A folder that goes with the process. */
static inline const char *fuzz_dir(void)
{
    const char *tmp = getenv("TMPDIR");

    if (fuzz_dir_path[0]) return fuzz_dir_path;
    snprintf(fuzz_dir_path, sizeof fuzz_dir_path, "%.40s/tacit-fuzz-XXXXXX",
             tmp ? tmp : "/tmp");
    if (!mkdtemp(fuzz_dir_path) || atexit(fuzz_dir_remove) != 0) abort();
    return fuzz_dir_path;
}

/* Writes fuzz_dir()/name; its path, until the next call. */
static inline const char *fuzz_put(const char *name, const uint8_t *data,
                                   size_t bytes)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", fuzz_dir(), name);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) abort();
    return path;
}

/* Several files in one input: two bytes of length (little endian) before each
 * but the last. Cuts the next one off. */
typedef struct fuzz_part {
    const uint8_t *p;
    size_t n;
} fuzz_part;

static inline fuzz_part fuzz_cut(fuzz_part *rest)
{
    size_t n = rest->n < 2 ? 0 : rest->p[0] + 256u * rest->p[1];

    if (rest->n < 2) return (fuzz_part){rest->p, 0};
    if (n > rest->n - 2) n = rest->n - 2;
    const fuzz_part part = {rest->p + 2, n};
    rest->p += n + 2;
    rest->n -= n + 2;
    return part;
}

static inline uint8_t *fuzz_append(uint8_t *at, const void *p, size_t n)
{
    at[0] = (uint8_t)n;
    at[1] = (uint8_t)(n >> 8);
    memcpy(at + 2, p, n);
    return at + 2 + n;
}

static inline size_t fuzz_text(const char *const *texts, size_t count, size_t i,
                               uint8_t *out)
{
    if (i >= count) return 0;
    memcpy(out, texts[i], strlen(texts[i]));
    return strlen(texts[i]);
}

/* ---- seeds ---------------------------------------------------------------
 */

static inline int fuzz_write_seeds(const char *dir)
{
    static uint8_t data[FUZZ_ROOM];
    char path[512];
    size_t n;

    for (size_t i = 0; (n = fuzz_seed(i, data)) > 0; i++) {
        snprintf(path, sizeof path, "%s/seed-%zu", dir, i);
        FILE *f = fopen(path, "w");
        if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) return 1;
    }
    return 0;
}

#ifdef TAC_FUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc == 3 && !strcmp((*argv)[1], "--seeds"))
        exit(fuzz_write_seeds((*argv)[2]));
    return 0;
}

#else

/* ---- a plain program ------------------------------------------------------
 */

static inline void fuzz_replay_file(const char *path)
{
    FILE *f = fopen(path, "r");
    uint8_t *data;
    long n = -1;

    if (f && fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    /* Exactly as large, so that a sanitizer sees one byte too far. */
    data = n < 0 ? NULL : malloc((size_t)n + (n == 0));
    if (!data || fseek(f, 0, SEEK_SET) != 0 ||
        fread(data, 1, (size_t)n, f) != (size_t)n) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)n);
    free(data);
}

static inline void fuzz_replay(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    char inner[1024];

    if (!d) {
        fuzz_replay_file(path);
        return;
    }
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') continue;
        snprintf(inner, sizeof inner, "%.700s/%.300s", path, e->d_name);
        fuzz_replay_file(inner);
    }
    closedir(d);
}

/* Changes a few places; the new length. */
static inline size_t fuzz_mutate(const tac_rng_key *key, uint8_t *p, size_t n)
{
    static const char favourites[] = "{}[]\",:\\=#;0123456789-.eEn \n\xff";
    uint32_t r[4];
    uint64_t at = 0;

    tac_rng_block(key, at, r);
    const int times = 1 + (int)(r[0] % 5);
    for (int i = 0; i < times && n > 0; i++) {
        tac_rng_block(key, ++at, r);
        const size_t place = r[1] % n, span = 1 + r[3] % 16;

        switch (r[0] % 7) {
        case 0: p[place] = (uint8_t)r[3]; break;
        case 1: p[place] ^= (uint8_t)(1u << (r[3] % 8)); break;
        case 2:
            p[place] = (uint8_t)favourites[r[3] % (sizeof favourites - 1)];
            break;
        case 3: /* goes */
            if (place + span > n) break;
            memmove(p + place, p + place + span, n - place - span);
            n -= span;
            break;
        case 4: /* comes twice */
            if (place + span > n || n + span > FUZZ_ROOM) break;
            memmove(p + place + span, p + place, n - place);
            n += span;
            break;
        case 5: memset(p + place, 0xff, place + span > n ? 1 : span); break;
        default: n = place; break;
        }
    }
    return n;
}

static inline uint64_t fuzz_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static inline int fuzz_try_all(void)
{
    static uint8_t data[FUZZ_ROOM];
    const uint64_t runs = fuzz_number("TACIT_FUZZ_RUNS", FUZZ_RUNS);
    const uint64_t seed = fuzz_number("TACIT_FUZZ_SEED", 1);
    size_t n, seeds = 0;

    for (; (n = fuzz_seed(seeds, data)) > 0; seeds++)
        LLVMFuzzerTestOneInput(data, n);
    if (seeds == 0) return 1;
    LLVMFuzzerTestOneInput(data, 0);
    for (uint64_t i = 0; i < runs; i++) {
        const tac_rng_key key = {seed, TAC_STREAM_USER, i};

        n = fuzz_mutate(&key, data, fuzz_seed(i % seeds, data));
        LLVMFuzzerTestOneInput(data, n);
    }
    printf("%zu seeds and %llu mutations, seed %llu\n", seeds,
           (unsigned long long)runs, (unsigned long long)seed);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1) return fuzz_try_all();
    if (argc == 3 && !strcmp(argv[1], "--seeds"))
        return fuzz_write_seeds(argv[2]);
    for (int i = 1; i < argc; i++) fuzz_replay(argv[i]);
    return 0;
}

#endif
#endif
