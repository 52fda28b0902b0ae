/* models_recompute.c: what --recompute block saves, and that it changes nothing
 * else: the same loss and gradients, bit for bit, in every precision, with and
 * without dropout, and memory that a dry step knows. And the split into blocks:
 * no other one holds less, for equal layers. */
#include "tac_check.h"

#include "models_setup.h"
#include "segments.h"
#include "tacit/autocast.h"

enum { SIDE = 8, CLASSES = 10, BATCH = 16, WIDTH = 256 };

typedef struct step_result {
    double loss;
    float *grads;
    size_t bytes, dry, high;
} step_result;

static float images[BATCH][SIDE * SIDE];
static int32_t labels[BATCH];

static void make_batch(void)
{
    for (size_t i = 0; i < BATCH; ++i) {
        labels[i] = (int32_t)(i * 7 % CLASSES);
        for (size_t j = 0; j < SIDE * SIDE; ++j)
            images[i][j] = (float)models_random(1, i * SIDE * SIDE + j);
    }
}

/* master: NULL for f32. */
static tac_status step(models_rig *r, unsigned flags, const tac_master *master,
                       step_result *out)
{
    tac_autocast_config ac = TAC_AUTOCAST_CONFIG_INIT;
    tac_autocast region;
    const tac_tape_step s = {flags, 5, 0, 1};
    const int dry = (flags & TAC_TAPE_DRY) != 0;
    tac_tensor *x, *logits;
    tac_xent xent;

    ac.master = master;
    TAC_TRY(tac_autocast_begin(
        r->tape, master ? tac_master_dtype(master) : TAC_F32, &ac, &region));
    TAC_TRY(
        models_forward(r, &s, BATCH, images, labels, 0, &x, &logits, &xent));
    TAC_TRY(tac_autocast_end(&region));
    TAC_TRY(tac_tape_backward(r->tape, xent.loss, 1.0 / BATCH));
    if (!dry) out->loss = *(const double *)xent.loss->data;
    return TAC_OK;
}

/* Working weights, as in training: none are cast in the step. */
static tac_status make_master(models_rig *r, tac_dtype low, tac_master **out)
{
    tac_master_config mc = TAC_MASTER_CONFIG_INIT;

    if (low == TAC_F32) return TAC_OK;
    mc.low = low;
    TAC_TRY(tac_master_create(r->params, &mc, out));
    return tac_master_refresh(*out, NULL);
}

static step_result run(const char *spec, float dropout, tac_dtype low,
                       int recompute)
{
    const tac_model_config c = {sizeof(c), SIDE, SIDE, 1, CLASSES, dropout};
    models_rig r;
    step_result out = {0};
    tac_master *m = NULL;

    if (CHECK_OK(models_open(&r, NULL, TAC_F32, spec, &c)) &&
        CHECK_OK(models_ready(&r, 3, recompute)) &&
        CHECK_OK(make_master(&r, low, &m)) &&
        CHECK_OK(step(&r, TAC_TAPE_DRY, m, &out))) {
        out.dry = tac_tape_high_water(r.tape);
        CHECK_OK(step(&r, 0, m, &out));
        out.high = tac_tape_high_water(r.tape);
        out.bytes = tac_params_padded(r.params) * sizeof(float);
        out.grads = malloc(out.bytes);
        memcpy(out.grads, tac_params_grads(r.params), out.bytes);
    }
    tac_master_destroy(m);
    models_close(&r);
    return out;
}

/* Returns the share of memory that is left. */
static double compare(const char *spec, const char *name, float dropout,
                      tac_dtype low)
{
    step_result a = run(spec, dropout, low, 0), b = run(spec, dropout, low, 1);
    const double share = (double)b.high / (double)(a.high + 1);

    printf("%-8s dropout %.1f %-4s: %7zu bytes, with recompute %7zu, %.3f\n",
           name, (double)dropout, tac_dtype_name(low), a.high, b.high, share);
    CHECK_EQ_U64(a.dry, a.high);
    CHECK_EQ_U64(b.dry, b.high);
    CHECK_EQ_F64(a.loss, b.loss);
    if (CHECK(a.grads && b.grads)) CHECK_EQ_MEM(a.grads, b.grads, a.bytes);
    free(a.grads);
    free(b.grads);
    return share;
}

