/* One configuration, two answers: what the simulator sends is what
 * tac_localsgd_predict counts (and tac_localsgd_stats: that is tested with
 * training), for every kind of schedule, codec, level and end. */
#include "localsgd_sim_setup.h"
#include "tac_check.h"
#include "tacit/localsgd.h"

enum { LAYERS = 9 };

static const size_t sizes[LAYERS] = {1000, 0, 1, 257, 64, 5000, 33, 1024, 7};

static double falling(void *arg, int64_t attempt)
{
    (void)arg;
    return 0.1 / (double)attempt;
}

static void compare(tac_context *ctx, const tac_localsgd_config *l, int world,
                    int64_t attempts, tac_sim_sending sending)
{
    static const tac_sim_network nets[TAC_LOCALSGD_LEVELS] = {
        {1e9, 1e9, 0, 0}, {1e8, 1e8, 0, 0}, {1e7, 1e7, 0, 0}, {1e6, 1e6, 0, 0}};
    const tac_localsgd_model model = {.layers = LAYERS, .params = sizes};
    double params[LAYERS];
    tac_localsgd_prediction p;
    tac_sim_result r;
    tac_sim_config c = TAC_SIM_CONFIG_INIT;
    char text[512];
    for (int i = 0; i < LAYERS; i++) params[i] = (double)sizes[i];
    c.layers = LAYERS;
    c.layer_params = params;
    c.bits = 0;
    c.workers = world;
    c.steps = attempts;
    c.finish = 1;
    c.sending = sending;
    c.lr = falling;
    sim_local(&c, l);
    if (!CHECK_OK(tac_localsgd_predict(ctx, l, &model, world, attempts, falling,
                                       NULL, &p)))
        return;
    if (!CHECK_OK(tac_sim_run(ctx, &c, nets, NULL, 0, &r))) return;
    const double want = 8 * (double)p.bytes_wire;
    CHECK_MSG(fabs(r.bits_sent - want) <= 1e-9 * want,
              "%.17g bits, predicted %.17g: world %d, %d attempts, %s",
              r.bits_sent, want, world, (int)attempts,
              tac_localsgd_describe(l, text, sizeof text));
    CHECK_MSG(r.syncs == p.syncs, "%d syncs, predicted %d: %d attempts, %s",
              (int)r.syncs, (int)p.syncs, (int)attempts,
              tac_localsgd_describe(l, text, sizeof text));
}

static void every_end(tac_context *ctx, tac_localsgd_config l, int world)
{
    for (int64_t attempts = 1; attempts < 30; attempts += 1 + attempts / 6)
        for (int total = 0; total < 2; total++) {
            l.total = total ? attempts : 0;
            compare(ctx, &l, world, attempts, TAC_SIM_WITH_BACKWARD);
            compare(ctx, &l, world, attempts, TAC_SIM_AFTER_STEP);
        }
}

static void every_codec(tac_context *ctx, tac_localsgd_config l, int world)
{
    static const char *const codecs[] = {NULL,
                                         "none",
                                         "fp16",
                                         "bf16",
                                         "int8",
                                         "fp4",
                                         "int8,start=2",
                                         "topk:0.01,warmup=4",
                                         "topk:0.02,bits=2,chunk=4096"};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        l.codec = codecs[i];
        every_end(ctx, l, world);
    }
}

static void intervals(tac_context *ctx)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    for (l.schedule.every = 1; l.schedule.every < 9; l.schedule.every += 3) {
        every_codec(ctx, l, 2);
        every_codec(ctx, l, 1);
    }
    l.schedule.start = 5;
    every_codec(ctx, l, 4);
}

static void rates(tac_context *ctx)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    l.schedule.kind = TAC_SYNC_QSR;
    l.schedule.alpha = 0.04;
    l.schedule.every = 2;
    every_codec(ctx, l, 2);
    l.schedule.max_every = 5;
    l.schedule.start = 3;
    every_codec(ctx, l, 2);
}

static void fragments(tac_context *ctx)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    l.schedule.every = 8;
    for (l.fragments = 2; l.fragments <= LAYERS; l.fragments += 2)
        for (l.strided = 0; l.strided < 2; l.strided++) {
            l.delay = 0;
            every_codec(ctx, l, 3);
            l.delay = l.fragments;
            every_codec(ctx, l, 3);
        }
}

static void eager(tac_context *ctx)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    l.outer.kind = TAC_OUTER_NESTEROV;
    l.schedule.every = 4;
    l.delay = 4;
    l.stale = TAC_STALE_EAGER;
    every_codec(ctx, l, 3);
}

static void levels(tac_context *ctx)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    l.n_levels = 3;
    l.levels[0] = (tac_sync_level){1, 1};
    l.levels[1] = (tac_sync_level){2, 3};
    l.levels[2] = (tac_sync_level){8, 7};
    every_codec(ctx, l, 8);
    l.levels[0].ranks = 2;
    l.levels[1].ranks = 4;
    l.fragments = 3;
    l.delay = 2;
    every_codec(ctx, l, 8);
}

int main(void)
{
    tac_context *ctx = NULL;
    if (!CHECK_OK(tac_context_create(NULL, &ctx))) return tac_check_summary();
    intervals(ctx);
    rates(ctx);
    fragments(ctx);
    eager(ctx);
    levels(ctx);
    tac_context_destroy(ctx);
    return tac_check_summary();
}
