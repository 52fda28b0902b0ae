/* The tuning file: measured constants of the cost model. */
#include "fuzz.h"

#include "tune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tac__cost_params p;
    char why[256];

    memset(&p, 0, sizeof p);
    if (tac__tune_read(fuzz_file(data, bytes), &p, why, sizeof why) < 0)
        return 0;
    if (!(p.shared.alpha >= 0 && p.network.beta <= 3600)) abort();
    return 0;
}

static const char *const texts[] = {
    "tacit-tune 1\n# measured\nshared.alpha 2.1e-06\nshared.beta 1.3e-10\n"
    "shared.gamma 5e-11\nlocal.alpha 1e-6\nlocal.beta 1e-10\n"
    "network.alpha 3e-5\nnetwork.beta 9e-10\nnetwork.gamma 0\n",
    "tacit-tune 1\r\nlocal.gamma\t1\r\n\r\n",
    "tacit-tune 2\n",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
