/* host.c: which processes could share memory with this one. */
#include <stdio.h>
#include <unistd.h>

#include "boot.h"
#include "tacit/hash.h"

static uint64_t hash_file(uint64_t h, const char *path)
{
    char buf[128];
    FILE *f = fopen(path, "re");
    if (!f) return tac_hash_str(h, "?");
    const size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    return tac_hash_bytes(h, buf, n);
}

static uint64_t hash_link(uint64_t h, const char *path)
{
    char buf[128];
    const ssize_t n = readlink(path, buf, sizeof buf);
    return n > 0 ? tac_hash_bytes(h, buf, (size_t)n) : tac_hash_str(h, "?");
}

uint64_t tac__host_id(void)
{
    char name[256] = "";
    uint64_t h = hash_file(TAC_HASH_INIT, "/proc/sys/kernel/random/boot_id");
    gethostname(name, sizeof name - 1);
    h = tac_hash_str(h, name);
    return hash_link(h, "/proc/self/ns/pid");
}
