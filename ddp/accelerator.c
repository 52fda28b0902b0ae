/* An accelerator's life: from Accelerate's words to one configuration, and from
 * this to a replica with its data. */
#include "accelerator_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "compare.h"
#include "run.h"

/* ---- creation -------------------------------------------------------------
 */

static tac_status read_precision(tac_accelerator *a, const char *word)
{
    if (!word) return TAC_OK;
    if (!strcmp(word, "no"))
        a->config.precision = "fp32";
    else if (!strcmp(word, "fp16") || !strcmp(word, "bf16"))
        a->config.precision = word;
    else
        return tac_fail(a->ctx, TAC_ERR_CONFIG,
                        "mixed_precision is \"%.40s\": known are no, fp16 and "
                        "bf16",
                        word);
    return TAC_OK;
}

static tac_status read_config(tac_accelerator *a,
                              const tac_accelerator_config *c)
{
    if (c->base)
        a->config = *c->base;
    else
        TAC_TRY(tac_train_config_defaults(&a->config));
    if (c->gradient_accumulation_steps < 0)
        return tac_fail(a->ctx, TAC_ERR_CONFIG,
                        "gradient_accumulation_steps is %lld: give a number of "
                        "batches",
                        (long long)c->gradient_accumulation_steps);
    if (c->gradient_accumulation_steps > 0)
        a->config.accumulate = c->gradient_accumulation_steps;
    if (c->gradient_checkpointing) a->config.recompute = "block";
    a->config.sync = "grad";
    a->project_dir = c->project_dir;
    a->out = c->out;
    return read_precision(a, c->mixed_precision);
}

tac_status tac_accelerator_create(tac_context *ctx, tac_comm *comm,
                                  const tac_accelerator_config *config,
                                  tac_accelerator **out)
{
    static const tac_accelerator_config none = {.struct_size = sizeof none};
    tac_accelerator_config c = none;
    tac_accelerator *a;
    tac_status s;

    if (!comm || !out || (config && config->struct_size < sizeof(size_t)))
        return tac_fail(ctx, TAC_ERR_ARG,
                        "tac_accelerator_create: comm, out and struct_size are "
                        "needed");
    if (config)
        memcpy(&c, config,
               config->struct_size < sizeof c ? config->struct_size : sizeof c);
    a = calloc(1, sizeof *a);
    if (!a) return tac_fail(ctx, TAC_ERR_NOMEM, "no memory for an accelerator");
    a->ctx = ctx;
    a->comm = comm;
    a->rank = tac_comm_rank(comm);
    a->world = tac_comm_size(comm);
    s = read_config(a, &c);
    if (s < 0) {
        tac_accelerator_destroy(a);
        return s;
    }
    *out = a;
    return TAC_OK;
}

void tac_accelerator_destroy(tac_accelerator *a)
{
    if (!a) return;
    if (a->log) fclose(a->log);
    tac_loader_destroy(a->loader);
    tac_loader_destroy(a->eval_loader);
    tac_sampler_destroy(a->sampler);
    tac_sampler_destroy(a->eval_sampler);
    tac_replica_close(a->replica);
    tac_dataset_destroy(a->train);
    tac_dataset_destroy(a->eval);
    free(a->gathered);
    free(a);
}

/* ---- what all ranks agree on ----------------------------------------------
 */

tac_status tac__accelerator_agree(tac_accelerator *a, tac_status mine)
{
    return tac__agree(a->comm, mine);
}

tac_status tac__accelerator_expect(const tac_accelerator *a, tac__stage stage,
                                   const char *call, const char *missing)
{
    if (!a->replica)
        return tac_fail(a->ctx, TAC_ERR_STATE,
                        "tac_accelerator_%s: call tac_accelerator_prepare "
                        "first",
                        call);
    if (a->stage == stage) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_STATE,
                    "tac_accelerator_%s: call tac_accelerator_%s first", call,
                    missing);
}

tac_status tac__accelerator_given(const tac_accelerator *a, const void *p,
                                  const char *call, const char *name)
{
    if (p) return TAC_OK;
    return tac_fail(a->ctx, TAC_ERR_ARG, "tac_accelerator_%s: %s is NULL", call,
                    name);
}

tac_status tac__accelerator_room(tac_accelerator *a, size_t bytes)
{
    unsigned char *p;

    if (bytes <= a->room) return TAC_OK;
    p = realloc(a->gathered, bytes);
    if (!p)
        return tac_fail(a->ctx, TAC_ERR_NOMEM, "no memory to gather %zu bytes",
                        bytes);
    a->gathered = p;
    a->room = bytes;
    return TAC_OK;
}

/* ---- preparation ----------------------------------------------------------
 */

static tac_status read_parts(tac_accelerator *a, const tac_prepare_config *p)
{
    tac_train_config *c = &a->config;

    if (isnan(p->learning_rate) || isnan(p->weight_decay) ||
        isnan(p->num_train_epochs))
        return tac_fail(a->ctx, TAC_ERR_CONFIG,
                        "tac_accelerator_prepare: learning_rate %g, "
                        "weight_decay %g, num_train_epochs %g: each must be a "
                        "number",
                        p->learning_rate, p->weight_decay, p->num_train_epochs);
    if (p->model && p->model->spec) c->model = p->model->spec;
    if (p->batch_size != 0) c->batch = p->batch_size;
    if (p->eval_batch_size != 0) c->eval_batch = p->eval_batch_size;
    if (p->optimizer) {
        c->optimizer = p->optimizer;
        c->weight_decay = p->weight_decay;
    }
    if (p->learning_rate != 0) c->lr = p->learning_rate;
    if (p->lr_scheduler) c->schedule = p->lr_scheduler;
    if (p->num_warmup_steps != 0) c->warmup_steps = p->num_warmup_steps;
    if (p->num_train_epochs != 0) c->epochs = p->num_train_epochs;
    if (p->max_train_steps != 0) c->steps = p->max_train_steps;
    if (p->seed > 0) c->seed = p->seed;
    a->asked = *c;
    return tac_train_config_resolve(a->ctx, c, a->world);
}