static void deep(size_t layers, float dropout, tac_dtype low, double bound)
{
    char spec[256] = "mlp:", name[16];

    for (size_t i = 0; i < layers; ++i)
        snprintf(spec + strlen(spec), sizeof(spec) - strlen(spec), "%s%d",
                 i ? "," : "", WIDTH);
    snprintf(name, sizeof(name), "mlp %zu", layers);
    const double share = compare(spec, name, dropout, low);
    CHECK_MSG(share <= bound, "%s in %s, dropout %g: %.3f of the memory", name,
              tac_dtype_name(low), (double)dropout, share);
}

/* --- the split --- */

enum { MOST = 12 };

/* What one split holds at most, written out; bit i: a segment ends at i. */
static size_t held(const tac__chain *c, unsigned ends)
{
    size_t before = 0, worst = 0, first = 0;

    for (size_t i = 0; i < c->n; ++i) {
        if (!(ends >> i & 1) && i + 1 < c->n) continue;
        size_t now = before + c->kept[i] + (first > 0 ? c->kept[first - 1] : 0);
        size_t inside = 0;
        for (size_t j = first; j <= i; ++j) {
            now += c->made[j];
            if (j < i && c->kept[j] > inside) inside = c->kept[j];
        }
        worst = now + inside > worst ? now + inside : worst;
        before += c->kept[i];
        first = i + 1;
    }
    return worst;
}

static unsigned chosen(const tac__chain *c)
{
    size_t last[MOST];
    const size_t n = tac__segments(c, last);
    unsigned ends = 0;

    CHECK(n > 0 && n <= c->n && last[n - 1] == c->n - 1);
    for (size_t k = 0; k < n; ++k) {
        CHECK(k == 0 || last[k] > last[k - 1]);
        ends |= 1U << last[k];
    }
    return ends;
}

static size_t best(const tac__chain *c)
{
    size_t least = SIZE_MAX;

    for (unsigned ends = 0; ends < 1U << (c->n - 1); ++ends) {
        const size_t h = held(c, ends);
        least = h < least ? h : least;
    }
    return least;
}

static void equal_layers(size_t n, size_t factor)
{
    size_t kept[MOST], made[MOST];
    const tac__chain c = {n, kept, made};

    for (size_t i = 0; i < n; ++i) made[i] = factor * (kept[i] = 50);
    CHECK_EQ_U64(held(&c, chosen(&c)), best(&c));
}

/* Greedy is not always best here, but near it. */
static void any_layers(uint32_t seed)
{
    size_t kept[MOST], made[MOST], n = 1 + seed % MOST;
    const tac__chain c = {n, kept, made};

    for (size_t i = 0; i < n; ++i) {
        kept[i] = 1 + (size_t)(500 * (1 + models_random(seed, i)));
        made[i] = kept[i] * (1 + seed % 2);
    }
    const double share = (double)held(&c, chosen(&c)) / (double)best(&c);
    CHECK_MSG(share <= 1.3, "seed %u: %.3f of the best", seed, share);
}

int main(void)
{
    static const tac_dtype types[] = {TAC_F32, TAC_F16, TAC_BF16};

    for (size_t n = 1; n <= MOST; ++n) {
        equal_layers(n, 1);
        equal_layers(n, 2);
    }
    for (uint32_t seed = 1; seed <= 100; ++seed) any_layers(seed);
    make_batch();
    for (size_t i = 0; i < 3; ++i) {
        deep(12, 0.1F, types[i], 0.42);
        deep(16, 0.1F, types[i], 0.36);
        deep(24, 0.1F, types[i], 0.3);
        deep(12, 0, types[i], 0.53); /* 7 outputs of 14, and the loss */
        deep(16, 0, types[i], 0.48);
        deep(24, 0, types[i], 0.42);
        (void)compare("mlp:64", "mlp 1", 0.1F, types[i]);
        (void)compare("mlp:7,300,3,64,100,5,90", "uneven", 0.2F, types[i]);
        (void)compare("cnn", "cnn", 0.1F, types[i]);
    }
    return tac_check_summary();
}
