/* The state of localsgd with any numbers in it: it is refused, or a run goes on
 * from it, to whatever end. The input is put into the items one after the
 * other, but for the hash of the configuration, which would refuse all. */
#include "fuzz.h"

#include "tacit/comm.h"
#include "tacit/localsgd.h"

enum { N = 24, STEPS = 20 };

typedef struct filler {
    const uint8_t *at;
    size_t left;
    uint64_t config;
    uint8_t *out; /* instead: what there is; NULL: fill */
} filler;

static tac_status fill(void *arg, const tac_state_item *item)
{
    filler *f = arg;
    size_t n = tac_state_item_count(item) * tac_dtype_size(item->dtype);

    if (strstr(item->name, "config")) {
        if (f->out)
            memcpy(&f->config, item->data, sizeof f->config);
        else
            memcpy(item->data, &f->config, sizeof f->config);
        return TAC_OK;
    }
    if (f->out) {
        memcpy(f->out, item->data, n);
        f->out += n;
        return TAC_OK;
    }
    if (n > f->left) n = f->left;
    memcpy(item->data, f->at, n);
    f->at += n;
    f->left -= n;
    return TAC_OK;
}

static tac_comm *comm(void)
{
    static tac_comm *c;
    tac_comm_config cc = TAC_COMM_CONFIG_INIT;

    if (!c && tac_comm_create_self(fuzz_context(), &cc, &c) < 0) abort();
    return c;
}

static tac_localsgd *make(int kind, float *values)
{
    tac_localsgd_config c = TAC_LOCALSGD_CONFIG_INIT;
    tac_localsgd *l = NULL;

    c.schedule.every = 6;
    c.outer.kind = TAC_OUTER_NESTEROV;
    c.outer.lr = 0.7;
    c.outer.momentum = 0.9;
    if (kind & 1) {
        c.fragments = 2;
        c.delay = 2;
    }
    if (kind & 2) c.codec = "int8";
    if (tac_localsgd_create(comm(), &c, &l) < 0) abort();
    for (int i = 0; i < 2; i++)
        if (tac_localsgd_add(l, &(tac_localsgd_tensor){.name = i ? "b" : "a",
                                                       .dtype = TAC_F32,
                                                       .count = N,
                                                       .data = values + i * N,
                                                       .layer = i}) < 0)
            abort();
    return l;
}

static void run(tac_localsgd *l, int steps)
{
    for (int i = 0; i < steps; i++)
        if (tac_localsgd_step(
                l, &(tac_local_step){.lr = 0.1, .loss = 1, .samples = 1},
                NULL) < 0)
            return;
}

/* The state after some steps, as bytes; its hash. */
static uint64_t state_of(int kind, int steps, uint8_t *out, size_t *n)
{
    float values[2 * N] = {0};
    filler f = {.out = out};
    const tac_state_visitor v = {fill, &f, NULL};
    tac_localsgd *l = make(kind, values);

    if (tac_localsgd_start(l, TAC_START_VERIFY) < 0) abort();
    run(l, steps);
    if (tac_localsgd_settle(l) < 0 || tac_localsgd_walk(l, &v) < 0) abort();
    *n = (size_t)(f.out - out);
    tac_localsgd_destroy(l);
    return f.config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t scratch[FUZZ_ROOM];
    static uint64_t config[4];
    float values[2 * N] = {0};
    size_t n;

    if (bytes == 0) return 0;
    const int kind = data[0] & 3;
    if (!config[kind]) config[kind] = state_of(kind, 0, scratch, &n);
    filler f = {.at = data + 1, .left = bytes - 1, .config = config[kind]};
    const tac_state_visitor v = {fill, &f, NULL};
    tac_localsgd *l = make(kind, values);

    if (tac_localsgd_walk(l, &v) >= 0 &&
        tac_localsgd_start(l, TAC_START_LOADED) >= 0) {
        run(l, STEPS);
        tac_localsgd_settle(l);
    }
    tac_localsgd_destroy(l);
    return 0;
}

static size_t fuzz_seed(size_t i, uint8_t *out)
{
    size_t n = 0;

    if (i >= 8) return 0;
    out[0] = (uint8_t)(i & 3);
    state_of((int)(i & 3), i < 4 ? 5 : 9, out + 1, &n);
    return n + 1;
}
