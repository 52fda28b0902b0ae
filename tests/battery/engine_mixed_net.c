/* engine_mixed_net.c: whole steps in mixed precision. One network with blocks,
 * tied weights, dropout, normalisation and attention, in every type and every
 * way of getting 16-bit weights: the same bits whether weights are cast once,
 * each time or beforehand and whether blocks run again; gradients near those of
 * f64; parameters that are frozen or have 16 bits themselves; memory. */
#include <malloc.h>

#include "engine_mixed.h"

enum { PICTURE = 8, ROWS = 6, HIDDEN = 24, HEADS = 4, CLASSES = 5, DEPTH = 2 };

/* "pos" is added to activations, "idle" is used by nothing. */
enum {
    CONV_W,
    CONV_B,
    FC_W,
    FC_B,
    TIED_W,
    TIED_B,
    POS,
    IDLE,
    NORM_W,
    NORM_B,
    OUT_W,
    OUT_B,
    N_PARAMS
};

static const struct {
    const char *name;
    int ndim;
    size_t shape[4];
    tac_init init;
} table[N_PARAMS] = {
    {"conv.weight", 4, {4, 1, 3, 3}, {TAC_INIT_FAN_IN, 0}},
    {"conv.bias", 1, {4}, {TAC_INIT_FAN_IN, 9}},
    {"fc.weight", 2, {HIDDEN, PICTURE *PICTURE}, {TAC_INIT_FAN_IN, 0}},
    {"fc.bias", 1, {HIDDEN}, {TAC_INIT_FAN_IN, 64}},
    {"tied.weight", 2, {HIDDEN, HIDDEN}, {TAC_INIT_FAN_IN, 0}},
    {"tied.bias", 1, {HIDDEN}, {TAC_INIT_FAN_IN, 24}},
    {"pos", 2, {ROWS, HIDDEN}, {TAC_INIT_NORMAL, 0.3}},
    {"idle", 1, {7}, {TAC_INIT_ONES, 0}},
    {"norm.weight", 1, {HIDDEN}, {TAC_INIT_ONES, 0}},
    {"norm.bias", 1, {HIDDEN}, {TAC_INIT_NORMAL, 0.1}},
    {"out.weight", 2, {CLASSES, HIDDEN}, {TAC_INIT_FAN_IN, 0}},
    {"out.bias", 1, {CLASSES}, {TAC_INIT_FAN_IN, 24}},
};

/* How a world computes. low F32: no region. */
typedef enum weights_kind { CACHED, EACH_TIME, BEFOREHAND } weights_kind;

typedef struct mode {
    tac_dtype params, low;
    weights_kind kind;
    tac_cast_rule (*rule)(const char *);
    int recompute;
    float dropout;
    unsigned frozen; /* bit i: parameter i */
} mode;

typedef struct net {
    mode m;
    eng_world w;
    eng_counter counter;
    tac_allocator activations;
    void *weights;
    double images[ROWS * PICTURE * PICTURE]; /* or smaller elements */
    int32_t labels[ROWS];
    tac_tensor *x;
    tac_xent out;
} net;

/* --- the model: no kinks, so that rounding has no large effect --- */

static tac_status conv_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    tac_tensor *y;

    (void)arg;
    TAC_TRY(tac_op_conv2d(t, in[0], tac_tape_param(t, CONV_W),
                          tac_tape_param(t, CONV_B), 2, 1, TAC_ACT_NONE, &y));
    TAC_TRY(tac_op_flatten(t, y, &y));
    return tac_op_linear(t, y, tac_tape_param(t, FC_W), tac_tape_param(t, FC_B),
                         TAC_ACT_NONE, &out[0]);
}

