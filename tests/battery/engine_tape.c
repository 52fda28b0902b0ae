/* engine_tape.c: what the tape promises besides gradients: blocks that run
 * again, the order of final gradients, accumulation, memory, modes, threads. */
#include <malloc.h>
#include <pthread.h>

#include "engine_test.h"
#include "tac_check.h"
#include "tacit/trace.h"

enum { SIDE = 8, HIDDEN = 24, CLASSES = 5, MAX_BATCH = 12, MAX_PARAMS = 16 };

/* Registration order; "dead" is used by a branch that the loss does not see,
 * "idle" by nothing. */
enum {
    CONV_W,
    CONV_B,
    DEAD,
    FC_W,
    FC_B,
    TIED_W,
    TIED_B,
    IDLE,
    OUT_W,
    OUT_B,
    N_PARAMS
};

static const struct {
    const char *name;
    int ndim;
    size_t shape[4];
} table[N_PARAMS] = {
    {"conv.weight", 4, {3, 1, 3, 3}},
    {"conv.bias", 1, {3}},
    {"dead.weight", 2, {2, HIDDEN}},
    {"fc.weight", 2, {HIDDEN, 3 * SIDE *SIDE / 4}},
    {"fc.bias", 1, {HIDDEN}},
    {"tied.weight", 2, {HIDDEN, HIDDEN}},
    {"tied.bias", 1, {HIDDEN}},
    {"idle", 1, {7}},
    {"out.weight", 2, {CLASSES, HIDDEN}},
    {"out.bias", 1, {CLASSES}},
};

typedef struct net {
    eng_world w;
    eng_counter counter;
    tac_allocator activations;
    double images[MAX_BATCH * SIDE * SIDE]; /* or floats in the same place */
    int32_t labels[MAX_BATCH];
    size_t rows, stride; /* of the batch: row i is sample i * stride */
    size_t first;        /* sample */
    float dropout;
    int depth;      /* tied layers */
    int misbehave;  /* a block that differs from run to run */
    int input_grad; /* the images get a gradient, too */
    tac_tensor *x;
    tac_xent out;
} net;

/* --- the model --- */

static tac_status conv_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    (void)arg;
    return tac_op_conv2d(t, in[0], tac_tape_param(t, CONV_W),
                         tac_tape_param(t, CONV_B), 1, 1, TAC_ACT_RELU,
                         &out[0]);
}

/* Two outputs; the second is a view of a tensor with two consumers. */
static tac_status fc_block(tac_tape *t, void *arg, tac_tensor *const *in,
                           tac_tensor **out)
{
    const net *n = arg;
    tac_tensor *h, *p;

    TAC_TRY(tac_op_max_pool2d(t, in[0], 2, 2, &p));
    TAC_TRY(tac_op_flatten(t, p, &p));
    TAC_TRY(tac_op_dropout(t, p, n->dropout, &p));
    TAC_TRY(tac_op_linear(t, p, tac_tape_param(t, FC_W),
                          tac_tape_param(t, FC_B), TAC_ACT_RELU, &h));
    TAC_TRY(tac_op_dropout(t, h, n->dropout, &out[0]));
    return tac_op_reshape(t, h, 3, (size_t[3]){n->rows, 2, HIDDEN / 2},
                          &out[1]);
}

static tac_status inner_block(tac_tape *t, void *arg, tac_tensor *const *in,
                              tac_tensor **out)
{
    const net *n = arg;

    TAC_TRY(tac_op_linear(t, in[0], tac_tape_param(t, TIED_W),
                          tac_tape_param(t, TIED_B), TAC_ACT_RELU, &out[0]));
    return tac_op_dropout(t, out[0], n->dropout, &out[0]);
}

