/* metrics.jsonl of a run that goes on: what is left of any file is lines of
 * JSON of steps that were. */
#include "fuzz.h"

#include <jansson.h>

#include "save.h"

enum { ATTEMPTS = 10 };

static void check_line(const char *line, size_t n)
{
    json_t *j = n && line[n - 1] == '\n' ? json_loadb(line, n, 0, NULL) : NULL;
    const json_t *at = json_object_get(j, "attempts");

    if (!json_is_integer(at) || json_integer_value(at) > ATTEMPTS) abort();
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_put("metrics.jsonl", data, bytes);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (tac__resume_metrics(fuzz_context(), path, ATTEMPTS) < 0) abort();
    FILE *f = fopen(path, "r");
    if (!f) abort();
    while ((n = getline(&line, &room, f)) > 0) check_line(line, (size_t)n);
    free(line);
    fclose(f);
    return 0;
}

static const char *const texts[] = {
    "{\"kind\":\"train\",\"step\":1,\"attempts\":1,\"loss\":2.3}\n"
    "{\"kind\":\"eval\",\"step\":9,\"attempts\":10,\"eval_loss\":null}\n"
    "{\"kind\":\"train\",\"step\":11,\"attempts\":11}\n{\"kind\":\"tr",
    "{\"attempts\":-1}\n{\"attempts\":1.0}\n\n[]\n{\"attempts\":3}\n",
};

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    return fuzz_text(texts, sizeof texts / sizeof *texts, i, out);
}
