/* engine_blocks.c: random programs, with random parts of them as blocks.
 *
 * A program is a list of operations on values of shape (n,4,4,c), each on
 * earlier values; blocks are ranges of it, in one another as they like. Run
 * again in backward or not, loss and gradients must have the same bits, and a
 * dry step must know the memory. In f32, and in regions of autocast, in which
 * single operations have regions of their own; there 16-bit weights may be
 * kept, cast each time or made beforehand, with the same bits. */
#include "engine_mixed.h"
#include "tape_impl.h"

enum {
    MAX_OPS = 32,
    MAX_VALUES = MAX_OPS + 1,
    MAX_BLOCKS = 10,
    CHANNELS = 3, /* kinds of widths */
    BATCH = 3,
    PIXELS = 16,
    PROGRAMS = 800
};

static const size_t widths[CHANNELS] = {2, 3, 9};

typedef enum kind { LINEAR, CONV, POOL, RELU, DROPOUT, ADD, SCALE, KINDS } kind;

/* Operation i makes value i + 1; value 0 is the input. */
typedef struct op {
    kind kind;
    size_t a, b;  /* values */
    int from, to; /* kinds of widths */
    tac_act act;
    int region; /* of its own, in mixed precision */
} op;

typedef struct program program;

typedef struct block {
    const program *p;
    size_t begin, end; /* operations */
    size_t in[TAC_BLOCK_MAX], out[TAC_BLOCK_MAX], n_in, n_out;
} block;

struct program {
    op ops[MAX_OPS];
    size_t n;
    int width[MAX_VALUES];
    block blocks[MAX_BLOCKS];
    size_t n_blocks;
};

/* --- making programs --- */

typedef struct dice {
    uint64_t seed, i;
} dice;

static size_t roll(dice *d, size_t n)
{
    const tac_rng_key key = {d->seed, TAC_STREAM_USER, 1};
    return (size_t)tac_rng_below(&key, d->i++, n);
}

/* Recent values are likelier, so that there are chains and some branches. */
static size_t pick(dice *d, size_t n)
{
    const size_t back = roll(d, 3) == 0 ? roll(d, n) : roll(d, n < 3 ? n : 3);
    return n - 1 - back;
}

static size_t pick_partner(dice *d, const program *p, size_t n, size_t a)
{
    for (int tries = 0; tries < 20; ++tries) {
        const size_t b = pick(d, n);
        if (p->width[b] == p->width[a]) return b;
    }
    return a;
}

static void make_ops(program *p, dice *d)
{
    p->n = 6 + roll(d, MAX_OPS - 6);
    p->width[0] = 0;
    for (size_t i = 0; i < p->n; ++i) {
        op *o = &p->ops[i];
        const size_t k = roll(d, KINDS + 3); /* more pooling */
        o->kind = k < KINDS ? (kind)k : POOL;
        o->a = pick(d, i + 1);
        o->b = pick_partner(d, p, i + 1, o->a);
        o->from = o->to = p->width[o->a];
        if (o->kind == LINEAR || o->kind == CONV) {
            o->to = (int)roll(d, CHANNELS);
            o->act = roll(d, 3) ? TAC_ACT_RELU : TAC_ACT_NONE;
        }
        p->width[i + 1] = o->to;
    }
}

static void add_unique(size_t *list, size_t *n, size_t v)
{
    for (size_t i = 0; i < *n; ++i)
        if (list[i] == v) return;
    if (*n < TAC_BLOCK_MAX) list[*n] = v;
    *n += 1;
}

static int uses(const op *o, size_t v)
{
    return o->a == v || (o->kind == ADD && o->b == v);
}