/* A block in a block, a residual path, and an input handed through. */
static tac_status tied_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    net *n = arg;
    tac_tensor *h;

    TAC_TRY(tac_tape_block(t, inner_block, n, 1, in, 1, &h));
    TAC_TRY(
        tac_op_linear(t, h, tac_tape_param(t, TIED_W), NULL, TAC_ACT_NONE, &h));
    if (n->misbehave++ > 1000) TAC_TRY(tac_op_relu(t, h, &h));
    TAC_TRY(tac_op_scale(t, h, 0.3, &h));
    TAC_TRY(tac_op_add(t, in[0], h, &out[0]));
    out[1] = in[1];
    return TAC_OK;
}

static tac_status loss_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    tac_tensor *y;
    tac_xent x;

    (void)arg;
    TAC_TRY(tac_op_linear(t, in[0], tac_tape_param(t, OUT_W),
                          tac_tape_param(t, OUT_B), TAC_ACT_NONE, &y));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, in[1], &x));
    out[0] = x.loss;
    out[1] = x.rows;
    out[2] = x.correct;
    return TAC_OK;
}

static tac_status run_model(net *n)
{
    tac_tape *t = n->w.tape;
    const size_t size[4] = {n->rows, SIDE, SIDE, 1};
    tac_tensor *io[TAC_BLOCK_MAX], *labels, *branch;

    TAC_TRY(tac_tape_input(t, "images", tac_tape_dtype(t), 4, size, n->images,
                           n->input_grad, &n->x));
    TAC_TRY(
        tac_tape_input(t, "labels", TAC_I32, 1, size, n->labels, 0, &labels));
    io[0] = n->x;
    TAC_TRY(tac_tape_block(t, conv_block, n, 1, io, 1, io));
    TAC_TRY(tac_tape_block(t, fc_block, n, 1, io, 2, io));
    for (int i = 0; i < n->depth; ++i)
        TAC_TRY(tac_tape_block(t, tied_block, n, 2, io, 2, io));
    TAC_TRY(tac_op_linear(t, io[0], tac_tape_param(t, DEAD), NULL, TAC_ACT_NONE,
                          &branch));
    TAC_TRY(tac_op_reshape(t, io[1], 2, (size_t[2]){n->rows, HIDDEN}, &io[1]));
    TAC_TRY(tac_op_add(t, io[0], io[1], &io[0]));
    io[1] = labels;
    TAC_TRY(tac_tape_block(t, loss_block, n, 2, io, 3, io));
    n->out = (tac_xent){io[0], io[1], io[2]};
    return TAC_OK;
}

/* --- worlds --- */

static void load_images(net *n)
{
    const tac_dtype t = tac_params_dtype(n->w.params);

    for (size_t i = 0; i < n->rows; ++i) {
        const uint64_t sample = n->first + i * n->stride;
        for (size_t e = 0; e < SIDE * SIDE; ++e)
            eng_set(t, n->images, i * SIDE * SIDE + e, eng_value(3, sample, e));
        n->labels[i] = sample % 5 == 4 ? -1 : (int32_t)(sample * 7 % CLASSES);
    }
}

static tac_tape_step step_of(const net *n, unsigned flags)
{
    return (tac_tape_step){flags, 9, n->first, n->stride};
}

static int step(net *n, unsigned flags)
{
    const tac_tape_step s = step_of(n, flags);

    load_images(n);
    if (!CHECK_OK(tac_tape_begin(n->w.tape, &s))) return 0;
    if (!CHECK_OK(run_model(n))) return 0;
    if (flags & TAC_TAPE_EVAL) return 1;
    return CHECK_OK(tac_tape_backward(n->w.tape, n->out.loss, 0.25));
}

static net *net_open_in(eng_world w, int recompute, float dropout, int depth)
{
    net *n = calloc(1, sizeof *n);
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;

    n->w = w;
    n->rows = MAX_BATCH;
    n->stride = 1;
    n->dropout = dropout;
    n->depth = depth;
    n->activations = eng_allocator(&n->counter);
    for (size_t i = 0; i < N_PARAMS; ++i)
        CHECK_OK(tac_params_add(n->w.params, table[i].name, table[i].ndim,
                                table[i].shape, (tac_init){TAC_INIT_FAN_IN, 12},
                                0, NULL));
    config.activations = &n->activations;
    config.recompute = recompute;
    config.seed = 31;
    CHECK_OK(tac_tape_create(n->w.params, &config, &n->w.tape));
    return n;
}

