/* region_make.c: getting one region, and mapping a peer's.
 *
 * The header page carries a random number, so that a descriptor of another
 * process of the same id (another container) is noticed, and for threads the
 * count of users. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tacit/clock.h"
#include "transports/region.h"

typedef struct header {
    _Atomic uint64_t nonce;
    _Atomic int users; /* PRIVATE: ranks that have not released it */
} header;

static uint64_t random_nonce(void)
{
    uint64_t n = 0;
    if (getrandom(&n, sizeof n, 0) != (ssize_t)sizeof n)
        n = tac_clock_ns() ^ ((uint64_t)getpid() << 40);
    return n | 1u;
}

static uint64_t available_memory(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    fclose(f);
    return kib ? (uint64_t)kib * 1024u : UINT64_MAX;
}

tac_status tac__region_check_memory(tac__boot *b, size_t bytes)
{
    const uint64_t have = available_memory();
    if (bytes <= SIZE_MAX / 2 && (uint64_t)bytes <= have / (uint64_t)b->size)
        return TAC_OK;
    return tac__boot_note(b, TAC_ERR_NOMEM,
                          "%d ranks need %zu bytes of shared memory each, "
                          "%llu bytes are available",
                          b->size, bytes, (unsigned long long)have);
}

static tac_status no_memory(tac__boot *b, const char *what, size_t bytes)
{
    return tac__boot_note(b, TAC_ERR_NOMEM, "%s of %zu bytes failed: %s", what,
                          bytes, strerror(errno));
}

/* ---- mappings --------------------------------------------------------------
 *
 * Populated where they are made, by the rank that will write there: its pages
 * come from the memory node that it runs on. Huge pages where the system allows
 * them, because a reduction walks through the memory of all ranks at once;
 * whether it does is in /sys/kernel/mm/transparent_hugepage (enabled for
 * threads, shmem_enabled for processes), and where not, small ones do. */

#define HUGE_BYTES ((size_t)2 << 20)
#define PAGE_BYTES ((size_t)4096)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Address space, at a multiple of a huge page if one fits; NULL: none. */
static char *reserve(size_t total)
{
    const size_t slack = total >= HUGE_BYTES ? HUGE_BYTES : 0;
    char *p = mmap(NULL, total + slack, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (slack == 0) return p;
    const size_t before = -(uintptr_t)p % HUGE_BYTES;
    if (before > 0) munmap(p, before);
    if (slack > before) munmap(p + before + total, slack - before);
    return p + before;
}

/* Older kernels: one access a page, after the file has got its blocks. */
static int touch(char *p, size_t total, int fd)
{
    const int rc = fd < 0 ? 0 : posix_fallocate(fd, 0, (off_t)total);
    volatile char *byte = p;
    if (rc != 0) {
        errno = rc;
        return 0;
    }
    for (size_t i = 0; i < total; i += PAGE_BYTES)
        if (fd < 0)
            byte[i] = 0;
        else
            (void)byte[i]; /* a peer may have written there */
    return 1;
}

static int populate(char *p, size_t total, int fd)
{
    (void)madvise(p, total, MADV_HUGEPAGE);
    if (madvise(p, total, MADV_POPULATE_WRITE) == 0) return 1;
    if (errno == EINVAL) return touch(p, total, fd);
    errno = ENOMEM; /* a fault on a full file system says EFAULT */
    return 0;
}

/* fd -1: private memory. */
static tac_status map(tac__boot *b, int fd, size_t total, char **out)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    char *p = reserve(total);
    if (!p) return no_memory(b, "mapping", total);
    if (mmap(p, total, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) ==
            MAP_FAILED ||
        !populate(p, total, fd)) {
        const int why = errno;
        munmap(p, total);
        errno = why;
        return no_memory(b, fd < 0 ? "mapping" : "mapping shared memory",
                         total);
    }
    *out = p;
    return TAC_OK;
}

static tac_status make_private(tac__boot *b, size_t total, char **out)
{
    TAC_TRY(map(b, -1, total, out));
    atomic_init(&((header *)(void *)*out)->users, b->size);
    return TAC_OK;
}