/* What goes into operations begin..end and what is used after them. */
static int set_ends(const program *p, block *b)
{
    b->n_in = b->n_out = 0;
    for (size_t v = 0; v <= b->begin; ++v)
        for (size_t i = b->begin; i < b->end; ++i)
            if (uses(&p->ops[i], v)) add_unique(b->in, &b->n_in, v);
    for (size_t v = b->begin + 1; v <= b->end; ++v) {
        if (v == p->n) add_unique(b->out, &b->n_out, v);
        for (size_t i = b->end; i < p->n; ++i)
            if (uses(&p->ops[i], v)) add_unique(b->out, &b->n_out, v);
    }
    return b->n_out > 0 && b->n_out <= TAC_BLOCK_MAX &&
           b->n_in <= TAC_BLOCK_MAX;
}

static void make_blocks(program *p, dice *d, size_t begin, size_t end,
                        int depth)
{
    while (begin + 1 < end && p->n_blocks < MAX_BLOCKS) {
        block b = {.p = p};
        b.begin = begin + roll(d, end - begin);
        b.end = b.begin + 1 + roll(d, end - b.begin);
        if (b.begin == begin && b.end == end && depth > 0) return;
        if (set_ends(p, &b)) {
            p->blocks[p->n_blocks++] = b;
            if (depth < 3) make_blocks(p, d, b.begin, b.end, depth + 1);
        }
        begin = b.end;
    }
}

/* --- running them --- */

static size_t param_of(const op *o, int bias)
{
    const size_t kind_at = o->kind == CONV ? 2 * CHANNELS * CHANNELS : 0;
    return kind_at + 2 * (size_t)(o->from * CHANNELS + o->to) + (size_t)bias;
}

static tac_status apply_op(tac_tape *t, const op *o, tac_tensor **v,
                           tac_tensor **y)
{
    tac_tensor *w = tac_tape_param(t, param_of(o, 0));
    tac_tensor *b = tac_tape_param(t, param_of(o, 1));

    switch (o->kind) {
    case LINEAR: return tac_op_linear(t, v[o->a], w, b, o->act, y);
    case CONV: return tac_op_conv2d(t, v[o->a], w, b, 1, 1, o->act, y);
    case POOL: return tac_op_max_pool2d(t, v[o->a], 1, 1, y);
    case RELU: return tac_op_relu(t, v[o->a], y);
    case DROPOUT: return tac_op_dropout(t, v[o->a], 0.2F, y);
    case ADD: return tac_op_add(t, v[o->a], v[o->b], y);
    case SCALE: return tac_op_scale(t, v[o->a], 0.7, y);
    case KINDS: break;
    }
    return TAC_ERR_INTERNAL;
}

/* Within a region, some operations are in another one: of either type, or of
 * f32 alone. */
static tac_status run_op(tac_tape *t, const op *o, tac_tensor **v,
                         tac_tensor **y)
{
    const tac_tape_autocast *on = tac_tape_get_autocast(t);

    if (on == NULL || o->region == 0) return apply_op(t, o, v, y);
    const tac_tape_autocast outer = *on;
    tac_tape_autocast own = outer;
    if (o->region == 3) own.rule = mix_all_f32;
    if (o->region < 3 && own.low != mix_lows[o->region - 1]) {
        own.low = mix_lows[o->region - 1];
        own.weights = NULL;
    }
    TAC_TRY(tac_tape_set_autocast(t, &own));
    TAC_TRY(apply_op(t, o, v, y));
    return tac_tape_set_autocast(t, &outer);
}

static tac_status run_range(tac_tape *t, const program *p, size_t begin,
                            size_t end, size_t next_block, tac_tensor **v);

static tac_status run_block(tac_tape *t, void *arg, tac_tensor *const *in,
                            tac_tensor **out)
{
    const block *b = arg;
    tac_tensor *v[MAX_VALUES] = {NULL};

    for (size_t i = 0; i < b->n_in; ++i) v[b->in[i]] = in[i];
    TAC_TRY(run_range(t, b->p, b->begin, b->end, (size_t)(b - b->p->blocks) + 1,
                      v));
    for (size_t i = 0; i < b->n_out; ++i) out[i] = v[b->out[i]];
    return TAC_OK;
}

