/* The folder of a run as localsgd_sweep and its relatives read it: summary.json
 * and metrics.jsonl. */
#include "fuzz.h"

#include "runs_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_part rest = {data, bytes};
    const fuzz_part summary = fuzz_cut(&rest);
    run_result r;

    memset(&r, 0, sizeof r);
    fuzz_put("summary.json", summary.p, summary.n);
    fuzz_put("metrics.jsonl", rest.p, rest.n);
    runs_intact(fuzz_dir());
    runs_read(fuzz_context(), fuzz_dir(), &r);
    run_number(&r, "wall_s");
    run_result_free(&r);
    return 0;
}

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char *const summaries[] = {
        "{\"steps\":20,\"world\":2,\"bytes_sync_wire\":1024,\"wall_s\":0.5}",
        "[1,2]"};
    static const char lines[] =
        "{\"kind\":\"train\",\"step\":1e300,\"loss\":2.3,\"wall_s\":1}\n"
        "{\"kind\":\"train\",\"loss\":2.3,\"bytes_sync_wire\":12}\n"
        "{\"kind\":\"eval\",\"step\":9,\"eval_loss\":null,"
        "\"eval_accuracy\":0.5}\n{\"ki";

    if (i >= 2) return 0;
    uint8_t *at = fuzz_append(out, summaries[i], strlen(summaries[i]));
    memcpy(at, lines, strlen(lines));
    return (size_t)(at - out) + strlen(lines);
}
