/* reduce_ref.c: f32 reductions for any processor. */
#include "kernels/reduce_f32.h"

static int available(void)
{
    return 1;
}

TABLE(ref);
