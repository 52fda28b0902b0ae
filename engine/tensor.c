/* Shapes: counting, and writing them for messages. */
#include <stdint.h>
#include <stdio.h>

#include "tacit/tensor.h"

int tac_shape_count(int ndim, const size_t *shape, size_t *out)
{
    size_t n = 1;
    int zero = 0;

    /* Sizes after a 0 must not overflow either: the order is no excuse. */
    for (int i = 0; i < ndim; ++i) {
        if (shape[i] == 0) {
            zero = 1;
        } else if (n > SIZE_MAX / shape[i]) {
            return 0;
        } else {
            n *= shape[i];
        }
    }
    *out = zero ? 0 : n;
    return 1;
}

size_t tac_tensor_count(const tac_tensor *t)
{
    size_t n = 0;

    (void)tac_shape_count(t->ndim, t->shape, &n);
    return n;
}

size_t tac_tensor_bytes(const tac_tensor *t)
{
    return tac_tensor_count(t) * tac_dtype_size(t->dtype);
}

void *tac_tensor_grad(const tac_tensor *t)
{
    const tac_tensor *root = t->base != NULL ? t->base : t;
    return root->has_grad ? root->grad : NULL;
}

const char *tac_tensor_shape_text(const tac_tensor *t, char *buf, size_t bytes)
{
    size_t used = 0;

    if (bytes == 0) return buf;
    buf[0] = '\0';
    for (int i = 0; i <= t->ndim && used < bytes; ++i) {
        const char *before = i == 0 ? "(" : i < t->ndim ? "," : ")";
        int n;
        if (i < t->ndim)
            n = snprintf(buf + used, bytes - used, "%s%zu", before,
                         t->shape[i]);
        else
            n = snprintf(buf + used, bytes - used, i == 0 ? "()" : ")");
        if (n < 0) break;
        used += (size_t)n;
    }
    return buf;
}
