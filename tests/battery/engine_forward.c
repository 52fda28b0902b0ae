/* engine_forward.c: what the operations compute, against loops written out
 * here in f64. (How fast kernels do it, and every size, is the kernels' own
 * battery's business; this one finds swapped arguments and wrong shapes.) */
#include "engine_test.h"
#include "tac_check.h"

enum { TAPE_SEED = 77 };

static const tac_tape_step step5 = {0, 5, 1000, 3};

/* A world with no parameters in a train step. */
static eng_world tape_world(const tac_tape_step *step)
{
    tac_tape_config config = TAC_TAPE_CONFIG_INIT;
    eng_world w = eng_open("ref", TAC_F64, 2);

    config.seed = TAPE_SEED;
    if (tac_params_layout(w.params, NULL, NULL, NULL) < 0 ||
        tac_tape_create(w.params, &config, &w.tape) < 0 ||
        tac_tape_begin(w.tape, step) < 0)
        exit(1);
    return w;
}

static tac_tensor *input(eng_world *w, int ndim, size_t a, size_t b, size_t c,
                         size_t d, double *data, uint64_t id)
{
    const size_t shape[4] = {a, b, c, d};
    tac_tensor *x = NULL;

    if (!CHECK_OK(
            tac_tape_input(w->tape, NULL, TAC_F64, ndim, shape, data, 0, &x)))
        exit(1);
    eng_fill(TAC_F64, data, tac_tensor_count(x), 9, id);
    return x;
}

static int has_shape(const tac_tensor *y, const char *want)
{
    char text[128];
    return CHECK_EQ_STR(tac_tensor_shape_text(y, text, sizeof text), want);
}

static double at(const tac_tensor *y, size_t i)
{
    return ((const double *)y->data)[i];
}

static void linear(void)
{
    double x[2 * 3 * 4], w[5 * 4], b[5];
    eng_world e = tape_world(NULL);
    tac_tensor *tx = input(&e, 3, 2, 3, 4, 0, x, 1);
    tac_tensor *tw = input(&e, 2, 5, 4, 0, 0, w, 2);
    tac_tensor *tb = input(&e, 1, 5, 0, 0, 0, b, 3), *y[2] = {NULL, NULL};

    CHECK_OK(tac_op_linear(e.tape, tx, tw, tb, TAC_ACT_NONE, &y[0]));
    CHECK_OK(tac_op_linear(e.tape, tx, tw, NULL, TAC_ACT_RELU, &y[1]));
    has_shape(y[0], "(2,3,5)");
    for (size_t i = 0; i < 6; ++i) {
        for (size_t o = 0; o < 5; ++o) {
            double sum = 0;
            for (size_t k = 0; k < 4; ++k) sum += x[i * 4 + k] * w[o * 4 + k];
            CHECK_NEAR(at(y[0], i * 5 + o), sum + b[o], 1e-14);
            CHECK_NEAR(at(y[1], i * 5 + o), sum > 0 ? sum : 0, 1e-14);
        }
    }
    eng_close(&e);
}

/* x (2,5,4,3), w (2,3,3,2), stride 2, pad 1. */
static double conv_at(const double *x, const double *w, size_t n, size_t oy,
                      size_t ox, size_t o)
{
    double sum = 0;

    for (size_t c = 0; c < 3; ++c) {
        for (size_t ky = 0; ky < 3; ++ky) {
            for (size_t kx = 0; kx < 2; ++kx) {
                const size_t iy = oy * 2 + ky - 1, ix = ox * 2 + kx - 1;
                if (iy >= 5 || ix >= 4) continue; /* wraps below 0 */
                sum += x[((n * 5 + iy) * 4 + ix) * 3 + c] *
                       w[((o * 3 + c) * 3 + ky) * 2 + kx];
            }
        }
    }
    return sum;
}

static void conv(void)
{
    double x[2 * 5 * 4 * 3], w[2 * 3 * 3 * 2], b[2];
    eng_world e = tape_world(NULL);
    tac_tensor *tx = input(&e, 4, 2, 5, 4, 3, x, 1);
    tac_tensor *tw = input(&e, 4, 2, 3, 3, 2, w, 2);
    tac_tensor *tb = input(&e, 1, 2, 0, 0, 0, b, 3), *y = NULL;

    CHECK_OK(tac_op_conv2d(e.tape, tx, tw, tb, 2, 1, TAC_ACT_RELU, &y));
    has_shape(y, "(2,3,3,2)");
    for (size_t i = 0; i < tac_tensor_count(y); ++i) {
        const double v =
            conv_at(x, w, i / 18, i / 6 % 3, i / 2 % 3, i % 2) + b[i % 2];
        CHECK_NEAR(at(y, i), v > 0 ? v : 0, 1e-13);
    }
    eng_close(&e);
}

static void pool(void)
{
    double x[2 * 5 * 7 * 3];
    eng_world e = tape_world(NULL);
    tac_tensor *tx = input(&e, 4, 2, 5, 7, 3, x, 1), *y = NULL;

    CHECK_OK(tac_op_max_pool2d(e.tape, tx, 3, 2, &y));
    has_shape(y, "(2,2,3,3)");
    for (size_t i = 0; i < tac_tensor_count(y); ++i) {
        const size_t c = i % 3, ox = i / 3 % 3, oy = i / 9 % 2, n = i / 18;
        double most = -9;
        for (size_t k = 0; k < 9; ++k) {
            const size_t iy = oy * 2 + k / 3, ix = ox * 2 + k % 3;
            most = fmax(most, x[((n * 5 + iy) * 7 + ix) * 3 + c]);
        }
        CHECK_EQ_F64(at(y, i), most);
    }
    eng_close(&e);
}