/* With a layout in the order of a dry backward, as a trainer does it. */
static net *net_open(const char *isa, tac_dtype dtype, int recompute,
                     float dropout, int depth)
{
    net *n = net_open_in(eng_open(isa, dtype, 2), recompute, dropout, depth);
    size_t order[N_PARAMS];

    step(n, TAC_TAPE_DRY);
    CHECK_OK(tac_tape_final_order(n->w.tape, order));
    CHECK_OK(tac_params_layout(n->w.params, order, NULL, NULL));
    CHECK_OK(tac_params_init(n->w.params, 17));
    memset(tac_params_grads(n->w.params), 0xff,
           tac_params_padded(n->w.params) * tac_dtype_size(dtype));
    return n;
}

static void net_close(net *n)
{
    eng_close(&n->w);
    CHECK_EQ((long long)n->counter.allocs, (long long)n->counter.frees);
    free(n);
}

static double loss_of(const net *n)
{
    return *(double *)n->out.loss->data;
}

static int same_gradients(const net *a, const net *b)
{
    const size_t size = tac_dtype_size(tac_params_dtype(a->w.params));
    int same = 1;

    for (size_t i = 0; i < N_PARAMS; ++i) {
        const size_t bytes = tac_params_get(a->w.params, i)->count * size;
        same &= CHECK_MSG(memcmp(tac_params_grad(a->w.params, i),
                                 tac_params_grad(b->w.params, i), bytes) == 0,
                          "gradient of %s differs", table[i].name);
    }
    return same;
}

/* |a - b| / |b| over all gradients. */
static double difference(const net *a, const net *b)
{
    const tac_dtype t = tac_params_dtype(a->w.params);
    double diff = 0, norm = 0;

    for (size_t i = 0; i < N_PARAMS; ++i) {
        for (size_t e = 0; e < tac_params_get(a->w.params, i)->count; ++e) {
            const double x = eng_get(t, tac_params_grad(a->w.params, i), e);
            const double y = eng_get(t, tac_params_grad(b->w.params, i), e);
            diff += (x - y) * (x - y);
            norm += y * y;
        }
    }
    return sqrt(diff / norm);
}

/* --- blocks --- */

static void recompute_gives_the_same_bits(const char *isa, tac_dtype dtype)
{
    const size_t bytes = MAX_BATCH * SIDE * SIDE * tac_dtype_size(dtype);

    for (int grad = 0; grad < 2; ++grad) {
        net *a = net_open(isa, dtype, 0, 0.3F, 3);
        net *b = net_open(isa, dtype, 1, 0.3F, 3);
        a->input_grad = b->input_grad = grad;
        for (int k = 0; k < 2; ++k) {
            step(a, 0);
            step(b, 0);
            CHECK_EQ_F64(loss_of(a), loss_of(b));
            CHECK(loss_of(a) > 1);
            same_gradients(a, b);
        }
        if (grad)
            CHECK_EQ_MEM(tac_tensor_grad(a->x), tac_tensor_grad(b->x), bytes);
        else
            CHECK(tac_tensor_grad(a->x) == NULL);
        net_close(a);
        net_close(b);
    }
}

static void recompute_saves_memory(void)
{
    size_t used[2][2];

    for (int recompute = 0; recompute < 2; ++recompute) {
        for (int k = 0; k < 2; ++k) {
            net *n = net_open("ref", TAC_F32, recompute, 0.3F, k ? 30 : 10);
            step(n, 0);
            used[recompute][k] = tac_tape_high_water(n->w.tape);
            net_close(n);
        }
    }
    const size_t layer = MAX_BATCH * HIDDEN * sizeof(float);
    const size_t plain = used[0][1] - used[0][0];
    const size_t again = used[1][1] - used[1][0];
    CHECK_MSG(again <= 20 * layer * 11 / 10,
              "20 more blocks keep %zu bytes, one activation each is %zu",
              again, 20 * layer);
    CHECK_MSG(plain >= 4 * again, "without: %zu", plain);
}

