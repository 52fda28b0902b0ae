/* A file of localsgd_experiments --json, as --print shows it. */
#include "fuzz.h"

#include "experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *nowhere;
    json_t *all = json_load_file(fuzz_file(data, bytes), 0, NULL);

    if (!nowhere) nowhere = fopen("/dev/null", "w");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const exp_report r = {.json = json_array_get(all, i)};

        exp_print_text(&r, nowhere);
        exp_print_markdown(&r, nowhere);
    }
    exp_print_verdicts(all, 0, nowhere);
    json_decref(all);
    return 0;
}

static const char *const texts[] = {
    "[{\"experiment\":\"E1\",\"title\":\"t\",\"claim\":\"c d e\",\"source\":"
    "\"s\",\"pass\":\"p\",\"ran\":[\"one\",\"two\"],\"tables\":[{\"caption\":"
    "\"x\",\"columns\":[{\"key\":\"H\",\"head\":\"H\",\"format\":\"%.0f\"},"
    "{\"key\":\"loss\",\"head\":\"loss\",\"format\":\"%8.4g\"}],\"rows\":"
    "[{\"H\":4,\"loss\":0.25},{\"H\":\"all\"}]}],\"conditions\":[{\"holds\":"
    "true,\"text\":\"yes\"}],\"holds\":true,\"seconds\":3.5}]",
    "[{\"ran\":[1,null],\"tables\":[{\"columns\":[{\"key\":\"a\",\"format\":"
    "\"%s\"},{\"key\":\"a\",\"format\":\"%n\"}],\"rows\":[{\"a\":1}]}]},7]",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