static void elementwise(void)
{
    double x[15], z[15];
    eng_world e = tape_world(NULL);
    tac_tensor *tx = input(&e, 2, 3, 5, 0, 0, x, 1);
    tac_tensor *tz = input(&e, 2, 3, 5, 0, 0, z, 2), *y[4];

    CHECK_OK(tac_op_relu(e.tape, tx, &y[0]));
    CHECK_OK(tac_op_add(e.tape, tx, tz, &y[1]));
    CHECK_OK(tac_op_scale(e.tape, tx, -3, &y[2]));
    CHECK_OK(tac_op_flatten(e.tape, tx, &y[3]));
    CHECK(y[3]->data == tx->data);
    CHECK_OK(tac_op_reshape(e.tape, tx, 3, (size_t[3]){1, 5, 3}, &y[3]));
    has_shape(y[3], "(1,5,3)");
    for (size_t i = 0; i < 15; ++i) {
        CHECK_EQ_F64(at(y[0], i), x[i] > 0 ? x[i] : 0);
        CHECK_EQ_F64(at(y[1], i), x[i] + z[i]);
        CHECK_EQ_F64(at(y[2], i), -3 * x[i]);
    }
    eng_close(&e);
}

/* Row i is sample 1000 + 3 i; the third dropout of step 5. */
static void dropout(void)
{
    double x[4 * 6];
    eng_world e = tape_world(&step5);
    tac_tensor *tx = input(&e, 3, 4, 2, 3, 0, x, 1), *y = NULL;
    const double p = (double)0.4F;
    size_t kept = 0;

    CHECK_OK(tac_op_dropout(e.tape, tx, 0.4F, &y));
    CHECK_OK(tac_op_dropout(e.tape, tx, 0.4F, &y));
    CHECK_OK(tac_op_dropout(e.tape, tx, 0.4F, &y));
    const tac_rng_key key = {TAPE_SEED, TAC_STREAM_DROPOUT,
                             (UINT64_C(5) << 16) + 2};
    for (size_t i = 0; i < 24; ++i) {
        const uint64_t index = (1000 + 3 * (i / 6)) * 6 + i % 6;
        const int keep = tac_rng_u32(&key, index) / 4294967296.0 >= p;
        CHECK_NEAR(at(y, i), keep ? x[i] / (1 - p) : 0, 1e-7);
        kept += (size_t)keep;
    }
    CHECK(kept > 5 && kept < 23);
    eng_close(&e);
}

static void cross_entropy(void)
{
    double x[4 * 3], want = 0;
    int32_t labels[4] = {2, -1, 0, 1};
    eng_world e = tape_world(NULL);
    tac_tensor *tx = input(&e, 2, 4, 3, 0, 0, x, 1), *tl = NULL;
    tac_xent y;

    CHECK_OK(tac_tape_input(e.tape, "labels", TAC_I32, 1, (size_t[1]){4},
                            labels, 0, &tl));
    CHECK_OK(tac_op_softmax_cross_entropy(e.tape, tx, tl, &y));
    for (size_t i = 0; i < 4; ++i) {
        const double *r = &x[3 * i];
        const size_t best = r[0] >= r[1] && r[0] >= r[2] ? 0
                            : r[1] >= r[2]               ? 1
                                                         : 2;
        const double sum = exp(r[0]) + exp(r[1]) + exp(r[2]);
        const double loss =
            labels[i] < 0 ? 0 : log(sum) - r[labels[i] < 0 ? 0 : labels[i]];
        CHECK_NEAR(at(y.rows, i), loss, 1e-13);
        CHECK_EQ(((uint8_t *)y.correct->data)[i], labels[i] == (int)best);
        want += loss;
    }
    CHECK_NEAR(at(y.loss, 0), want, 1e-13);
    CHECK_EQ(y.loss->ndim, 0);
    eng_close(&e);
}

/* Nothing at all is a legal batch. */
static void empty(void)
{
    double none[1], w[2 * 3];
    eng_world e = tape_world(NULL);
    tac_tensor *x = input(&e, 2, 0, 3, 0, 0, none, 1), *labels = NULL;
    tac_tensor *tw = input(&e, 2, 2, 3, 0, 0, w, 2), *y = NULL;
    tac_xent out;

    CHECK_OK(tac_op_relu(e.tape, x, &y));
    CHECK_OK(tac_op_dropout(e.tape, y, 0.5F, &y));
    CHECK_OK(tac_op_linear(e.tape, y, tw, NULL, TAC_ACT_RELU, &y));
    has_shape(y, "(0,2)");
    CHECK_OK(tac_tape_input(e.tape, NULL, TAC_I32, 1, (size_t[1]){0}, NULL, 0,
                            &labels));
    CHECK_OK(tac_op_softmax_cross_entropy(e.tape, y, labels, &out));
    CHECK_EQ_F64(at(out.loss, 0), 0.0);
    CHECK_OK(tac_tape_backward(e.tape, out.loss, 1.0));
    eng_close(&e);
}

int main(void)
{
    linear();
    conv();
    pool();
    elementwise();
    dropout();
    cross_entropy();
    empty();
    return tac_check_summary();
}
