/* ddp_damage.h: checkpoints of the run folder "whole" that are not what they
 * were, and what ddp_train says to them. `base`: the options of that run. */
#ifndef DDP_DAMAGE_H
#define DDP_DAMAGE_H

#include "ddp_story.h"
#include "tacit/safetensors.h"

/* Runs with stderr in a file, which must have `text` once. */
static inline void damage_refused(const char *base, const char *options,
                                  const char *text)
{
    char path[128], line[8192];
    int times = 0;

    story_folder(path, "stderr");
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    FILE *f = freopen(path, "w", stderr);
    const int code = story_run(base, options, 0);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK(f);
    CHECK_MSG(code == 2, "%s: exit code %d", options, code);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, text)) times++;
    if (f) fclose(f);
    CHECK_MSG(times == 1, "%s: %d lines with \"%s\"", options, times, text);
}

static inline void damage_file(char path[192], int step, const char *name)
{
    story_folder(path, "whole");
    snprintf(path + strlen(path), 192 - strlen(path),
             "/checkpoints/step-%08d/%.60s", step, name);
}

/* Resumes from the checkpoint that the file is in. */
static inline void damage_refused_from(const char *base, const char *file,
                                       const char *text)
{
    char options[256];

    snprintf(options, sizeof options, "--resume %.*s",
             (int)(strrchr(file, '/') - file), file);
    damage_refused(base, options, text);
}

/* With `from` (of step `from_step`) in the place of `to` in `step`. */
static inline void damage_swap(const char *base, int step, const char *to,
                               int from_step, const char *from,
                               const char *text)
{
    char place[192], aside[192], other[192];

    damage_file(place, step, to);
    damage_file(aside, step, "aside");
    damage_file(other, from_step, from);
    CHECK(rename(place, aside) == 0 && link(other, place) == 0);
    damage_refused_from(base, place, text);
    CHECK(rename(aside, place) == 0);
}

/* Where the data of a tensor begin in the file; -1: they are not there. */
static inline long damage_place(const char *path, const char *name)
{
    tac_safetensors *f = NULL;
    long at = -1;

    if (!CHECK_OK(tac_safetensors_open(NULL, path, &f))) return -1;
    const tac_safetensors_item *item = tac_safetensors_find(f, name);
    const tac_safetensors_item *last =
        tac_safetensors_get(f, tac_safetensors_count(f) - 1);
    FILE *file = fopen(path, "r");

    if (CHECK(item && file) && fseek(file, 0, SEEK_END) == 0)
        at = ftell(file) -
             (long)((const char *)last->data - (const char *)item->data +
                    (ptrdiff_t)last->bytes);
    if (file) fclose(file);
    tac_safetensors_close(f);
    return at;
}

/* Puts another number into the file; the one that was there. */
static inline int64_t damage_number(const char *path, long at, int64_t value)
{
    int64_t before = 0;
    FILE *f = fopen(path, "r+");

    CHECK(f && fseek(f, at, SEEK_SET) == 0 &&
          fread(&before, sizeof before, 1, f) == 1 &&
          fseek(f, at, SEEK_SET) == 0 &&
          fwrite(&value, sizeof value, 1, f) == 1);
    if (f) fclose(f);
    return before;
}

/* A counter of that step's file that can't be. */
static inline void damage_counter(const char *base, int step, const char *file,
                                  const char *name, int64_t value)
{
    char path[192], text[80];

    damage_file(path, step, file);
    const long at = damage_place(path, name);
    if (at < 0) return;
    const int64_t right = damage_number(path, at, value);
    snprintf(text, sizeof text, "%.30s is %lld, but after %d attempts", name,
             (long long)value, step);
    damage_refused_from(base, path, text);
    damage_number(path, at, right);
}

/* Cuts the file. */
static inline void damage_cut(int step, const char *name, long at)
{
    char path[192];

    damage_file(path, step, name);
    CHECK_MSG(truncate(path, at) == 0, "%s", path);
}

#endif
