/* ddp_story.h: runs of ddp_train with threads as ranks, without its main, and
 * what they tell in their run folders: everything but times, to be compared
 * with other runs. */
#ifndef DDP_STORY_H
#define DDP_STORY_H

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "data_files.h"
#include "save.h"
#include "tac_check.h"
#include "train.h"

enum { STORY_LINES = 64, STORY_TEXT = 4096, STORY_ARGS = 96 };

static char story_dir[64];

/* ---- one run --------------------------------------------------------------
 */

static inline void story_signals(void)
{
}

/* Splits `text` at spaces. */
static inline int story_split(char *text, char *argv[STORY_ARGS])
{
    int n = 0;

    argv[n++] = (char *)(uintptr_t) "ddp_train";
    for (char *p = strtok(text, " "); p && n < STORY_ARGS - 1;
         p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n] = NULL;
    return n;
}

/* Runs ddp_train with these options; the exit code. `stop`: as if a signal had
 * come before the first step. */
static inline int story_run(const char *options, const char *more, int stop)
{
    char text[STORY_TEXT], *argv[STORY_ARGS];
    volatile sig_atomic_t stopped = stop;
    tac_train_config config;
    const tac_options_config oc = {"ddp_train", "", NULL,
                                   tac_train_config_options(), &config};
    tac_options *o = NULL;
    tac_options_action action;
    tac__train_program program = TAC__TRAIN_PROGRAM_INIT;
    int code;

    snprintf(text, sizeof text, "%s %s", options, more);
    const int argc = story_split(text, argv);
    if (!CHECK_OK(tac_options_create(NULL, &oc, &o))) return -1;
    program.options = o;
    program.config = &config;
    program.stop = &stopped;
    program.catch_signals = story_signals;
    const tac_status read = tac_options_read_argv(o, argc, argv, &action);
    tac_launch_config lc = tac__train_launch(&config);
    lc.refused = read;
    code = tac_launch(&lc, tac__train, &program);
    tac_options_destroy(o);
    return code;
}

/* ---- what a run says ------------------------------------------------------
 */

/* The value of a key in a line of JSON, as text; "" if it isn't there. */
static inline void story_value(const char *line, const char *key, char out[128])
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(line, quoted);
    out[0] = '\0';
    if (!at) return;
    at += strlen(quoted);
    snprintf(out, 128, "%.*s", (int)strcspn(at, ",}"), at);
}

/* The named values of a line. */
static inline void story_pick(const char *line, const char *const *keys,
                              char out[STORY_TEXT])
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; keys[i]; i++) {
        char value[128];

        story_value(line, keys[i], value);
        if (value[0])
            n += (size_t)snprintf(out + n, STORY_TEXT - n, "%s=%s ", keys[i],
                                  value);
    }
}

/* What must be equal of a line: everything but times, and bytes, of which those
 * of a delta under way are counted sooner or later. */
static inline void story_digest(const char *line, char out[STORY_TEXT])
{
    static const char *const keys[] = {"kind",
                                       "step",
                                       "attempts",
                                       "epoch",
                                       "loss",
                                       "accuracy",
                                       "learning_rate",
                                       "grad_norm",
                                       "loss_scale",
                                       "skipped_steps",
                                       "eval_loss",
                                       "eval_accuracy",
                                       "nonfinite_losses",
                                       "syncs",
                                       NULL};

    story_pick(line, keys, out);
}

static inline void story_digest_summary(const char *line, char out[STORY_TEXT])
{
    static const char *const keys[] = {"steps",
                                       "attempts",
                                       "skipped_steps",
                                       "epochs",
                                       "samples",
                                       "train_loss",
                                       "eval_loss",
                                       "eval_accuracy",
                                       "test_loss",
                                       "test_accuracy",
                                       "loss_scale",
                                       "syncs",
                                       "params_hash",
                                       "bytes_sync_logical",
                                       "bytes_sync_wire",
                                       "bytes_predicted",
                                       "local_loss",
                                       "local_accuracy",
                                       "consensus_distance",
                                       "delta_norm",
                                       NULL};

    story_pick(line, keys, out);
}

typedef struct story {
    char line[STORY_LINES][STORY_TEXT]; /* of metrics.jsonl */
    int lines;
    char summary[STORY_TEXT];
} story;

static inline void story_read(const char *folder, story *s)
{
    char path[192], line[8192];
    FILE *f;

    *s = (story){.lines = 0};
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f) && s->lines < STORY_LINES)
        story_digest(line, s->line[s->lines++]);
    if (f) fclose(f);
    snprintf(path, sizeof path, "%s/summary.json", folder);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f))
        story_digest_summary(line, s->summary);
    if (f) fclose(f);
}

/* Line by line from the end; `all`: also as many. */
static inline void story_compare(const story *a, const story *b, int all,
                                 const char *what)
{
    CHECK_MSG(a->summary[0] && !strcmp(a->summary, b->summary),
              "%s: summaries differ:\n  %s\n  %s", what, a->summary,
              b->summary);
    CHECK_MSG(a->lines > 0 && (!all || a->lines == b->lines),
              "%s: %d and %d lines", what, a->lines, b->lines);
    for (int i = 1; i <= b->lines && i <= a->lines; i++)
        CHECK_MSG(!strcmp(a->line[a->lines - i], b->line[b->lines - i]),
                  "%s: lines differ:\n  %s\n  %s", what, a->line[a->lines - i],
                  b->line[b->lines - i]);
}

/* ---- folders --------------------------------------------------------------
 */

static inline void story_folder(char out[128], const char *name)
{
    snprintf(out, 128, "%.60s/%.40s", story_dir, name);
}

static inline int story_remove(const char *path, const struct stat *st,
                               int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void story_clear(const char *name)
{
    char path[128];

    story_folder(path, name);
    nftw(path, story_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