static int open_memfd(void)
{
    return memfd_create("tacit", MFD_CLOEXEC);
}

static int open_posix(tac__ticket *t)
{
    snprintf(t->name, sizeof t->name, "/tacit-%lld-%016llx", (long long)t->pid,
             (unsigned long long)t->nonce);
    return shm_open(t->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static tac_status make_shared(tac__boot *b, tac__region_kind kind, size_t total,
                              tac__ticket *t, char **out)
{
    const int fd = kind == TAC__REGION_MEMFD ? open_memfd() : open_posix(t);
    if (fd < 0)
        return tac__boot_note(b, TAC_ERR_UNSUPPORTED, "%s failed: %s",
                              kind == TAC__REGION_MEMFD ? "memfd_create"
                                                        : "shm_open",
                              strerror(errno));
    t->fd = fd;
    if (ftruncate(fd, (off_t)total) != 0)
        return no_memory(b, "allocating shared memory", total);
    const tac_status s = map(b, fd, total, out);
    if (s == TAC_ERR_NOMEM && kind == TAC__REGION_POSIX)
        return tac__boot_note(b, s,
                              "/dev/shm is too small: each of %d ranks needs "
                              "%zu bytes there (docker: --shm-size)",
                              b->size, total);
    return s;
}

tac_status tac__region_make(tac__boot *b, tac__region_kind kind, size_t bytes,
                            tac__ticket *t, char **out)
{
    const size_t total = bytes + TAC__REGION_HEADER;
    t->pid = getpid();
    t->nonce = random_nonce();
    if (kind == TAC__REGION_PRIVATE)
        TAC_TRY(make_private(b, total, out));
    else
        TAC_TRY(make_shared(b, kind, total, t, out));
    atomic_store(&((header *)(void *)*out)->nonce, t->nonce);
    t->address = (uint64_t)(uintptr_t)*out;
    return TAC_OK;
}

static int open_peer(tac__region_kind kind, const tac__ticket *t)
{
    char path[64];
    if (kind == TAC__REGION_POSIX)
        return shm_open(t->name, O_RDWR | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)t->pid,
             (long long)t->fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static tac_status map_shared(tac__boot *b, tac__region_kind kind, size_t total,
                             const tac__ticket *t, char **out)
{
    struct stat st;
    const int fd = open_peer(kind, t);
    if (fd < 0)
        return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                              "opening shared memory of process %lld: %s",
                              (long long)t->pid, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        (size_t)st.st_size < total) {
        close(fd);
        return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                              "descriptor %lld of process %lld is something "
                              "else: another process namespace",
                              (long long)t->fd, (long long)t->pid);
    }
    const tac_status s = map(b, fd, total, out);
    close(fd);
    return s;
}

tac_status tac__region_map(tac__boot *b, tac__region_kind kind, size_t bytes,
                           const tac__ticket *t, char **out)
{
    const size_t total = bytes + TAC__REGION_HEADER;
    if (kind == TAC__REGION_PRIVATE) {
        *out = (char *)(uintptr_t)t->address;
        return TAC_OK;
    }
    char *p = NULL;
    TAC_TRY(map_shared(b, kind, total, t, &p));
    if (atomic_load(&((header *)(void *)p)->nonce) != t->nonce) {
        munmap(p, total);
        return tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                              "the memory of process %lld is another one's",
                              (long long)t->pid);
    }
    *out = p;
    return TAC_OK;
}

void tac__region_unmap(tac__region_kind kind, char *p, size_t bytes)
{
    if (kind == TAC__REGION_PRIVATE &&
        atomic_fetch_sub(&((header *)(void *)p)->users, 1) != 1)
        return;
    munmap(p, bytes + TAC__REGION_HEADER);
}

void tac__region_discard(tac__region_kind kind, char *p, size_t bytes, int own)
{
    if (kind != TAC__REGION_PRIVATE || own)
        munmap(p, bytes + TAC__REGION_HEADER);
}

void tac__region_seal(tac__region_kind kind, const tac__ticket *t)
{
    if (t->fd < 0) return;
    close((int)t->fd);
    if (kind == TAC__REGION_POSIX) shm_unlink(t->name);
}
