/* Saving an accelerator's state and going on with it: the checkpoint's folder
 * and tensors are those of ddp_train (docs/checkpoints.md), without what only
 * reports need. */
#include "accelerator_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica_impl.h"
#include "tacit/safetensors.h"

/* ---- what is kept ---------------------------------------------------------
 */

static tac_status walk_model(void *accelerator, const tac_state_visitor *v)
{
    return tac_params_walk(((tac_accelerator *)accelerator)->replica->params,
                           v);
}

static tac_status walk_state(void *accelerator, const tac_state_visitor *v)
{
    tac_accelerator *a = accelerator;
    tac_replica *r = a->replica;

    TAC_TRY(tac_optimizer_walk(r->optimizer, v));
    TAC_TRY(tac_scaler_walk(r->scaler, v));
    TAC_TRY(tac_state_walk(v, "sampler.", tac_sampler_walk, a->sampler));
    return tac_state_visit_u64(v, "accelerator.attempts", &r->attempts);
}

static tac_status show_codec(void *codec, const tac_state_visitor *v)
{
    return tac_codec_visit(codec, v);
}

static tac_status walk_rank(void *accelerator, const tac_state_visitor *v)
{
    tac_accelerator *a = accelerator;

    TAC_TRY(tac_state_visit_u64(v, "accelerator.attempts_of_rank",
                                &a->replica->attempts));
    return tac_state_walk(v, "codec.", show_codec, a->replica->codec);
}

typedef struct file {
    char name[40];
    tac_state_walk_fn *walk;
} file;

enum { MODEL, STATE, RANK, FILES };

static void name_files(const tac_accelerator *a, file f[FILES])
{
    f[MODEL] = (file){"model.safetensors", walk_model};
    f[STATE] = (file){"state.safetensors", walk_state};
    f[RANK] = (file){"", walk_rank};
    snprintf(f[RANK].name, sizeof f[RANK].name, "rank-%05d.safetensors",
             a->rank);
}

/* ---- saving ---------------------------------------------------------------
 */

static tac_status no_memory(tac_accelerator *a)
{
    return tac_fail(a->ctx, TAC_ERR_NOMEM, "no memory for a checkpoint");
}

/* What must be the same to go on. */
static void describe(const tac_accelerator *a, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "world %d, batch %lld, accumulate %lld, model %s, optimizer %s, "
             "precision %s, seed %llu, steps %llu, samples %zu",
             a->world, (long long)a->config.batch,
             (long long)a->config.accumulate, tac_model_spec(a->replica->model),
             a->config.optimizer, a->config.precision,
             (unsigned long long)a->config.seed,
             (unsigned long long)a->total_steps, tac_sampler_count(a->sampler));
}

static tac_status write_tensors(tac_accelerator *a, const char *root,
                                uint64_t step, const file *f)
{
    char *path = tac_checkpoint_tmp_path(root, step, f->name), text[512];
    tac_safetensors_writer *w = NULL;
    tac_status s = path ? TAC_OK : no_memory(a);

    describe(a, text, sizeof text);
    if (s >= 0) s = tac_safetensors_writer_create(a->ctx, &w);
    if (s >= 0) {
        const tac_state_visitor v = tac_safetensors_collect(w);

        s = f->walk(a, &v);
    }
    if (s >= 0) s = tac_safetensors_set_metadata(w, "settings", text);
    if (s >= 0) s = tac_safetensors_write(w, path, NULL);
    tac_safetensors_writer_destroy(w);
    free(path);
    return s;
}

static tac_status write_info(tac_accelerator *a, const char *root,
                             uint64_t step)
{
    tac_checkpoint_info info = {.format = 1,
                                .step = tac__replica_applied(a->replica),
                                .attempts = a->replica->attempts,
                                .world = a->world,
                                .files = 2 + a->world};
    char *path = tac_checkpoint_tmp_path(root, step, "checkpoint.json");
    tac_status s = path ? TAC_OK : no_memory(a);

    snprintf(info.program, sizeof info.program, "tacit %s", TAC_VERSION_STRING);
    if (s >= 0) s = tac_checkpoint_write_info(a->ctx, path, &info);
    free(path);
    return s;
}