static void blocks_that_differ_are_found(void)
{
    net *n = net_open("ref", TAC_F32, 1, 0, 1);
    const tac_tape_step s = step_of(n, 0);

    CHECK_OK(tac_tape_begin(n->w.tape, &s));
    n->misbehave = 0;
    CHECK_OK(run_model(n));
    n->misbehave = 1001;
    CHECK_STATUS(tac_tape_backward(n->w.tape, n->out.loss, 1), TAC_ERR_STATE);
    n->misbehave = 0;
    CHECK(step(n, 0)); /* and the next step works */
    net_close(n);
}

/* --- hooks --- */

typedef struct events {
    net *n;
    size_t param[MAX_PARAMS], count, unused;
    void *copy[MAX_PARAMS];
    long fail_at;
} events;

static tac_status note(events *e, size_t param)
{
    const tac_params *p = e->n->w.params;
    const size_t bytes =
        tac_params_get(p, param)->count * tac_dtype_size(tac_params_dtype(p));

    if (e->fail_at == (long)e->count) return TAC_ERR_PEER;
    e->copy[e->count] = malloc(bytes);
    memcpy(e->copy[e->count], tac_params_grad(p, param), bytes);
    e->param[e->count++] = param;
    return TAC_OK;
}

static tac_status on_ready(void *arg, size_t param, tac_queue *queue)
{
    (void)queue;
    return note(arg, param);
}

static tac_status on_unused(void *arg, size_t param, tac_queue *queue)
{
    events *e = arg;

    (void)queue;
    e->unused += 1;
    return note(e, param);
}

static void events_free(events *e)
{
    for (size_t i = 0; i < e->count; ++i) free(e->copy[i]);
    e->count = 0;
}

static void ready_order(int recompute)
{
    net *n = net_open("ref", TAC_F32, recompute, 0.3F, 2);
    events e = {.n = n, .fail_at = -1};
    const tac_grad_hooks hooks = {&e, on_ready, on_unused};
    static const size_t want[N_PARAMS] = {OUT_W, OUT_B,  TIED_B, TIED_W, FC_W,
                                          FC_B,  CONV_W, CONV_B, DEAD,   IDLE};
    const size_t *order = tac_params_order(n->w.params);
    size_t unused[N_PARAMS], at = 0;

    tac_tape_set_hooks(n->w.tape, &hooks);
    step(n, 0);
    CHECK_EQ((long long)e.count, N_PARAMS);
    CHECK_EQ((long long)e.unused, 2);
    for (size_t i = 0; i < e.count; ++i) {
        const tac_param *q = tac_params_get(n->w.params, e.param[i]);
        CHECK_EQ((long long)e.param[i], (long long)order[i]);
        CHECK(q->offset >= at);
        at = q->offset + q->count;
        CHECK_EQ_MEM(e.copy[i], tac_params_grad(n->w.params, e.param[i]),
                     q->count * sizeof(float));
        if (i < 2 || i > 3) CHECK_EQ((long long)e.param[i], (long long)want[i]);
    }
    CHECK_EQ((long long)tac_tape_unused(n->w.tape, unused), 2);
    CHECK_EQ((long long)unused[0], DEAD);
    CHECK_EQ((long long)unused[1], IDLE);
    for (size_t k = 0; k < 7; ++k)
        CHECK_EQ_F64(((float *)tac_params_grad(n->w.params, IDLE))[k], 0);
    events_free(&e);
    net_close(n);
}

