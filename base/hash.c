/* hash.c: FNV-1a with 64 bits, one multiplication a byte.
 *
 * Reference: Fowler, Noll, Vo; RFC 9923. */
#include "tacit/hash.h"

#include <string.h>

#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_byte(uint64_t h, unsigned char byte)
{
    return (h ^ byte) * FNV_PRIME;
}

uint64_t tac_hash_bytes(uint64_t h, const void *p, size_t bytes)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < bytes; ++i) h = hash_byte(h, b[i]);
    return h;
}

uint64_t tac_hash_u64(uint64_t h, uint64_t v)
{
    for (int i = 0; i < 8; ++i) h = hash_byte(h, (unsigned char)(v >> 8 * i));
    return h;
}

uint64_t tac_hash_str(uint64_t h, const char *s)
{
    return tac_hash_bytes(h, s, strlen(s) + 1);
}
