/* 05_embed_trainer*.c: a trainer of one's own, and what makes it parallel.
 *
 *     05_embed_trainer             knows nothing of tacit; one process
 *     05_embed_trainer_comm        gradients averaged each step, layer by layer
 *                                  while the backward pass goes on (comm/)
 *     05_embed_trainer_localsgd    parameters averaged every 16 steps
 *                                  (localsgd/)
 *
 * `diff 05_embed_trainer.c 05_embed_trainer_comm.c` shows what has to be added.
 * The two run as threads (TACIT_RANKS=4 05_embed_trainer_comm) or as processes
 * (mpirun -np 4 05_embed_trainer_comm).
 *
 * A network of three layers learns made-up data: ten classes, each of them two
 * clouds of points. Adam, batches of 64. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tacit/tacit.h"

enum { FEATURES = 32, CLASSES = 10, LAYERS = 3, BATCH = 64, EPOCHS = 6 };
enum { TRAIN = 4096, TEST = 2000 };
static const int width[LAYERS + 1] = {FEATURES, 96, 48, CLASSES};
static const double RATE = 0.002;

/* ---- data ---------------------------------------------------------------- */

typedef struct dataset {
    float *x;   /* (n, FEATURES) */
    int *label; /* (n) */
    int n;
} dataset;

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t *state)
{
    return ((double)(random_bits(state) >> 12) + 0.5) / 4503599627370496.0;
}

static float normal(uint64_t *state)
{
    const double r = sqrt(-2 * log(uniform(state)));
    return (float)(r * cos(6.283185307179586 * uniform(state)));
}

/* The clouds are the same for every seed, the points are not. */
static void dataset_create(dataset *d, int n, uint64_t seed)
{
    float middle[2 * CLASSES][FEATURES];
    uint64_t clouds = 1;
    for (int c = 0; c < 2 * CLASSES; c++)
        for (int f = 0; f < FEATURES; f++) middle[c][f] = normal(&clouds);
    d->n = n;
    d->x = malloc(sizeof(float) * (size_t)n * FEATURES);
    d->label = malloc(sizeof(int) * (size_t)n);
    if (!d->x || !d->label) exit(1);
    for (int i = 0; i < n; i++) {
        const int cloud = (int)(random_bits(&seed) % (2 * CLASSES));
        d->label[i] = cloud % CLASSES;
        for (int f = 0; f < FEATURES; f++)
            d->x[i * FEATURES + f] = middle[cloud][f] + 1.1f * normal(&seed);
    }
}

static void dataset_destroy(dataset *d)
{
    free(d->x);
    free(d->label);
}

static void shuffle(int *order, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(random_bits(&seed) % (uint64_t)(i + 1));
        const int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* ---- the network --------------------------------------------------------- */

/* All numbers of a kind lie in one array, a layer after the other; param[l] and
 * grad[l] point into them: weight (out, in), then bias (out). */
typedef struct network {
    size_t n, count[LAYERS]; /* parameters: all, and of each layer */
    float *params, *grads, *m, *v;
    float *param[LAYERS], *grad[LAYERS];
    float *act[LAYERS + 1];  /* (BATCH, width[l]): input, outputs of layers */
    float *dact[LAYERS + 1]; /* the loss's derivative by them */
    int label[BATCH];
} network;

static float *zeros(size_t n)
{
    float *a = calloc(n, sizeof *a);
    if (!a) exit(1);
    return a;
}

static void network_create(network *net, uint64_t seed)
{
    net->n = 0;
    for (int l = 0; l < LAYERS; l++) {
        net->count[l] = (size_t)(width[l] + 1) * (size_t)width[l + 1];
        net->n += net->count[l];
    }
    net->params = zeros(net->n);
    net->grads = zeros(net->n);
    net->m = zeros(net->n);
    net->v = zeros(net->n);
    size_t at = 0;
    for (int l = 0; l < LAYERS; l++) {
        net->param[l] = net->params + at;
        net->grad[l] = net->grads + at;
        at += net->count[l];
        for (int i = 0; i < width[l] * width[l + 1]; i++)
            net->param[l][i] = normal(&seed) * sqrtf(2 / (float)width[l]);
    }
    for (int l = 0; l <= LAYERS; l++) {
        net->act[l] = zeros((size_t)BATCH * (size_t)width[l]);
        net->dact[l] = zeros((size_t)BATCH * (size_t)width[l]);
    }
}

static void network_destroy(network *net)
{
    free(net->params);
    free(net->grads);
    free(net->m);
    free(net->v);
    for (int l = 0; l <= LAYERS; l++) {
        free(net->act[l]);
        free(net->dact[l]);
    }
}

static void load_batch(network *net, const dataset *d, const int *sample,
                       int rows)
{
    for (int r = 0; r < rows; r++) {
        memcpy(net->act[0] + r * FEATURES, d->x + sample[r] * FEATURES,
               sizeof(float) * FEATURES);
        net->label[r] = d->label[sample[r]];
    }
}

/* act[l + 1] = relu(act[l] weight^T + bias); the last layer without relu. */
static void forward(network *net, int l, int rows)
{
    const int in = width[l], out = width[l + 1];
    const float *bias = net->param[l] + in * out;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            const float *x = net->act[l] + r * in, *w = net->param[l] + o * in;
            float sum = bias[o];
            for (int i = 0; i < in; i++) sum += x[i] * w[i];
            net->act[l + 1][r * out + o] = l < LAYERS - 1 && sum < 0 ? 0 : sum;
        }
}