static tac_status open_sampler(tac_accelerator *a, tac_dataset *set,
                               int shuffle, tac_sampler **out)
{
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;

    sc.count = tac_dataset_get_info(set).count;
    sc.replicas = (size_t)a->world;
    sc.rank = (size_t)a->rank;
    sc.shuffle = shuffle;
    sc.seed = a->config.seed;
    return tac_sampler_create(a->ctx, &sc, out);
}

static tac_status open_loader(tac_accelerator *a, tac_dataset *set,
                              int64_t batch, tac_sampler *sampler,
                              tac_loader **out)
{
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;

    lc.batch = (size_t)batch;
    lc.prefetch = (size_t)a->config.prefetch;
    lc.drop_partial = sampler == a->sampler && a->config.drop_last;
    return tac_loader_create(a->ctx, set, sampler, &lc, out);
}

/* Groups do not cross the end of an epoch. */
static tac_status plan_steps(tac_accelerator *a)
{
    const uint64_t k = (uint64_t)a->config.accumulate;
    const double epochs = a->config.epochs;

    a->epoch_steps = (tac_loader_batches(a->loader) + k - 1) / k;
    if (a->epoch_steps == 0)
        return tac_fail(a->ctx, TAC_ERR_CONFIG,
                        "no batch of %lld samples for each of %d ranks in %zu "
                        "samples: use fewer ranks or a smaller batch",
                        (long long)a->config.batch, a->world,
                        tac_sampler_count(a->sampler));
    a->total_steps =
        a->config.steps > 0
            ? (uint64_t)a->config.steps
            : (uint64_t)ceil(epochs * (double)a->epoch_steps - 1e-9);
    return TAC_OK;
}

static tac_status open_data(tac_accelerator *a)
{
    const tac_train_config *c = &a->config;

    TAC_TRY(open_sampler(a, a->train, 1, &a->sampler));
    TAC_TRY(open_loader(a, a->train, c->batch, a->sampler, &a->loader));
    TAC_TRY(plan_steps(a));
    if (!a->eval) return TAC_OK;
    TAC_TRY(open_sampler(a, a->eval, 0, &a->eval_sampler));
    return open_loader(a, a->eval, c->eval_batch > 0 ? c->eval_batch : c->batch,
                       a->eval_sampler, &a->eval_loader);
}

static tac_status open_local(tac_accelerator *a, const tac_prepare_config *p)
{
    tac_dataset_info info;

    TAC_TRY(read_parts(a, p));
    a->train = tac_dataset_retain(p->train_dataset);
    if (p->eval_dataset) a->eval = tac_dataset_retain(p->eval_dataset);
    TAC_TRY(open_data(a));
    info = tac_dataset_get_info(a->train);
    return tac_replica_open(a->ctx, a->comm, &a->config, &info, p->model,
                            &a->replica);
}

/* Else ranks would wait for each other, or train different models. */
static tac_status compare(tac_accelerator *a)
{
    tac__lines l = {.used = 0};
    char n[32];

    tac__lines_config(&l, &a->config);
    snprintf(n, sizeof n, "%zu", tac_dataset_get_info(a->train).count);
    tac__lines_add(&l, "training samples", n);
    snprintf(n, sizeof n, "%zu",
             a->eval ? tac_dataset_get_info(a->eval).count : 0);
    tac__lines_add(&l, "evaluation samples", n);
    return tac__compare_lines(a->comm, &l);
}

/* As ddp_train does, before anything large is allocated. */
static tac_status check_memory(tac_accelerator *a,
                               const tac_model_source *model)
{
    tac__rank rank = {
        .ctx = a->ctx, .comm = a->comm, .rank = a->rank, .world = a->world};
    tac__run run = {.rank = &rank,
                    .config = &a->config,
                    .model = model,
                    .data = {.train = a->train, .val = a->eval},
                    .replica = a->replica,
                    .total_steps = a->total_steps};

    TAC_TRY(tac__place_find(a->comm, &rank.place));
    return tac__memory_check(&run);
}

tac_status tac_accelerator_prepare(tac_accelerator *a,
                                   const tac_prepare_config *parts)
{
    tac_prepare_config p = {.struct_size = sizeof p};

    if (!parts || parts->struct_size < sizeof(size_t) ||
        !parts->train_dataset || a->train)
        return tac_fail(a->ctx, TAC_ERR_ARG,
                        "tac_accelerator_prepare: once, with struct_size and "
                        "a train_dataset");
    memcpy(&p, parts,
           parts->struct_size < sizeof p ? parts->struct_size : sizeof p);
    TAC_TRY(tac__accelerator_agree(a, open_local(a, &p)));
    TAC_TRY(tac__accelerator_agree(a, compare(a)));
    TAC_TRY(tac__accelerator_agree(a, check_memory(a, p.model)));
    return tac__accelerator_agree(
        a, tac_replica_connect(a->replica, a->total_steps));
}
