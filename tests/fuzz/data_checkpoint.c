/* A folder of checkpoints as anybody may have left it: `latest`, `best` and one
 * checkpoint.json are the input's. It is found, told which is the best, and
 * rotated. */
#define FUZZ_RUNS 200 /* each waits for the disk */
#include "fuzz.h"

#include "tacit/checkpoint.h"

static const uint8_t empty_file[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};

static const char good[] =
    "{\"format\":1,\"step\":3,\"attempts\":3,\"world\":1,\"program\":\"x\"}";

static void make_steps(void)
{
    char path[160];

    for (int step = 1; step <= 3; step++) {
        snprintf(path, sizeof path, "%s/step-%08d", fuzz_dir(), step);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "step-%08d/model.safetensors", step);
        fuzz_put(path, empty_file, sizeof empty_file);
        snprintf(path, sizeof path, "step-%08d/checkpoint.json", step);
        fuzz_put(path, (const uint8_t *)good, strlen(good));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_part rest = {data, bytes};
    const fuzz_part latest = fuzz_cut(&rest), best = fuzz_cut(&rest);
    tac_checkpoint_info info;
    char *found = NULL;

    make_steps();
    fuzz_put("latest", latest.p, latest.n);
    fuzz_put("best", best.p, best.n);
    const char *path =
        fuzz_put("step-00000002/checkpoint.json", rest.p, rest.n);
    if (tac_checkpoint_read_info(fuzz_context(), path, &info) >= 0 &&
        info.n_metrics > TAC_CHECKPOINT_METRICS)
        abort();
    /* Two of the three are whole, whatever the input is. */
    if (tac_checkpoint_find(fuzz_context(), fuzz_dir(), &found) < 0) abort();
    free(found);
    tac_checkpoint_mark_best(fuzz_context(), fuzz_dir(), "loss");
    tac_checkpoint_rotate(fuzz_context(), fuzz_dir(), 1);
    if (!tac_checkpoint_exists(fuzz_dir())) abort();
    return 0;
}

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    static const char *const pointers[] = {"step-00000002\n", "step-00000003",
                                           "../../etc/passwd"};
    static const char *const infos[] = {
        "{\"format\":1,\"step\":2,\"attempts\":2,\"world\":1,\"files\":1,"
        "\"program\":\"tacit\",\"metrics\":{\"loss\":0.5,\"accuracy\":null}}",
        "{\"format\":1,\"step\":1e3,\"attempts\":9223372036854775808}",
        good,
    };
    uint8_t *at = out;

    if (i >= 3) return 0;
    at = fuzz_append(at, pointers[i], strlen(pointers[i]));
    at = fuzz_append(at, pointers[(i + 1) % 3], strlen(pointers[(i + 1) % 3]));
    memcpy(at, infos[i], strlen(infos[i]));
    return (size_t)(at - out) + strlen(infos[i]);
}