static tac_status call_block(tac_tape *t, const block *b, tac_tensor **v)
{
    tac_tensor *in[TAC_BLOCK_MAX], *out[TAC_BLOCK_MAX];
    block *arg = (block *)(uintptr_t)b;

    for (size_t i = 0; i < b->n_in; ++i) in[i] = v[b->in[i]];
    TAC_TRY(tac_tape_block(t, run_block, arg, b->n_in, in, b->n_out, out));
    for (size_t i = 0; i < b->n_out; ++i) v[b->out[i]] = out[i];
    return TAC_OK;
}

/* Blocks are listed outer before inner, first before last; the next one that
 * begins here and lies inside [begin, end) is taken. */
static tac_status run_range(tac_tape *t, const program *p, size_t begin,
                            size_t end, size_t next, tac_tensor **v)
{
    size_t i = begin;

    while (i < end) {
        while (next < p->n_blocks && p->blocks[next].begin < i) ++next;
        const block *b = next < p->n_blocks ? &p->blocks[next] : NULL;
        if (b != NULL && b->begin == i && b->end <= end) {
            TAC_TRY(call_block(t, b, v));
            i = b->end;
            next += 1;
        } else {
            TAC_TRY(run_op(t, &p->ops[i], v, &v[i + 1]));
            i += 1;
        }
    }
    return TAC_OK;
}

typedef struct rig {
    eng_world w;
    double x[BATCH * PIXELS * 9];
    double head[3 * PIXELS * 9];
    int32_t labels[BATCH];
    tac_tensor *input;
    double loss;
    tac_tape_autocast region; /* low F32: none */
} rig;

static const tac_tape_step dry = {.flags = TAC_TAPE_DRY};
static const tac_tape_step train = {0, 4, 0, 1};

static tac_status run(rig *r, const program *p, const tac_tape_step *step)
{
    tac_tape *t = r->w.tape;
    const size_t c = widths[0], last = widths[p->width[p->n]];
    tac_tensor *v[MAX_VALUES] = {NULL}, *y, *w, *labels;
    tac_xent out;

    TAC_TRY(tac_tape_begin(t, step));
    TAC_TRY(tac_tape_input(t, "x", tac_tape_dtype(t), 4,
                           (size_t[4]){BATCH, 4, 4, c}, r->x, 1, &r->input));
    v[0] = r->input;
    if (r->region.low != TAC_F32) TAC_TRY(tac_tape_set_autocast(t, &r->region));
    TAC_TRY(run_range(t, p, 0, p->n, 0, v));
    TAC_TRY(tac_op_flatten(t, v[p->n], &y));
    TAC_TRY(tac_tape_input(t, "head", tac_tape_dtype(t), 2,
                           (size_t[2]){3, PIXELS * last}, r->head, 0, &w));
    TAC_TRY(tac_op_linear(t, y, w, NULL, TAC_ACT_NONE, &y));
    TAC_TRY(tac_tape_input(t, "labels", TAC_I32, 1, (size_t[1]){BATCH},
                           r->labels, 0, &labels));
    TAC_TRY(tac_op_softmax_cross_entropy(t, y, labels, &out));
    TAC_TRY(tac_tape_set_autocast(t, NULL));
    TAC_TRY(tac_tape_backward(t, out.loss, 1.0));
    r->loss = tac_tape_is_dry(t) ? 0 : *(double *)out.loss->data;
    return TAC_OK;
}

static void add_params(rig *r)
{
    char name[32];

    for (int conv = 0; conv < 2; ++conv) {
        for (int i = 0; i < CHANNELS * CHANNELS; ++i) {
            const size_t from = widths[i / CHANNELS], to = widths[i % CHANNELS];
            const size_t w[4] = {to, from, 3, 3};
            snprintf(name, sizeof name, "%d.%d.w", conv, i);
            CHECK_OK(tac_params_add(r->w.params, name, conv ? 4 : 2, w,
                                    (tac_init){TAC_INIT_FAN_IN, 0}, 0, NULL));
            snprintf(name, sizeof name, "%d.%d.b", conv, i);
            CHECK_OK(tac_params_add(r->w.params, name, 1, w,
                                    (tac_init){TAC_INIT_FAN_IN, 4}, 0, NULL));
        }
    }
}

