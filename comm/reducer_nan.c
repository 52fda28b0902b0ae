/* reducer_nan.c: the check for NaN in this rank's gradients.
 *
 * Looks at what is about to be sent, never at what comes back, so that the rank
 * named is the one that made it. Cost: one read of the bucket. Works on bits,
 * so that no compiler option can fold it away. */
#include <stdint.h>
#include <string.h>

#include "reducer_impl.h"

/* Bit patterns above this one, sign cut off, are NaN. */
#define INF16  0x7c00u
#define INFB16 0x7f80u
#define INF32  UINT32_C(0x7f800000)
#define INF64  UINT64_C(0x7ff0000000000000)

static size_t first_above_16(const char *x, size_t n, unsigned inf)
{
    for (size_t i = 0; i < n; ++i) {
        uint16_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        if ((bits & 0x7fffu) > inf) return i;
    }
    return n;
}

static size_t first_above_32(const char *x, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        if ((bits & UINT32_C(0x7fffffff)) > INF32) return i;
    }
    return n;
}

static size_t first_above_64(const char *x, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        uint64_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        if ((bits & UINT64_C(0x7fffffffffffffff)) > INF64) return i;
    }
    return n;
}

size_t tac__first_nan(const void *data, size_t count, tac_dtype dtype)
{
    switch (dtype) {
    case TAC_F32: return first_above_32(data, count);
    case TAC_F64: return first_above_64(data, count);
    case TAC_F16: return first_above_16(data, count, INF16);
    case TAC_BF16: return first_above_16(data, count, INFB16);
    default: return count;
    }
}

void tac__bucket_check_nan(tac_reducer *r, size_t b)
{
    const tac__bucket *bucket = &r->layout.buckets[b];
    tac__verdict *mine = &r->control.verdicts[r->rank];
    if (mine->nan_param >= 0) return;
    for (size_t k = 0; k < bucket->n_params; ++k) {
        const size_t i = r->layout.members[bucket->first + k];
        const tac__param *p = &r->params[i];
        if (p->mark == TAC__ABSENT) continue;
        const size_t at = tac__first_nan(p->grad, p->count, p->dtype);
        if (at == p->count) continue;
        mine->nan_param = (int64_t)i;
        mine->nan_index = (int64_t)at;
        mine->nan_bucket = (int64_t)b;
        return;
    }
}