static void hooks_can_stop_backward(void)
{
    net *n = net_open("ref", TAC_F32, 1, 0, 2);
    events e = {.n = n, .fail_at = 3};
    const tac_grad_hooks hooks = {&e, on_ready, NULL};
    const tac_tape_step s = step_of(n, 0);

    tac_tape_set_hooks(n->w.tape, &hooks);
    load_images(n);
    CHECK_OK(tac_tape_begin(n->w.tape, &s));
    CHECK_OK(run_model(n));
    CHECK_STATUS(tac_tape_backward(n->w.tape, n->out.loss, 1), TAC_ERR_PEER);
    CHECK_EQ((long long)e.count, 3);
    CHECK_STATUS(tac_tape_backward(n->w.tape, n->out.loss, 1), TAC_ERR_STATE);
    events_free(&e);
    e.fail_at = -1;
    CHECK(step(n, 0));
    CHECK_EQ((long long)e.count, N_PARAMS); /* unused ones come as ready */
    events_free(&e);
    tac_tape_set_hooks(n->w.tape, NULL);
    CHECK(step(n, 0));
    CHECK_EQ((long long)e.count, 0);
    net_close(n);
}

/* --- accumulation and other cuts of the batch --- */

/* MAX_BATCH samples in `parts` micro-batches, neighbours or dealt out. */
static void accumulate(net *n, size_t parts, int dealt)
{
    n->rows = MAX_BATCH / parts;
    n->stride = dealt ? parts : 1;
    for (size_t i = 0; i < parts; ++i) {
        n->first = dealt ? i : i * n->rows;
        step(n, i == 0 ? 0 : TAC_TAPE_ACCUMULATE);
    }
}

static void accumulation_equals_the_big_batch(void)
{
    net *big = net_open("ref", TAC_F64, 0, 0.3F, 2);
    net *small = net_open("ref", TAC_F64, 1, 0.3F, 2);
    static const size_t parts[4] = {2, 3, 4, 12};

    step(big, 0);
    for (int i = 0; i < 8; ++i) {
        accumulate(small, parts[i % 4], i / 4);
        CHECK_MSG(difference(small, big) < 1e-13, "%zu parts, %s: %g",
                  parts[i % 4], i / 4 ? "dealt" : "neighbours",
                  difference(small, big));
    }
    small->first = 1; /* other samples, other masks: it must notice */
    small->rows = MAX_BATCH;
    small->stride = 1;
    step(small, 0);
    CHECK(difference(small, big) > 1e-3);
    net_close(big);
    net_close(small);
}

/* --- memory --- */

static void a_dry_step_knows_the_memory(int recompute)
{
    net *n = net_open(NULL, TAC_F32, recompute, 0.3F, 4);
    const size_t dry = tac_tape_high_water(n->w.tape);

    CHECK_EQ((long long)n->counter.allocs, 0);
    step(n, 0);
    CHECK_EQ((long long)n->counter.allocs, 1);
    CHECK_EQ((long long)tac_tape_high_water(n->w.tape), (long long)dry);
    CHECK_EQ((long long)n->counter.bytes, (long long)dry);
    net_close(n);
}

static void nothing_is_allocated_after_the_first_step(int recompute)
{
    net *n = net_open(NULL, TAC_F32, recompute, 0.3F, 4);

    step(n, 0);
    step(n, TAC_TAPE_ACCUMULATE); /* kernels that add are others */
    step(n, TAC_TAPE_EVAL);
    const size_t allocs = n->counter.allocs;
    const size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 5; ++i) {
        step(n, 0);
        step(n, TAC_TAPE_ACCUMULATE);
        step(n, TAC_TAPE_EVAL);
    }
    CHECK_EQ((long long)n->counter.allocs, (long long)allocs);
    CHECK_EQ((long long)mallinfo2().uordblks, (long long)heap);
    net_close(n);
}

static void a_larger_step_grows_once(void)
{
    net *n = net_open_in(eng_open(NULL, TAC_F32, 1), 0, 0.3F, 2);

    CHECK_OK(tac_params_layout(n->w.params, NULL, NULL, NULL));
    n->rows = 2;
    step(n, 0);
    n->rows = MAX_BATCH;
    step(n, 0); /* overflows in the middle of the step */
    step(n, 0);
    const size_t allocs = n->counter.allocs;
    n->rows = 3;
    step(n, 0);
    n->rows = MAX_BATCH;
    step(n, 0);
    CHECK_EQ((long long)n->counter.allocs, (long long)allocs);
    CHECK_EQ((long long)n->counter.frees, (long long)allocs - 1);
    net_close(n);
}

