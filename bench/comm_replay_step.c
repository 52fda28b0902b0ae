/* comm_replay_step.c: steps to replay: the built-in GPT-2, and what they have
 * in common with those from files.
 *
 * gpt2-124M has 12 layers of width 768, 1024 positions and a vocabulary padded
 * to 50304: 124,475,904 parameters. The output layer shares its matrix with the
 * embedding, whose own share of the gradient comes last of all, so the largest
 * tensor is final at the very end. Ready times are shares of backward's FLOP:
 * 4 a parameter of a matrix and token, 8 T C a layer for attention, with T =
 * 1024; what is no matrix costs nothing. */
#include <stdlib.h>
#include <string.h>

#include "comm_replay.h"

tac_status tac__replay_add(tac_context *ctx, tac__replay_step *s,
                           const tac__replay_tensor *t)
{
    if ((s->n & (s->n + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
        const size_t room = 2 * s->n + 1;
        tac__replay_tensor *more = realloc(s->tensor, room * sizeof *more);
        if (!more) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for tensors");
        s->tensor = more;
    }
    char *copy = strdup(t->name);
    if (!copy) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for tensors");
    s->tensor[s->n] = *t;
    s->tensor[s->n++].name = copy;
    return TAC_OK;
}

void tac__replay_free(tac__replay_step *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->tensor[i].name);
    free(s->tensor);
    s->tensor = NULL;
    s->n = 0;
}

/* ---- gpt2-124M -------------------------------------------------------------
 */

enum { L = 12, C = 768, T = 1024, V = 50304 };

typedef struct walk {
    tac_context *ctx;
    tac__replay_step *step;
    double flop; /* a token, so far */
    tac_status status;
} walk;

static void add(walk *w, int layer, const char *name, size_t rows,
                size_t elements)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "h.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    const tac__replay_tensor t = {full, elements * sizeof(float), rows,
                                  w->flop};
    if (w->status >= 0) w->status = tac__replay_add(w->ctx, w->step, &t);
}

static void matrix(walk *w, int layer, const char *name, size_t in, size_t out)
{
    char full[48];
    w->flop += 4.0 * (double)in * (double)out;
    snprintf(full, sizeof full, "%s.weight", name);
    add(w, layer, full, out, in * out);
    snprintf(full, sizeof full, "%s.bias", name);
    add(w, layer, full, 0, out);
}

static void norm(walk *w, int layer, const char *name)
{
    char full[48];
    snprintf(full, sizeof full, "%s.weight", name);
    add(w, layer, full, 0, C);
    snprintf(full, sizeof full, "%s.bias", name);
    add(w, layer, full, 0, C);
}

static void block(walk *w, int layer)
{
    matrix(w, layer, "mlp.c_proj", 4 * C, C);
    matrix(w, layer, "mlp.c_fc", C, 4 * C);
    norm(w, layer, "ln_2");
    matrix(w, layer, "attn.c_proj", C, C);
    w->flop += 8.0 * T * C;
    matrix(w, layer, "attn.c_attn", C, 3 * C);
    norm(w, layer, "ln_1");
}

tac_status tac__replay_gpt2(tac_context *ctx, size_t late_bytes,
                            tac__replay_step *out)
{
    tac__replay_step s = {.source = "gpt2-124M"};
    walk w = {ctx, &s, 4.0 * V * C, TAC_OK}; /* the output layer comes first */
    if (late_bytes) add(&w, -1, "wte.dense", V, (size_t)V * C);
    norm(&w, -1, "ln_f");
    for (int layer = L; layer-- > 0;) block(&w, layer);
    add(&w, -1, "wpe", T, (size_t)T * C);
    if (late_bytes)
        add(&w, -1, "wte.rows", late_bytes / sizeof(float) / C,
            late_bytes / sizeof(float));
    else
        add(&w, -1, "wte", V, (size_t)V * C);
    if (w.status < 0) {
        tac__replay_free(&s);
        return w.status;
    }
    s.backward_us = w.flop;
    *out = s;
    return TAC_OK;
}

tac_status tac__replay_load(tac_context *ctx, const char *source,
                            size_t late_bytes, tac__replay_step *out)
{
    const int built_in = strcmp(source, "gpt2-124M") == 0;
    if (late_bytes && !built_in)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "--split-embedding is for --replay gpt2-124M");
    tac_status s = built_in ? tac__replay_gpt2(ctx, late_bytes, out)
                            : tac__replay_read(ctx, source, out);
    if (s >= 0) out->source = source;
    return s;
}
