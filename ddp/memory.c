/* What one replica holds: counting allocators, and the same numbers before. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "local.h"
#include "replica_impl.h"
#include "settings.h"
#include "tacit/cpu.h"

typedef struct block {
    void *p;
    size_t bytes;
    struct block *next;
} block;

typedef struct counted {
    tac_allocator inner;
    size_t now;
    block *blocks;
} counted;

struct tac__memory {
    tac_context *ctx;
    counted kind[TAC__MEMORY_KINDS];
};

/* ---- counting ------------------------------------------------------------ */

static tac_status count_alloc(void *arg, size_t bytes, void **out)
{
    counted *c = arg;
    block *b = malloc(sizeof *b);
    tac_status s;

    if (!b) return tac_fail(NULL, TAC_ERR_NOMEM, "no memory");
    s = c->inner.alloc(c->inner.arg, bytes, out);
    if (s < 0) {
        free(b);
        return s;
    }
    *b = (block){*out, bytes, c->blocks};
    c->blocks = b;
    c->now += bytes;
    return TAC_OK;
}

static void count_free(void *arg, void *p)
{
    counted *c = arg;

    for (block **at = &c->blocks; *at; at = &(*at)->next) {
        block *b = *at;
        if (b->p != p) continue;
        *at = b->next;
        c->now -= b->bytes;
        free(b);
        break;
    }
    c->inner.free(c->inner.arg, p);
}

tac_status tac__memory_create(tac_replica *r)
{
    r->memory = calloc(1, sizeof *r->memory);
    if (!r->memory)
        return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory for a replica");
    r->memory->ctx = r->ctx;
    return TAC_OK;
}

void tac__memory_destroy(tac_replica *r)
{
    for (int k = 0; r->memory && k < TAC__MEMORY_KINDS; k++)
        while (r->memory->kind[k].blocks) {
            block *b = r->memory->kind[k].blocks;
            r->memory->kind[k].blocks = b->next;
            free(b);
        }
    free(r->memory);
    r->memory = NULL;
}

tac_allocator tac__memory_count(tac_replica *r, tac__memory_kind kind,
                                const tac_allocator *inner)
{
    counted *c = &r->memory->kind[kind];

    c->inner = *inner;
    return (tac_allocator){c, count_alloc, count_free};
}

/* ---- predicting ---------------------------------------------------------- */

/* Elements of the flat arenas: each tensor begins at 64 bytes. */
static size_t arena_elements(const tac_params *p)
{
    const size_t line = 64 / sizeof(float);
    size_t sum = 0;

    for (size_t i = 0; i < tac_params_count(p); i++)
        sum += (tac_params_get(p, i)->count + line - 1) / line * line;
    return sum;
}

static tac_status predict_optimizer(const tac__memory_case *c,
                                    uint64_t out[TAC__MEMORY_KINDS])
{
    tac__optimizer_settings settings;
    const tac_optimizer_config *oc = c->optimizer;
    size_t state = 0, scratch = 0;

    if (!oc) {
        TAC_TRY(tac__settings_optimizer(c->replica->ctx, c->replica->config,
                                        &settings));
        oc = &settings.config;
    }
    TAC_TRY(tac_optimizer_predict(c->replica->params, oc, &state, &scratch));
    out[TAC__MEMORY_OPTIMIZER] = state;
    out[TAC__MEMORY_SCRATCH] = scratch;
    return TAC_OK;
}

static int has_convolutions(const tac_params *p)
{
    for (size_t i = 0; i < tac_params_count(p); i++)
        if (tac_params_get(p, i)->ndim > 2) return 1;
    return 0;
}

/* With AMX a thread has what it rearranges for tiles beside the partial sums
 * of all threads, `sums`; without it either takes the other's place. */
static uint64_t bf16_kernel_bytes(uint64_t threads, int conv, uint64_t sums)
{
    const int amx = tac_cpu_detect().amx_bf16;
    const uint64_t unit = 64 << 10;
    const uint64_t own =
        threads * unit * (conv ? (amx ? 20 : 18) : (amx ? 4 : 1));

    if (threads == 1) return own;
    return amx ? own + sums : own > sums ? own : sums;
}

/* An estimate, fitted to what kernels were seen to hold (docs/memory.md): it
 * is the one row that is not counted in advance. A thread has scratch of fixed
 * size; what 16-bit kernels widen or rearrange grows with the batch up to some
 * mebibytes. */
static uint64_t kernel_bytes(const tac_replica *r)
{
    const uint64_t threads = (uint64_t)tac_context_threads(r->ctx);
    const uint64_t quarter = 256 << 10, most = UINT64_C(12) << 20;
    const int conv = has_convolutions(r->params);
    const uint64_t wide = tac_tape_widest(r->tape);

    if (r->low == TAC_F16) {
        const uint64_t bytes = 4 * wide < most ? 4 * wide : most;
        return threads * quarter * (conv ? 5 : 2) + bytes;
    }
    if (r->low == TAC_BF16)
        return bf16_kernel_bytes(threads, conv,
                                 2 * wide < most ? 2 * wide : most);
    return threads * quarter * (conv ? 3 : 1);
}

/* Parameters as one buffer; a codec's state does not depend on buckets but for
 * their padding. */
