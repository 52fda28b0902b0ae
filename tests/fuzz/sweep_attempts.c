/* --attempt-times, as localsgd_sweep reads it. */
#include "fuzz.h"

#include "localsgd_sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sweep s;

    memset(&s, 0, sizeof s);
    s.ctx = fuzz_context();
    s.world = 2;
    sweep_read_attempts(&s, fuzz_file(data, bytes));
    free(s.attempt_s);
    return 0;
}

static const char *const texts[] = {
    "attempt,rank0,rank1\n1,0.5,0.25\n2,1e-3,nan\n",
    "attempt,rank,seconds\n1,0,0.5\n1,1,0.25\n2,0,0.125\n2,1,1\n",
    "attempt,rank0,rank1\n1,0.5,0.25\n2,1e-3,2\n3,3,3\n",
    "attempt,rank,seconds\n1000000000,0,0.5\n",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
