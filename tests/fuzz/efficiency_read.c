/* A file of efficiency --json, as --print reads it and makes its page and
 * pictures of it. What it prints to the terminal is left out. */
#include "fuzz.h"

#include "efficiency.h"

static void show(eff *e, FILE *f)
{
    eff_rows_finish(e);
    eff_finding(e, f);
    eff_picture(e, f, 1);
    if (eff_write_page(e, "/dev/null") < 0) return;
    eff_write_csv(e, "/dev/null");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static eff_options o;
    static FILE *nowhere;
    eff *e = calloc(1, sizeof *e);

    if (!nowhere) nowhere = fopen("/dev/null", "w");
    if (!e || !nowhere) abort();
    e->ctx = fuzz_context();
    e->o = &o;
    if (eff_read_json(e, fuzz_file(data, bytes)) >= 0) {
        o.seeds = e->seeds_done;
        show(e, nowhere);
    }
    free(e->command);
    free(e);
    return 0;
}

#define ROW(key, part)                                                       \
    "{\"key\":\"" key "\",\"label\":\"x\",\"part\":\"" part                  \
    "\",\"batch\":8,\"accumulate\":2,\"recompute\":\"none\",\"sync\":"       \
    "\"grad\",\"precision\":\"fp32\",\"optimizer\":\"sgd\",\"compress\":"    \
    "\"none\",\"lr\":0.1,\"steps\":20,\"samples\":640,\"syncs\":20,"         \
    "\"memory\":{\"total\":1e6},\"bytes_counted\":1024,\"bytes_predicted\":" \
    "1024,\"compute_s\":0.5,\"modelled_s_sample\":{\"1gbit\":0.1},"          \
    "\"seconds_each\":[1,2],\"eval_each\":[0.8,0.9],\"test_each\":[0.7]}"

static const char *const texts[] = {
    "{\"program\":\"efficiency\",\"seeds\":2,\"model\":\"cnn\",\"data\":"
    "\"synth\",\"world\":2,\"parameters\":1e5,\"networks\":[{\"name\":"
    "\"1gbit\",\"link\":\"1gbit, 1 ms\"}],\"command\":\"efficiency\","
    "\"rows\":[" ROW("baseline", "baseline") "," ROW("fp16", "alone") "," ROW(
        "all", "added") "]}",
    "{\"program\":\"efficiency\",\"world\":9e14,\"rows\":[{\"key\":"
    "\"baseline\",\"diverged\":1e14}]}",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
