/* Bytes predicted before training against those counted by comm/, through
 * ddp_train and its summary: codecs, models, ranks and accumulation for
 * averaged gradients; modes, codecs, intervals, fragments and workers for local
 * ones. To the byte. And all ranks end with the same parameters, as the run
 * itself checks. */
#include "ddp_story.h"

static char json[160];
static int runs;

/* One run; *line is its summary. */
static int summary_of(const char *options, char line[8192])
{
    char more[512];
    FILE *f;

    snprintf(more, sizeof more, "--quiet --threads 1 --json %s %s", json,
             options);
    line[0] = '\0';
    if (!CHECK_MSG(story_run("", more, 0) == 0, "%s", options)) return 0;
    f = fopen(json, "r");
    if (!CHECK(f)) return 0;
    const int ok = fgets(line, 8192, f) != NULL;
    fclose(f);
    runs++;
    return CHECK(ok);
}

static uint64_t number(const char *line, const char *key)
{
    char value[128];

    story_value(line, key, value);
    return CHECK_MSG(value[0] >= '0' && value[0] <= '9', "%s is '%s'", key,
                     value)
               ? strtoull(value, NULL, 10)
               : 0;
}

static uint64_t check(const char *options)
{
    char line[8192];

    if (!summary_of(options, line)) return 0;
    const uint64_t counted = number(line, "bytes_sync_wire");
    CHECK_MSG(counted == number(line, "bytes_predicted"),
              "%s: %llu counted, %llu predicted", options,
              (unsigned long long)counted,
              (unsigned long long)number(line, "bytes_predicted"));
    CHECK(counted <= number(line, "bytes_wire"));
    return counted;
}

/* ---- gradients ------------------------------------------------------------
 */

static const char *const codecs[] = {
    "none",         "fp16",
    "bf16",         "int8",
    "fp4",          "topk:0.05",
    "int8,start=5", "topk:0.1,min=64,warmup=7",
    "powersgd:2",   "powersgd:1,start=3,min-rate=1"};
enum { CODECS = sizeof codecs / sizeof *codecs, WITHOUT_SHAPES = 8 };

static void gradients(const char *model, int samples, int steps)
{
    char options[400];

    for (int c = 0; c < CODECS; c++)
        for (int turn = 0; turn < 3; turn++) {
            const int ranks = turn == 0 ? 1 : turn + 1, k = turn + 1;

            snprintf(options, sizeof options,
                     "--model %s --data synth:%d --batch 4 --ranks %d "
                     "--accumulate %d --compress %s --steps %d --eval-every 0 "
                     "--bucket-mb %s --first-bucket-mb 0.001",
                     model, samples, ranks, k, codecs[c], steps,
                     turn == 2 ? "0.02" : "25");
            CHECK((check(options) == 0) == (ranks == 1));
        }
}

/* By hand: 4 bytes a parameter, padded to 64 bytes a tensor but for the last,
 * which is fc1.bias. */
static void by_hand(void)
{
    /* fc1 (8,784), (8) to 16; fc2 (10,8), (10) to 16 */
    const uint64_t padded = 8 * 784 + 16 + 80 + 16;

    CHECK_EQ_U64(check("--model mlp:8 --data synth:200 --batch 4 --ranks 2 "
                       "--steps 7 --bucket-mb 25 --first-bucket-mb 25"),
                 2 * 7 * 4 * (padded - 8));
    CHECK_EQ_U64(check("--model mlp:8 --data synth:200 --batch 4 --ranks 3 "
                       "--steps 7 --sync local --sync-every 3"),
                 3 * UINT64_C(3) * 4 * (8 * 784 + 8 + 80 + 10));
}

/* A skipped step sends what any step sends. */
static void skipped(void)
{
    check("--model mlp:8 --data synth:200 --batch 4 --ranks 2 --steps 12 "
          "--compress topk:0.1,warmup=6 --loss-scale dynamic --inject-inf "
          "2-4:1");
    check("--model mlp:8 --data synth:200 --batch 4 --ranks 2 --steps 12 "
          "--compress int8 --sync diloco --sync-every 2 --loss-scale dynamic "
          "--inject-inf 2-4:1");
}

/* ---- local modes ----------------------------------------------------------
 */

static const char *const modes[] = {
    "local --sync-every 1",
    "local --sync-every 7 --moments average",
    "local --sync-every 3 --weighting samples --shards sorted",
    "post-local --sync-every 4",
    "post-local --sync-every 4 --sync-start 5 --outer nesterov",
    "slowmo --sync-every 5 --moments reset",
    "slowmo --sync-every 3 --worker-size 2",
    "diloco --sync-every 20",
    "diloco --sync-every 6 --worker-size 4",
    "diloco --sync-every 4 --drop-deltas 0.4 --weighting steps",
    "streaming --sync-every 6",
    "streaming --sync-every 8 --fragments 2 --sync-delay 3 --worker-size 2",
    "streaming --sync-every 5 --fragments 1 --sync-alpha 0",
    "streaming --sync-every 4 --sync-delay 4 --sync-alpha 0 --stale eager",
    "oneshot",
    "local --sync-levels 2:2,4:6",
    "diloco --sync-levels 2:1,4:5 --fragments 2",
    "local --sync-every 2 --sync-schedule qsr:0.002 --sync-max 9",
};

static void local_modes(int codec_stride)
{
    char options[512];
    const int n = (int)(sizeof modes / sizeof *modes);

    for (int m = 0; m < n; m++)
        for (int c = m % codec_stride; c < WITHOUT_SHAPES; c += codec_stride) {
            snprintf(options, sizeof options,
                     "--model mlp:9,7,6 --data synth:300 --batch 4 --ranks 4 "
                     "--steps 19 --eval-every 6 --compress %s --sync %s",
                     codecs[c], modes[m]);
            CHECK(check(options) > 0);
        }
}

/* Schedules that depend on the run say that they can't be predicted. */
static void unknown(void)
{
    char line[8192], value[128];

    if (!summary_of("--model mlp:8 --data synth:200 --batch 4 --ranks 2 "
                    "--steps 9 --sync local --sync-schedule adacomm",
                    line))
        return;
    story_value(line, "bytes_predicted", value);
    CHECK_EQ_STR(value, "null");
    CHECK(number(line, "bytes_sync_wire") > 0);
}

int main(void)
{
    int fd;

    snprintf(json, sizeof json, "%s/tacit-bytes-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    fd = mkstemp(json);
    if (!CHECK(fd >= 0)) return tac_check_summary();
    close(fd);
    by_hand();
    gradients("mlp:20,12", 200, 13);
    gradients("cnn", 60, 3);
    skipped();
    local_modes(3);
    unknown();
    remove(json);
    printf("%d runs\n", runs);
    return tac_check_summary();
}