static rig *rig_open(tac_dtype dtype, int recompute)
{
    rig *r = calloc(1, sizeof *r);
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;

    r->w = eng_open("ref", dtype, 1);
    config.recompute = recompute;
    config.seed = 3;
    add_params(r);
    CHECK_OK(tac_params_layout(r->w.params, NULL, NULL, NULL));
    CHECK_OK(tac_params_init(r->w.params, 5));
    CHECK_OK(tac_tape_create(r->w.params, &config, &r->w.tape));
    eng_fill(dtype, r->x, BATCH * PIXELS * 9, 6, 0);
    eng_fill(dtype, r->head, 3 * PIXELS * 9, 6, 1);
    for (int i = 0; i < BATCH; ++i) r->labels[i] = i;
    return r;
}

static void rig_close(rig *r)
{
    eng_close(&r->w);
    free(r);
}

/* The high-water mark of this program alone, and of its dry step. */
static void check_memory(const program *p, int recompute, uint64_t seed,
                         const tac_tape_autocast *region)
{
    rig *a = rig_open(TAC_F32, recompute), *b = rig_open(TAC_F32, recompute);

    a->region = b->region = *region;
    CHECK_OK(run(a, p, &dry));
    CHECK_OK(run(b, p, &train));
    CHECK_MSG(tac_tape_high_water(a->w.tape) == tac_tape_high_water(b->w.tape),
              "program %llu: dry %zu bytes, really %zu",
              (unsigned long long)seed, tac_tape_high_water(a->w.tape),
              tac_tape_high_water(b->w.tape));
    rig_close(a);
    rig_close(b);
}

static void compare(rig *a, rig *b, const program *p, uint64_t seed)
{
    const tac_dtype t = tac_params_dtype(a->w.params);
    const size_t bytes = tac_params_padded(a->w.params) * tac_dtype_size(t);
    const size_t used = BATCH * PIXELS * widths[0] * tac_dtype_size(t);
    const void *ga, *gb;

    if (!CHECK_OK(run(a, p, &train)) || !CHECK_OK(run(b, p, &train))) return;
    CHECK_EQ_MEM(&a->loss, &b->loss, sizeof a->loss);
    CHECK_MSG(memcmp(tac_params_grads(a->w.params),
                     tac_params_grads(b->w.params), bytes) == 0,
              "program %llu, %zu operations, %zu blocks: gradients differ",
              (unsigned long long)seed, p->n, p->n_blocks);
    ga = tac_tensor_grad(a->input);
    gb = tac_tensor_grad(b->input);
    CHECK((ga == NULL) == (gb == NULL));
    if (ga != NULL && gb != NULL)
        CHECK_MSG(memcmp(ga, gb, used) == 0, "program %llu: dx differs",
                  (unsigned long long)seed);
}

/* --- in 16 bits --- */

/* a keeps its casts and runs no block again; b does as it is told. */
static void compare_mixed(rig *a, rig *b, program *p, uint64_t seed)
{
    const tac_dtype low = mix_lows[seed % 2];
    const tac_tape_autocast none = {.low = TAC_F32};
    dice d = {seed, 1000};
    void *weights = seed % 3 == 0 ? mix_weights(b->w.params, low) : NULL;

    for (size_t i = 0; i < p->n; ++i) {
        const size_t k = roll(&d, 8);
        p->ops[i].region = k < 4 ? (int)k : 0;
    }
    a->region = (tac_tape_autocast){sizeof none, low, mix_rule, 1, NULL};
    b->region = a->region;
    b->region.cache = seed % 3 != 2;
    b->region.weights = weights;
    compare(a, b, p, seed);
    if (seed % 20 == 0) check_memory(p, (int)(seed / 20 % 2), seed, &b->region);
    a->region = b->region = none;
    free(weights);
}

/* --- the mask of a fused ReLU --- */

/* A convolution with ReLU made in a block, with one consumer in it and one
 * outside, one of which would take itself for the only one. */