static tac_status tied_block(tac_tape *t, void *arg, tac_tensor *const *in,
                             tac_tensor **out)
{
    const net *n = arg;
    tac_tensor *h, *p;

    TAC_TRY(tac_op_linear(t, in[0], tac_tape_param(t, TIED_W),
                          tac_tape_param(t, TIED_B), TAC_ACT_NONE, &h));
    TAC_TRY(tac_op_dropout(t, h, n->m.dropout, &h));
    TAC_TRY(
        tac_op_linear(t, h, tac_tape_param(t, TIED_W), NULL, TAC_ACT_NONE, &h));
    TAC_TRY(tac_op_scale(t, h, 0.5, &h));
    TAC_TRY(tac_op_scale(t, tac_tape_param(t, POS), 0.5, &p));
    TAC_TRY(tac_op_add(t, h, p, &h));
    return tac_op_add(t, in[0], h, &out[0]);
}

static tac_status attend_block(tac_tape *t, void *arg, tac_tensor *const *in,
                               tac_tensor **out)
{
    const net *n = arg;
    const size_t heads[3] = {ROWS, HEADS, HIDDEN / HEADS};
    tac_tensor *y, *a;

    TAC_TRY(tac_op_layer_norm(t, in[0], tac_tape_param(t, NORM_W),
                              tac_tape_param(t, NORM_B), 1e-5, &y));
    TAC_TRY(tac_op_reshape(t, y, 3, heads, &y));
    TAC_TRY(tac_op_attention(t, y, y, y, 0.4, 1, &a));
    TAC_TRY(tac_op_flatten(t, a, &a));
    return tac_op_dropout(t, a, n->m.dropout, &out[0]);
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

static tac_status forward(net *n)
{
    tac_tape *t = n->w.tape;
    const size_t size[4] = {ROWS, PICTURE, PICTURE, 1};
    tac_tensor *io[TAC_BLOCK_MAX];

    TAC_TRY(
        tac_tape_input(t, "images", n->m.params, 4, size, n->images, 1, &n->x));
    io[0] = n->x;
    TAC_TRY(tac_tape_block(t, conv_block, n, 1, io, 1, io));
    for (int i = 0; i < DEPTH; ++i)
        TAC_TRY(tac_tape_block(t, tied_block, n, 1, io, 1, io));
    TAC_TRY(tac_tape_block(t, attend_block, n, 1, io, 1, io));
    TAC_TRY(
        tac_tape_input(t, "labels", TAC_I32, 1, size, n->labels, 0, &io[1]));
    TAC_TRY(tac_tape_block(t, loss_block, n, 2, io, 3, io));
    n->out = (tac_xent){io[0], io[1], io[2]};
    return TAC_OK;
}

/* --- worlds --- */

/* The region ends before backward, as it does in a trainer. */
static int step(net *n, unsigned flags)
{
    const tac_tape_step s = {flags, 9, 12, 1};
    tac_tape *t = n->w.tape;

    if (!CHECK_OK(tac_tape_begin(t, &s))) return 0;
    if (n->m.low != TAC_F32 &&
        !CHECK_OK(
            mix_begin(t, n->m.low, n->m.rule, n->m.kind == CACHED, n->weights)))
        return 0;
    if (!CHECK_OK(forward(n))) return 0;
    CHECK_OK(tac_tape_set_autocast(t, NULL));
    if (flags & TAC_TAPE_EVAL) return 1;
    return CHECK_OK(tac_tape_backward(t, n->out.loss, 0.5));
}

static void add_params(net *n)
{
    for (size_t i = 0; i < N_PARAMS; ++i)
        CHECK_OK(tac_params_add(
            n->w.params, table[i].name, table[i].ndim, table[i].shape,
            table[i].init, n->m.frozen >> i & 1 ? TAC_PARAM_FROZEN : 0, NULL));
}

static size_t grad_bytes(const net *n)
{
    return tac_params_padded(n->w.params) *
           tac_dtype_size(tac_params_grad_dtype(n->w.params));
}

static void poison(net *n)
{
    memset(tac_params_grads(n->w.params), 0xff, grad_bytes(n));
}

/* With a layout in the order of a dry backward, as a trainer does it. */
static net *net_open(const char *isa, mode m)
{
    net *n = calloc(1, sizeof *n);
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;
    size_t order[N_PARAMS];

    n->m = m;
    n->w = eng_open(isa, m.params, 2);
    n->activations = eng_allocator(&n->counter);
    config.activations = &n->activations;
    config.recompute = m.recompute;
    config.seed = 31;
    add_params(n);
    CHECK_OK(tac_tape_create(n->w.params, &config, &n->w.tape));
    eng_fill(m.params, n->images, ROWS * PICTURE * PICTURE, 3, 0);
    for (int i = 0; i < ROWS; ++i) n->labels[i] = i % 4 == 3 ? -1 : i % CLASSES;
    if (m.kind == BEFOREHAND) n->weights = n; /* not read in a dry step */
    step(n, TAC_TAPE_DRY);
    CHECK_OK(tac_tape_final_order(n->w.tape, order));
    CHECK_OK(tac_params_layout(n->w.params, order, NULL, NULL));
    CHECK_OK(tac_params_init(n->w.params, 17));
    if (m.kind == BEFOREHAND) n->weights = mix_weights(n->w.params, m.low);
    poison(n);
    return n;
}

static void net_close(net *n)
{
    free(n->weights);
    eng_close(&n->w);
    free(n);
}

static double loss_of(const net *n)
{
    return *(const double *)n->out.loss->data;
}

/* Gradients of all parameters, and of the images. */
static void same_bits(net *a, net *b, const char *what)
{
    CHECK_MSG(loss_of(a) == loss_of(b), "%s: loss %.9g and %.9g", what,
              loss_of(a), loss_of(b));
    for (size_t i = 0; i < N_PARAMS; ++i)
        CHECK_MSG(
            memcmp(tac_params_grad(a->w.params, i),
                   tac_params_grad(b->w.params, i),
                   tac_params_get(a->w.params, i)->count * sizeof(float)) == 0,
            "%s: gradient of %s differs", what, table[i].name);
    const size_t bytes = tac_tensor_bytes(a->x);
    if (a->m.params == b->m.params)
        CHECK_MSG(memcmp(tac_tensor_grad(a->x), tac_tensor_grad(b->x), bytes) ==
                      0,
                  "%s: gradient of the images differs", what);
}

/* --- the same bits --- */

static void ways_agree(const char *isa, tac_dtype low)
{
    char what[96];
    mode m = {TAC_F32, low, CACHED, mix_rule, 0, 0.1F, 0};
    net *first = net_open(isa, m);

    step(first, 0);
    for (int i = 1; i < (low == TAC_F32 ? 2 : 6); ++i) {
        m.recompute = i % 2;
        m.kind = (weights_kind)(i / 2);
        net *n = net_open(isa, m);
        snprintf(what, sizeof what, "%s, %s, kind %d, recompute %d",
                 isa ? isa : "best", tac_dtype_name(low), i / 2, i % 2);
        for (int round = 0; round < 2; ++round) {
            poison(n);
            step(n, 0);
            same_bits(n, first, what);
        }
        net_close(n);
    }
    net_close(first);
}

/* Casts that a step makes: blocks drop theirs, and make them again. */
static void casts_are_counted(tac_dtype low)
{
    /* Parameters in `low`: conv and fc, with biases; tied, with bias; out. */
    static const size_t want[3][2] = {{8, 20}, {12, 24}, {0, 0}};

    for (int kind = 0; kind < 3; ++kind)
        for (int recompute = 0; recompute < 2; ++recompute) {
            net *n = net_open(NULL, (mode){TAC_F32, low, (weights_kind)kind,
                                           mix_rule, recompute, 0.1F, 0});
            step(n, 0);
            CHECK_EQ((long long)tac_tape_param_casts(n->w.tape),
                     (long long)want[kind][recompute]);
            net_close(n);
        }
}

/* --- near f64 --- */

/* Roundings on the longest way from the loss to the first layer and back: three
 * or four a product, two a sum or factor, in conv, fc, two of tied, attention
 * and out, forward and backward: about 40, of at most one unit each, evenly
 * spread and of independent signs: together a deviation of sqrt(40 / 3) units.
 * Twice that is allowed. */
enum { UNITS = 8 };

/* The largest error of any gradient, in rounding units of `low`, relative to
 * the largest gradient of its tensor. */
static double distance(net *n, net *ref)
{
    const tac_dtype tg = tac_params_grad_dtype(n->w.params);
    double worst = 0;

    for (size_t k = 0; k < N_PARAMS; ++k) {
        const double *want = tac_params_grad(ref->w.params, k);
        const void *got = tac_params_grad(n->w.params, k);
        const size_t count = tac_params_get(n->w.params, k)->count;
        double most = 1e-30, error = 0;
        for (size_t i = 0; i < count; ++i) most = fmax(most, fabs(want[i]));
        for (size_t i = 0; i < count; ++i) {
            const double d = fabs(eng_get(tg, got, i) - want[i]);
            error = d <= error ? error : d; /* a NaN is taken */
        }
        if (!(error / most <= worst)) worst = error / most;
    }
    return worst;
}

static void near_f64(const char *isa, tac_dtype params, tac_dtype low)
{
    const tac_dtype rounds = low != TAC_F32 ? low : params;
    net *ref = net_open(
        "ref", (mode){.params = TAC_F64, .low = TAC_F32, .rule = NULL});
    net *n = net_open(isa, (mode){params, low, CACHED, mix_rule, 0, 0, 0});

    step(ref, 0);
    step(n, 0);
    const double d = distance(n, ref) / mix_unit(rounds);
    CHECK_MSG(d <= UNITS, "%s parameters in %s: off by %.1f units, %d allowed",
              tac_dtype_name(params), tac_dtype_name(low), d, UNITS);
    /* Really in 16 bits: f32 would be nearer by orders of magnitude. */
    CHECK_MSG(d >= 0.5, "%s parameters in %s: off by %.4f units only",
              tac_dtype_name(params), tac_dtype_name(low), d);
    net_close(ref);
    net_close(n);
}

/* --- parameters of 16 bits --- */

/* The same numbers, f32 in a region that casts everything, and 16-bit without
 * one: the same kernels run. Gradients are f32 in both. */
static void params_of_16_bits(tac_dtype low)
{
    net *a =
        net_open(NULL, (mode){TAC_F32, low, CACHED, mix_all_low, 0, 0.1F, 0});
    net *b = net_open(NULL, (mode){low, TAC_F32, CACHED, NULL, 1, 0.1F, 0});

    CHECK_EQ((int)tac_params_grad_dtype(b->w.params), TAC_F32);
    step(a, 0);
    step(b, 0);
    CHECK_EQ((int)b->out.rows->dtype, TAC_F32);
    CHECK_EQ((int)b->x->dtype, (int)low);
    same_bits(a, b, "16-bit parameters");
    net_close(a);
    net_close(b);
}

/* --- frozen parameters --- */

static tac_status count_unused(void *arg, size_t param, tac_queue *queue)
{
    (void)queue;
    *(unsigned *)arg |= 1U << param;
    return TAC_OK;
}

static void frozen(tac_dtype low, int recompute)
{
    const unsigned mask = 1U << CONV_W | 1U << FC_B | 1U << TIED_W | 1U << POS;
    const mode m = {TAC_F32, low, CACHED, mix_rule, recompute, 0.1F, 0};
    mode f = m;
    unsigned unused = 0;
    const tac_grad_hooks hooks = {&unused, NULL, count_unused};
    size_t order[N_PARAMS];

    f.frozen = mask;
    net *free_net = net_open(NULL, m), *n = net_open(NULL, f);
    tac_tape_set_hooks(n->w.tape, &hooks);
    step(free_net, 0);
    step(n, 0);
    CHECK_EQ_F64(loss_of(n), loss_of(free_net));
    CHECK_EQ((int)unused, (int)(mask | 1U << IDLE));
    CHECK_EQ((long long)tac_tape_unused(n->w.tape, NULL), 5);
    CHECK_OK(tac_tape_final_order(n->w.tape, order));
    for (size_t i = 0; i < 5; ++i)
        CHECK((mask | 1U << IDLE) >> order[N_PARAMS - 5 + i] & 1);
    for (size_t i = 0; i < N_PARAMS; ++i) {
        const size_t count = tac_params_get(n->w.params, i)->count;
        const float *g = tac_params_grad(n->w.params, i);
        for (size_t k = 0; k < count && mask >> i & 1; ++k)
            CHECK_EQ_F64((double)g[k], 0);
        const float *want = tac_params_grad(free_net->w.params, i);
        if (i == TIED_B) /* added without its weight: in another order */
            for (size_t k = 0; k < count; ++k)
                CHECK_NEAR((double)g[k], (double)want[k], 1e-6);
        else if (!(mask >> i & 1))
            CHECK_EQ_MEM(g, want, count * sizeof *g);
    }
    net_close(free_net);
    net_close(n);
}

/* Nothing to be trained: backward has nothing to do, and says so. */
static void all_frozen(void)
{
    net *n = net_open(NULL, (mode){TAC_F32, TAC_F16, CACHED, mix_rule, 0, 0,
                                   (1U << N_PARAMS) - 1});
    step(n, 0);
    CHECK_EQ((long long)tac_tape_unused(n->w.tape, NULL), N_PARAMS);
    for (size_t i = 0; i < 7; ++i)
        CHECK_EQ_F64((double)((float *)tac_params_grad(n->w.params, IDLE))[i],
                     0);
    net_close(n);
}

/* --- when gradients are final --- */

typedef struct seen {
    net *n;
    size_t count, param[N_PARAMS];
    float sum[N_PARAMS]; /* of the gradient, when it was said to be final */
} seen;

static float sum_of(const net *n, size_t param)
{
    const float *g = tac_params_grad(n->w.params, param);
    float sum = 0;

    for (size_t i = 0; i < tac_params_get(n->w.params, param)->count; ++i)
        sum += g[i];
    return sum;
}

static tac_status on_ready(void *arg, size_t param, tac_queue *queue)
{
    seen *s = arg;

    (void)queue;
    s->sum[s->count] = sum_of(s->n, param);
    s->param[s->count++] = param;
    return TAC_OK;
}

/* In the order of the layout, which a dry step told; nothing comes after. */
static void ready_order(tac_dtype low, int recompute)
{
    net *n = net_open(
        NULL, (mode){TAC_F32, low, CACHED, mix_rule, recompute, 0.1F, 0});
    seen s = {.n = n};
    const tac_grad_hooks hooks = {&s, on_ready, NULL};

    tac_tape_set_hooks(n->w.tape, &hooks);
    step(n, 0);
    CHECK_EQ((long long)s.count, N_PARAMS);
    for (size_t i = 0; i < s.count; ++i) {
        CHECK_EQ((long long)s.param[i],
                 (long long)tac_params_order(n->w.params)[i]);
        CHECK_EQ_F64((double)s.sum[i], (double)sum_of(n, s.param[i]));
    }
    net_close(n);
}

/* --- micro-steps --- */

/* Three times the same step is three times the gradient. */
static void micro_steps_add(tac_dtype low)
{
    net *one =
        net_open(NULL, (mode){TAC_F32, low, CACHED, mix_rule, 0, 0.1F, 0});
    net *n =
        net_open(NULL, (mode){TAC_F32, low, EACH_TIME, mix_rule, 1, 0.1F, 0});

    step(one, 0);
    for (int i = 0; i < 3; ++i) step(n, i == 0 ? 0 : TAC_TAPE_ACCUMULATE);
    for (size_t k = 0; k < N_PARAMS; ++k) {
        const float *a = tac_params_grad(one->w.params, k);
        const float *b = tac_params_grad(n->w.params, k);
        double most = 0;
        const size_t count = tac_params_get(n->w.params, k)->count;
        for (size_t i = 0; i < count; ++i)
            most = fmax(most, fabs((double)a[i]));
        for (size_t i = 0; i < count; ++i)
            CHECK_NEAR((double)b[i], 3.0 * (double)a[i], 1e-5 * most);
    }
    net_close(one);
    net_close(n);
}

/* --- memory and modes --- */

static void memory(mode m)
{
    net *n = net_open(NULL, m);
    const size_t dry = tac_tape_high_water(n->w.tape);

    CHECK_EQ((long long)n->counter.allocs, 0);
    step(n, 0);
    CHECK_EQ((long long)n->counter.allocs, 1);
    CHECK_EQ((long long)tac_tape_high_water(n->w.tape), (long long)dry);
    CHECK_EQ((long long)n->counter.bytes, (long long)dry);
    step(n, TAC_TAPE_ACCUMULATE); /* kernels that add are others */
    step(n, TAC_TAPE_EVAL);
    const size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 4; ++i) {
        step(n, 0);
        step(n, TAC_TAPE_ACCUMULATE);
        step(n, TAC_TAPE_EVAL);
    }
    CHECK_EQ((long long)n->counter.allocs, 1);
    CHECK_EQ((long long)mallinfo2().uordblks, (long long)heap);
    net_close(n);
}

