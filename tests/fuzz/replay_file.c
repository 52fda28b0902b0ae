/* What ddp_train --record writes, as comm_bench --replay reads it. */
#include "fuzz.h"

#include "comm_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tac__replay_step s;

    if (tac__replay_read(fuzz_context(), fuzz_file(data, bytes), &s) < 0)
        return 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.tensor[i].bytes % 4 || !s.tensor[i].name) abort();
    tac__replay_free(&s);
    return 0;
}

static const char *const texts[] = {
    "{\"replay\":1,\"forward_us\":900,\"backward_us\":2100,\"update_us\":3}\n"
    "{\"name\":\"fc2.bias\",\"bytes\":40,\"ready_us\":12.5}\n"
    "{\"name\":\"fc2.weight\",\"bytes\":640,\"shape\":[10,16],"
    "\"ready_us\":20}\n",
    "{\"compute_us\":1e3}\n\n{\"name\":\"a\",\"bytes\":1099511627776,"
    "\"ready_us\":0,\"shape\":[4294967296,64]}\n",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
