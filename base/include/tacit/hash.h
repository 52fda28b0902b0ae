/* tacit/hash.h: a 64-bit streaming hash for layouts, schedules and agreement.
 *
 * FNV-1a, 64 bits: small, byte-order independent and good enough to tell two
 * descriptions apart. (Contents of parameters are hashed with XXH3 in ddp/.)
 * Thread-safe: the state is the caller's value. */
#ifndef TACIT_HASH_H
#define TACIT_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

#define TAC_HASH_INIT UINT64_C(0xcbf29ce484222325)

TAC_API uint64_t tac_hash_bytes(uint64_t h, const void *p, size_t bytes);
TAC_API uint64_t tac_hash_u64(uint64_t h, uint64_t v); /* little-endian bytes */
TAC_API uint64_t tac_hash_str(uint64_t h, const char *s); /* with its 0 */

TAC_END_DECLS

#endif