/* Half the activations, apart from what stays f32: probabilities, statistics,
 * layer norm's output. */
static void activations_take_half(void)
{
    net *wide =
        net_open(NULL, (mode){TAC_F32, TAC_F32, CACHED, NULL, 0, 0.1F, 0});
    net *low =
        net_open(NULL, (mode){TAC_F16, TAC_F32, CACHED, NULL, 0, 0.1F, 0});
    const size_t a = tac_tape_high_water(wide->w.tape);
    const size_t b = tac_tape_high_water(low->w.tape);

    CHECK_MSG(b < a * 3 / 4, "%zu bytes in f32, %zu in f16", a, b);
    net_close(wide);
    net_close(low);
}

static void evaluation(tac_dtype low, weights_kind kind)
{
    net *n = net_open(NULL, (mode){TAC_F32, low, kind, mix_rule, 1, 0.1F, 0});
    net *plain =
        net_open(NULL, (mode){TAC_F32, low, CACHED, mix_rule, 0, 0, 0});
    void *before = malloc(grad_bytes(n));

    step(n, 0);
    memcpy(before, tac_params_grads(n->w.params), grad_bytes(n));
    step(n, TAC_TAPE_EVAL);
    step(plain, 0);
    CHECK_EQ_F64(loss_of(n), loss_of(plain)); /* no dropout */
    CHECK(n->out.loss->node == NULL);
    CHECK_EQ_MEM(before, tac_params_grads(n->w.params), grad_bytes(n));
    free(before);
    net_close(n);
    net_close(plain);
}