static tac_status predict_codec(const tac__memory_case *c, size_t elements,
                                uint64_t *out)
{
    const tac_replica *r = c->replica;
    const size_t n = tac_params_count(r->params);
    tac_codec_part *parts = calloc(n + 1, sizeof *parts);
    tac_codec *codec = NULL;
    char spec[256];

    if (!parts) return tac_fail(r->ctx, TAC_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < n; i++) {
        const tac_param *p = tac_params_get(r->params, i);
        parts[i] = (tac_codec_part){p->name, 0, p->count, p->ndim, p->shape};
    }
    tac__replica_codec_spec(r->config, c->steps, spec, sizeof spec);
    const tac_status s = tac_codec_create(r->ctx, spec, &codec);
    if (s >= 0)
        *out =
            tac_codec_predict(codec, elements, &(tac_codec_layout){n, parts, 0},
                              tac_comm_size(r->comm));
    tac_codec_destroy(codec);
    free(parts);
    return s;
}

static uint64_t loader_bytes(const tac_replica *r, const tac_data *data)
{
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    uint64_t one;

    lc.batch = (size_t)r->config->batch;
    lc.prefetch = (size_t)r->config->prefetch;
    one = tac_loader_predict(data->train, &lc); /* all have the same shape */
    return one > UINT64_MAX / 8 ? UINT64_MAX / 8 : 3 * one;
}

/* Gradients that are averaged are in symmetric memory, which the communicator
 * counts, too. */
static uint64_t comm_bytes(const tac_replica *r)
{
    const uint64_t all = tac_comm_bytes(r->comm) +
                         (r->own_worker ? tac_comm_bytes(r->own_worker) : 0);
    const uint64_t grads =
        r->worker ? r->memory->kind[TAC__MEMORY_GRADIENTS].now : 0;

    return all > grads ? all - grads : 0;
}

static uint64_t data_bytes(const tac_data *data)
{
    return tac_dataset_bytes(data->train) +
           (data->val ? tac_dataset_bytes(data->val) : 0) +
           (data->test ? tac_dataset_bytes(data->test) : 0);
}

/* A rank may lead a worker or not: what a leader holds. */
static tac_status predict_local(const tac__memory_case *c,
                                uint64_t out[TAC__MEMORY_KINDS])
{
    const tac_replica *r = c->replica;
    const int size = (int)r->config->worker_size;

    if (!tac_train_config_is_local(r->config)) return TAC_OK;
    if (size > 1)
        out[TAC__MEMORY_COMM] += tac_comm_child_bytes(r->comm, size, 0);
    if (tac_comm_size(r->comm) > size)
        out[TAC__MEMORY_MEAN] = tac_params_elements(r->params) * sizeof(float);
    return tac__local_predict(r, c->steps, &out[TAC__MEMORY_LOCAL]);
}

tac_status tac__memory_predict(const tac__memory_case *c,
                               uint64_t out[TAC__MEMORY_KINDS])
{
    const tac_replica *r = c->replica;
    const size_t elements = arena_elements(r->params);

    memset(out, 0, TAC__MEMORY_KINDS * sizeof *out);
    out[TAC__MEMORY_PARAMETERS] = elements * sizeof(float);
    out[TAC__MEMORY_GRADIENTS] = elements * sizeof(float);
    if (r->low != TAC_F32) out[TAC__MEMORY_WEIGHTS] = elements * 2;
    out[TAC__MEMORY_ACTIVATIONS] = tac_tape_high_water(r->tape);
    out[TAC__MEMORY_KERNELS] = kernel_bytes(r);
    out[TAC__MEMORY_COMM] = comm_bytes(r);
    out[TAC__MEMORY_LOADER] = loader_bytes(r, c->data);
    out[TAC__MEMORY_DATA] = data_bytes(c->data);
    TAC_TRY(predict_optimizer(c, out));
    TAC_TRY(predict_local(c, out));
    if (strcmp(r->config->sync, "grad") != 0) return TAC_OK;
    return predict_codec(c, elements, &out[TAC__MEMORY_CODEC]);
}

void tac__memory_held(const tac_replica *r, const tac_data *data,
                      uint64_t out[TAC__MEMORY_KINDS])
{
    for (int k = 0; k < TAC__MEMORY_KINDS; k++) out[k] = r->memory->kind[k].now;
    if (r->optimizer)
        out[TAC__MEMORY_SCRATCH] = tac_optimizer_scratch_bytes(r->optimizer);
    out[TAC__MEMORY_KERNELS] = tac_device_kernel_bytes(r->device);
    out[TAC__MEMORY_COMM] = comm_bytes(r);
    out[TAC__MEMORY_CODEC] = tac_codec_held(r->codec);
    out[TAC__MEMORY_LOCAL] = tac__local_held(r);
    if (r->local && r->local->mean)
        out[TAC__MEMORY_MEAN] = tac_params_elements(r->params) * sizeof(float);
    out[TAC__MEMORY_LOADER] = loader_bytes(r, data);
    out[TAC__MEMORY_DATA] = data_bytes(data);
}

const char *tac__memory_name(tac__memory_kind kind)
{
    static const char *const names[TAC__MEMORY_KINDS] = {
        "parameters",      "working_weights",   "gradients",
        "optimizer_state", "optimizer_scratch", "activations",
        "kernel_scratch",  "communication",     "codec_state",
        "local_sgd",       "averaged_model",    "data_loader",
        "data_set",
    };
    return names[kind];
}

uint64_t tac__memory_host(const uint64_t bytes[TAC__MEMORY_KINDS], int ranks,
                          int worker_size, int processes)
{
    const uint64_t leaders =
        (uint64_t)((ranks + worker_size - 1) / worker_size);
    uint64_t a_rank = 0;

    for (int k = 0; k < TAC__MEMORY_KINDS; k++)
        if (k != TAC__MEMORY_DATA && k != TAC__MEMORY_LOCAL) a_rank += bytes[k];
    return (uint64_t)ranks * a_rank + leaders * bytes[TAC__MEMORY_LOCAL] +
           (uint64_t)processes * bytes[TAC__MEMORY_DATA];
}