static void consumers_inside_and_outside(rig *a, rig *b)
{
    static const kind kinds[4][2] = {
        {POOL, SCALE}, {SCALE, POOL}, {POOL, POOL}, {POOL, ADD}};

    for (uint64_t i = 0; i < 8; ++i) {
        program p = {.n = 4, .n_blocks = 1};
        p.ops[0] = (op){i < 4 ? CONV : LINEAR, 0, 0, 0, 0, TAC_ACT_RELU, 0};
        p.ops[1] = (op){kinds[i % 4][0], 1, 1, 0, 0, 0, 0};
        p.ops[2] = (op){kinds[i % 4][1], 1, 1, 0, 0, 0, 0};
        p.ops[3] = (op){ADD, 2, 3, 0, 0, 0, 0};
        p.blocks[0] = (block){.p = &p, .begin = 0, .end = 2};
        CHECK(set_ends(&p, &p.blocks[0]));
        CHECK_EQ((long long)p.blocks[0].n_out, 2);
        compare(a, b, &p, 1000 + i);
        p.blocks[0] = (block){.p = &p, .begin = 1, .end = 2};
        CHECK(set_ends(&p, &p.blocks[0]));
        p.blocks[1] = (block){.p = &p, .begin = 2, .end = 3};
        CHECK(set_ends(&p, &p.blocks[1]));
        p.n_blocks = 2;
        compare(a, b, &p, 2000 + i);
    }
}

static int masks;
static tac_status (*real_relu_backward)(const tac_kctx *, size_t, const void *,
                                        const void *, void *);

static tac_status count_masks(const tac_kctx *kc, size_t n, const void *y,
                              const void *dy, void *dx)
{
    ++masks;
    return real_relu_backward(kc, n, y, dy, dx);
}

/* A pass over the largest gradient is saved if pooling follows. */
static void the_mask_is_applied_once(void)
{
    static const int want[4] = {1, 0, 1, 1};

    for (int i = 0; i < 4; ++i) {
        program p = {.n = 2};
        rig *r = rig_open(TAC_F32, 0);
        tac_kernels k = *r->w.tape->k[TAC_F32];
        p.ops[0] = (op){CONV, 0, 0, 0, 0, TAC_ACT_RELU, 0};
        p.ops[1] = (op){i == 0 ? SCALE : POOL, 1, 1, 0, 0, 0, 0};
        if (i == 2) p.ops[p.n++] = (op){ADD, 1, 2, 0, 0, 0, 0};
        if (i == 3) p.ops[0].kind = LINEAR, p.ops[1].kind = DROPOUT;
        real_relu_backward = k.relu_backward;
        k.relu_backward = count_masks;
        r->w.tape->k[TAC_F32] = &k;
        masks = 0;
        CHECK_OK(run(r, &p, &train));
        CHECK_EQ(masks, want[i]);
        rig_close(r);
    }
}

int main(void)
{
    const tac_tape_autocast none = {.low = TAC_F32};
    rig *a = rig_open(TAC_F32, 0), *b = rig_open(TAC_F32, 1);
    size_t blocks = 0, operations = 0;

    for (uint64_t seed = 0; seed < PROGRAMS; ++seed) {
        program p;
        dice d = {seed, 0};
        memset(&p, 0, sizeof p);
        make_ops(&p, &d);
        make_blocks(&p, &d, 0, p.n, 0);
        compare(a, b, &p, seed);
        if (seed % 20 == 0) check_memory(&p, (int)(seed / 20 % 2), seed, &none);
        if (seed % 2 == 0) compare_mixed(a, b, &p, seed / 2);
        blocks += p.n_blocks;
        operations += p.n;
    }
    printf("%d programs, %zu operations, %zu blocks\n", PROGRAMS, operations,
           blocks);
    CHECK(blocks > PROGRAMS);
    consumers_inside_and_outside(a, b);
    rig_close(a);
    rig_close(b);
    the_mask_is_applied_once();
    return tac_check_summary();
}