int main(void)
{
    static const char *const isas[2] = {"ref", NULL};

    for (int i = 0; i < 2; ++i) {
        ways_agree(isas[i], TAC_F32);
        for (int k = 0; k < 2; ++k) {
            ways_agree(isas[i], mix_lows[k]);
            near_f64(isas[i], TAC_F32, mix_lows[k]);
            near_f64(isas[i], mix_lows[k], mix_lows[k]);
            near_f64(isas[i], mix_lows[k], TAC_F32);
        }
    }
    for (int k = 0; k < 2; ++k) {
        casts_are_counted(mix_lows[k]);
        params_of_16_bits(mix_lows[k]);
        ready_order(mix_lows[k], 0);
        ready_order(mix_lows[k], 1);
        micro_steps_add(mix_lows[k]);
        for (int i = 0; i < 6; ++i) {
            const mode m = {TAC_F32,  mix_lows[k], (weights_kind)(i / 2),
                            mix_rule, i % 2,       0.1F,
                            0};
            memory(m);
            if (i % 2 == 0) evaluation(mix_lows[k], (weights_kind)(i / 2));
        }
        memory((mode){mix_lows[k], TAC_F32, CACHED, NULL, k, 0.1F, 0});
        frozen(mix_lows[k], k);
    }
    frozen(TAC_F32, 1);
    all_frozen();
    activations_take_half();
    return tac_check_summary();
}