/* --- modes --- */

static void evaluation_records_nothing(int recompute)
{
    net *n = net_open("ref", TAC_F32, recompute, 0.3F, 2);
    net *plain = net_open("ref", TAC_F32, 0, 0, 2);
    const size_t bytes = tac_params_padded(n->w.params) * sizeof(float);
    void *before = malloc(bytes);

    step(n, 0);
    memcpy(before, tac_params_grads(n->w.params), bytes);
    n->input_grad = 1;
    step(n, TAC_TAPE_EVAL);
    step(plain, 0);
    CHECK_EQ_F64(loss_of(n), loss_of(plain)); /* no dropout */
    CHECK_EQ(n->out.loss->requires_grad, 0);
    CHECK(n->out.loss->node == NULL);
    CHECK_STATUS(tac_tape_backward(n->w.tape, n->out.loss, 1), TAC_ERR_STATE);
    CHECK_EQ_MEM(before, tac_params_grads(n->w.params), bytes);
    free(before);
    net_close(n);
    net_close(plain);
}

static void spans_are_traced(void)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_span spans[512];
    eng_world w = {NULL, NULL, NULL, NULL};
    size_t forward = 0, backward = 0;

    config.trace_events = 512;
    config.log = eng_no_log;
    CHECK_OK(tac_context_create(&config, &w.ctx));
    CHECK_OK(tac_device_open(w.ctx, "cpu", NULL, &w.dev));
    CHECK_OK(tac_params_create(w.dev, TAC_F32, &w.params));
    net *n = net_open_in(w, 0, 0.3F, 1);
    step(n, TAC_TAPE_DRY);
    CHECK_EQ((long long)tac_trace_read(w.ctx, spans, 512), 0);
    CHECK_OK(tac_params_layout(n->w.params, NULL, NULL, NULL));
    step(n, 0);
    const size_t count = tac_trace_read(w.ctx, spans, 512);
    for (size_t i = 0; i < count; ++i) {
        CHECK_EQ((int)spans[i].lane, TAC_LANE_COMPUTE);
        CHECK(spans[i].end_ns >= spans[i].begin_ns);
        forward += strcmp(spans[i].name, "conv2d") == 0;
        backward += strcmp(spans[i].name, "conv2d backward") == 0;
    }
    CHECK_EQ((long long)forward, 1);
    CHECK_EQ((long long)backward, 1);
    net_close(n);
}

/* --- two at once --- */

static void *train_alone(void *arg)
{
    net *n = arg;
    for (int i = 0; i < 20; ++i) step(n, 0);
    return NULL;
}

static void tapes_of_two_contexts_are_independent(void)
{
    net *alone = net_open(NULL, TAC_F32, 1, 0.3F, 3);
    net *n[2];
    pthread_t thread[2];

    step(alone, 0);
    for (int i = 0; i < 2; ++i) {
        n[i] = net_open(NULL, TAC_F32, i, 0.3F, 3);
        CHECK_EQ(pthread_create(&thread[i], NULL, train_alone, n[i]), 0);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(thread[i], NULL);
        same_gradients(n[i], alone);
        net_close(n[i]);
    }
    net_close(alone);
}

int main(void)
{
    recompute_gives_the_same_bits("ref", TAC_F64);
    recompute_gives_the_same_bits("ref", TAC_F32);
    recompute_gives_the_same_bits(NULL, TAC_F32);
    recompute_saves_memory();
    blocks_that_differ_are_found();
    ready_order(0);
    ready_order(1);
    hooks_can_stop_backward();
    accumulation_equals_the_big_batch();
    for (int recompute = 0; recompute < 2; ++recompute) {
        a_dry_step_knows_the_memory(recompute);
        nothing_is_allocated_after_the_first_step(recompute);
        evaluation_records_nothing(recompute);
    }
    a_larger_step_grows_once();
    spans_are_traced();
    tapes_of_two_contexts_are_independent();
    return tac_check_summary();
}