/* The mean loss of the rows, and dact[LAYERS]. */
static double loss(network *net, int rows)
{
    double total = 0;
    for (int r = 0; r < rows; r++) {
        const float *y = net->act[LAYERS] + r * CLASSES;
        float *dy = net->dact[LAYERS] + r * CLASSES;
        double sum = 0, top = y[0];
        for (int c = 1; c < CLASSES; c++) top = y[c] > top ? y[c] : top;
        for (int c = 0; c < CLASSES; c++) sum += exp(y[c] - top);
        for (int c = 0; c < CLASSES; c++)
            dy[c] =
                (float)((exp(y[c] - top) / sum - (c == net->label[r])) / rows);
        total += log(sum) + top - y[net->label[r]];
    }
    return total / rows;
}

/* grad[l] and dact[l] from dact[l + 1]. */
static void backward(network *net, int l, int rows)
{
    const int in = width[l], out = width[l + 1];
    float *gw = net->grad[l], *gb = gw + in * out;
    memset(gw, 0, sizeof(float) * net->count[l]);
    memset(net->dact[l], 0, sizeof(float) * (size_t)(rows * in));
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            const float d = net->dact[l + 1][r * out + o];
            const float *x = net->act[l] + r * in, *w = net->param[l] + o * in;
            float *dx = net->dact[l] + r * in;
            if (d == 0) continue;
            for (int i = 0; i < in; i++) gw[o * in + i] += d * x[i];
            for (int i = 0; i < in; i++) dx[i] += d * w[i];
            gb[o] += d;
        }
    for (int i = 0; i < rows * in; i++)
        if (net->act[l][i] <= 0) net->dact[l][i] = 0; /* of relu */
}

static void adam(network *net, int step)
{
    const double b1 = 0.9, b2 = 0.999;
    const double scale = RATE / (1 - pow(b1, step)), fix = 1 - pow(b2, step);
    for (size_t i = 0; i < net->n; i++) {
        const double g = net->grads[i];
        net->m[i] = (float)(b1 * net->m[i] + (1 - b1) * g);
        net->v[i] = (float)(b2 * net->v[i] + (1 - b2) * g * g);
        net->params[i] -=
            (float)(scale * net->m[i] / (sqrt(net->v[i] / fix) + 1e-8));
    }
}

/* ---- training ------------------------------------------------------------ */

/* Loss and accuracy on data that training never sees, and the length of the
 * vector of parameters: two trainings that went alike show alike numbers. */
static void report(network *net, const dataset *test)
{
    double total = 0, length = 0;
    int right = 0, order[TEST];
    for (int i = 0; i < test->n; i++) order[i] = i;
    for (int i = 0; i < test->n; i += BATCH) {
        const int rows = test->n - i < BATCH ? test->n - i : BATCH;
        load_batch(net, test, order + i, rows);
        for (int l = 0; l < LAYERS; l++) forward(net, l, rows);
        total += loss(net, rows) * rows;
        for (int r = 0; r < rows; r++) {
            const float *y = net->act[LAYERS] + r * CLASSES;
            int best = 0;
            for (int c = 1; c < CLASSES; c++) best = y[c] > y[best] ? c : best;
            right += best == net->label[r];
        }
    }
    for (size_t i = 0; i < net->n; i++)
        length += (double)net->params[i] * net->params[i];
    printf("test loss %.7f, accuracy %.2f %%, parameters' length %.7f\n",
           total / test->n, 100.0 * right / test->n, sqrt(length));
}

static tac_status train(tac_comm *comm)
{
    network net;
    dataset data, test;
    int order[TRAIN], step = 0;
    dataset_create(&data, TRAIN, 2);
    dataset_create(&test, TEST, 3);
    network_create(&net, 4);
    tac_reducer *r;
    TAC_TRY(tac_reducer_create_arrays(comm, net.grad, net.count, LAYERS, &r));
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t seed = 5 + epoch;
        shuffle(order, TRAIN, seed);
        for (int i = 0; i + BATCH <= TRAIN; i += BATCH) {
            const int *batch = order + i;
            int rows = BATCH;
            rows /= tac_comm_size(comm);
            batch += rows * tac_comm_rank(comm);
            TAC_TRY(tac_reducer_begin(r, 1, 1.0));
            load_batch(&net, &data, batch, rows);
            for (int l = 0; l < LAYERS; l++) forward(&net, l, rows);
            loss(&net, rows);
            for (int l = LAYERS - 1; l >= 0; l--) {
                backward(&net, l, rows);
                TAC_TRY(tac_reducer_ready(r, (size_t)l, NULL));
            }
            TAC_TRY(tac_reducer_finish(r, 0));
            adam(&net, ++step);
        }
    }
    tac_reducer_destroy(r);
    if (tac_comm_rank(comm) == 0) report(&net, &test);
    network_destroy(&net);
    dataset_destroy(&test);
    dataset_destroy(&data);
    return 0;
}

int main(void)
{
    return tac_launch_env(train);
}
