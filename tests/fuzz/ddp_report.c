/* A run folder, as report.html is made of it. The input is one of its three
 * files, by its first byte; the others stay what they were. */
#include "fuzz.h"

#include "report_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"metrics.jsonl", "summary.json",
                                        "config.ini"};

    static const uint8_t empty[] = {0x7b, 0x7d, 0x0a}; /* {} */

    if (bytes == 0) return 0;
    for (size_t i = 0; i < 3; i++) fuzz_put(names[i], empty, sizeof empty);
    fuzz_put(names[data[0] % 3], data + 1, bytes - 1);
    tac__report_page_write(fuzz_context(), fuzz_dir());
    return 0;
}

static const char *const texts[] = {
    "1{\"model\":\"cnn\",\"data\":\"synth\",\"sync\":\"local\",\"world\":2,"
    "\"test_accuracy\":0.5,\"test_samples\":10,\"train_s\":2,\"attempts\":4,"
    "\"forward_s\":1,\"comm_s\":1,\"comm_exposed_s\":0.5,\"bytes_sync_wire\":8,"
    "\"bytes_predicted\":8,\"memory\":{\"ranks\":2,\"gradients\":"
    "{\"predicted\":4,\"measured\":5}},\"interrupted\":true}",
    "0{\"kind\":\"train\",\"attempts\":2,\"loss\":0.5,\"loss_scale\":4,"
    "\"skipped_steps\":1}\n{\"kind\":\"eval\",\"attempts\":2,\"eval_loss\":1}\n"
    "{\"kind\":\"train\",\"attempts\":4,\"loss\":1e300,\"loss_scale\":2}\nx\n",
    "2# c\nmodel = cnn ; default\nlr = 0.1 ; command line\nx = y ; z ; default",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