static tac_status write_files(tac_accelerator *a, const char *root,
                              uint64_t step)
{
    file f[FILES];

    name_files(a, f);
    TAC_TRY(write_tensors(a, root, step, &f[RANK]));
    if (a->rank != 0) return TAC_OK;
    TAC_TRY(write_tensors(a, root, step, &f[MODEL]));
    TAC_TRY(write_tensors(a, root, step, &f[STATE]));
    return write_info(a, root, step);
}

static tac_status expect_between(tac_accelerator *a, const char *call)
{
    TAC_TRY(tac__accelerator_expect(a, TAC__IDLE, call, "step and zero_grad"));
    if (!a->dirty && !a->replica->local) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_STATE,
                    "tac_accelerator_%s: inside a group of batches or of local "
                    "SGD",
                    call);
}

tac_status tac_accelerator_save_state(tac_accelerator *a, const char *dir)
{
    const uint64_t step = a->replica ? a->replica->attempts : 0;

    TAC_TRY(expect_between(a, "save_state"));
    TAC_TRY(tac__accelerator_given(a, dir, "save_state", "dir"));
    TAC_TRY(tac__accelerator_agree(
        a, a->rank == 0 ? tac_checkpoint_begin(a->ctx, dir, step) : TAC_OK));
    tac_status s = tac__accelerator_agree(a, write_files(a, dir, step));
    if (s < 0) {
        if (a->rank == 0) tac_checkpoint_discard(dir, step);
        return s;
    }
    return tac__accelerator_agree(
        a, a->rank == 0 ? tac_checkpoint_publish(a->ctx, dir, step) : TAC_OK);
}

/* ---- loading --------------------------------------------------------------
 */

static tac_status open_file(tac_accelerator *a, const char *checkpoint,
                            const file *f, tac_safetensors **out)
{
    char *path = tac_checkpoint_path(checkpoint, f->name), text[512];
    tac_status s =
        path ? tac_safetensors_open(a->ctx, path, out) : no_memory(a);
    const char *saved;

    free(path);
    TAC_TRY(s);
    describe(a, text, sizeof text);
    saved = tac_safetensors_metadata(*out, "settings");
    if (saved && !strcmp(saved, text)) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_MISMATCH,
                    "%s/%s was saved by %s; this is %s: use the same settings",
                    checkpoint, f->name, saved ? saved : "another program",
                    text);
}

/* Nothing is written before all files have been opened. */
static tac_status load_files(tac_accelerator *a, const char *checkpoint)
{
    tac_safetensors *open[FILES] = {NULL, NULL, NULL};
    file f[FILES];
    tac_status s = TAC_OK;

    name_files(a, f);
    for (int i = FILES - 1; i >= 0 && s >= 0; i--)
        s = open_file(a, checkpoint, &f[i], &open[i]);
    for (int i = 0; i < FILES && s >= 0; i++)
        s = tac_safetensors_load(open[i], f[i].walk, a, 0);
    for (int i = 0; i < FILES; i++) tac_safetensors_close(open[i]);
    return s;
}

static tac_status load(tac_accelerator *a, const char *dir)
{
    char *checkpoint = NULL;
    tac_status s;

    tac_loader_stop(a->loader);
    TAC_TRY(tac_checkpoint_find(a->ctx, dir, &checkpoint));
    s = load_files(a, checkpoint);
    free(checkpoint);
    TAC_TRY(s);
    a->resuming = 1;
    return tac_replica_refresh(a->replica);
}

tac_status tac_accelerator_load_state(tac_accelerator *a, const char *dir)
{
    TAC_TRY(expect_between(a, "load_state"));
    TAC_TRY(tac__accelerator_given(a, dir, "load_state", "dir"));
    return tac__accelerator_agree(a, load(a, dir));
}
