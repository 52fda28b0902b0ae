/* The loader: with and without its thread the batches are those of the
 * sampler, every sample once; it can be stopped at any time; a failure of the
 * dataset reaches the consumer after the good batches before it. */
#include "tac_check.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "tacit/clock.h"
#include "tacit/loader.h"
#include "tacit/trace.h"

enum { MAX_N = 512, SAMPLE = 3 };

/* Sample i is {i, i+0.5, -i} with label i mod 7. */
typedef struct probe {
    int64_t fail_at;   /* sample that can't be gathered; -1: none */
    uint64_t sleep_ns; /* in each gather */
    atomic_long gathers;
    atomic_long freed;
} probe;

static tac_status probe_gather(void *impl, tac_context *ctx, size_t n,
                               const uint32_t *index, float *x, int32_t *y)
{
    probe *p = impl;
    atomic_fetch_add(&p->gathers, 1);
    if (p->sleep_ns) tac_clock_sleep_ns(p->sleep_ns);
    for (size_t i = 0; i < n; ++i) {
        if (index[i] == p->fail_at)
            return tac_fail(ctx, TAC_ERR_IO, "sample %u is unreadable",
                            index[i]);
        x[SAMPLE * i] = (float)index[i];
        x[SAMPLE * i + 1] = (float)index[i] + 0.5f;
        x[SAMPLE * i + 2] = -(float)index[i];
        y[i] = (int32_t)(index[i] % 7);
    }
    return TAC_OK;
}

static void probe_destroy(void *impl)
{
    atomic_fetch_add(&((probe *)impl)->freed, 1);
}

static const tac_dataset_ops probe_ops = {
    sizeof(tac_dataset_ops), "probe", probe_gather, probe_destroy, NULL, NULL};

/* A loader with all it needs. */
typedef struct rig {
    tac_context *ctx;
    probe probe;
    tac_dataset *set;
    tac_sampler *sampler;
    tac_loader *loader;
} rig;

typedef struct rig_config {
    size_t n, replicas, rank, batch, prefetch;
    int drop_partial, timeout_ms;
    int64_t fail_at;
    uint64_t sleep_ns;
    size_t trace;
} rig_config;

static void rig_open(rig *r, const rig_config *c)
{
    memset(r, 0, sizeof(*r));
    tac_context_config cc = TAC_CONTEXT_CONFIG_INIT;
    cc.log = data_log_nothing;
    cc.trace_events = c->trace;
    CHECK_OK(tac_context_create(&cc, &r->ctx));
    r->probe.fail_at = c->fail_at;
    r->probe.sleep_ns = c->sleep_ns;
    const tac_dataset_info info = {c->n, 1, 1, SAMPLE, 7};
    CHECK_OK(tac_dataset_create(r->ctx, &probe_ops, &r->probe, &info, &r->set));
    tac_sampler_config sc = TAC_SAMPLER_CONFIG_INIT;
    sc.count = c->n;
    sc.replicas = c->replicas;
    sc.rank = c->rank;
    sc.seed = 21;
    CHECK_OK(tac_sampler_create(r->ctx, &sc, &r->sampler));
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    lc.batch = c->batch;
    lc.prefetch = c->prefetch;
    lc.drop_partial = c->drop_partial;
    if (c->timeout_ms) lc.timeout_ms = c->timeout_ms;
    CHECK_OK(tac_loader_create(r->ctx, r->set, r->sampler, &lc, &r->loader));
}

static void rig_close(rig *r)
{
    tac_loader_destroy(r->loader);
    tac_sampler_destroy(r->sampler);
    tac_dataset_destroy(r->set);
    CHECK_EQ(atomic_load(&r->probe.freed), 1);
    tac_context_destroy(r->ctx);
}

/* One sample of a batch against the oracle's. */
static int same_sample(const tac_batch *b, size_t i, const tac_sample *want)
{
    const float *x = b->x + SAMPLE * i;
    const float v = (float)want->index;
    return b->index[i] == want->index && b->position[i] == want->position &&
           b->valid[i] == (want->valid != 0) && x[0] == v && x[1] == v + 0.5f &&
           x[2] == -v &&
           b->y[i] == (want->valid ? (int32_t)(want->index % 7) : -1);
}

/* Consumes the rest of an epoch; the oracle is a second sampler. Returns the
 * number of valid samples. */
static size_t consume(rig *r, tac_sampler *oracle, size_t batch,
                      size_t *batches)
{
    tac_sample want[64];
    size_t valid = 0;
    for (*batches = 0;; ++*batches) {
        const tac_batch *b = (const tac_batch *)r;
        if (!CHECK_OK(tac_loader_next(r->loader, &b))) return valid;
        const uint64_t at = tac_sampler_position(oracle);
        const size_t global = tac_sampler_step_count(oracle, at, batch);
        const size_t n = tac_sampler_next(oracle, batch, want);
        if (!b) {
            CHECK_EQ(n, 0);
            return valid;
        }
        CHECK_EQ(b->count, n);
        CHECK_EQ(b->step_count, global);
        CHECK_EQ((uintptr_t)b->x % 64, 0);
        size_t same = 0, of_batch = 0;
        for (size_t i = 0; i < b->count && i < n; ++i) {
            same += (size_t)same_sample(b, i, &want[i]);
            of_batch += b->valid[i];
        }
        CHECK_EQ(same, n);
        CHECK_EQ(b->valid_count, of_batch);
        CHECK_EQ(tac_sampler_position(r->sampler),
                 tac_sampler_position(oracle));
        valid += of_batch;
    }
}

static void test_order(size_t prefetch)
{
    const size_t counts[] = {1, 2, 7, 64, 65, 200};
    for (size_t c = 0; c < 6; ++c) {
        for (size_t replicas = 1; replicas <= 3; ++replicas) {
            size_t valid = 0;
            for (size_t rank = 0; rank < replicas; ++rank) {
                const rig_config rc = {.n = counts[c],
                                       .replicas = replicas,
                                       .rank = rank,
                                       .batch = 8,
                                       .prefetch = prefetch,
                                       .fail_at = -1};
                rig r, o;
                size_t batches = 0;
                rig_open(&r, &rc);
                rig_open(&o, &rc);
                for (uint64_t epoch = 0; epoch < 3; ++epoch) {
                    CHECK_OK(tac_loader_start_epoch(r.loader, epoch));
                    tac_sampler_set_epoch(o.sampler, epoch);
                    valid += consume(&r, o.sampler, 8, &batches);
                    CHECK_EQ(batches, tac_loader_batches(r.loader));
                }
                rig_close(&r);
                rig_close(&o);
            }
            CHECK_EQ(valid, 3 * counts[c]);
        }
    }
}

/* After the end `next` goes on saying so; the same epoch can run again. */
static void test_end_and_again(size_t prefetch)
{
    const rig_config rc = {.n = 20,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .fail_at = -1};
    rig r, o;
    size_t batches = 0;
    rig_open(&r, &rc);
    rig_open(&o, &rc);
    for (int again = 0; again < 2; ++again) {
        CHECK_OK(tac_loader_start_epoch(r.loader, 4));
        tac_sampler_set_epoch(o.sampler, 4);
        CHECK_EQ(consume(&r, o.sampler, 8, &batches), 20);
        CHECK_EQ(batches, 3);
        for (int i = 0; i < 3; ++i) {
            const tac_batch *b = (const tac_batch *)&r;
            CHECK_OK(tac_loader_next(r.loader, &b));
            CHECK(b == NULL);
        }
    }
    rig_close(&r);
    rig_close(&o);
}

/* Stop after k batches, at once and after a while; then go on where the
 * consumer, not the thread, had come to. */
static void test_stop_and_resume(size_t prefetch)
{
    for (size_t k = 0; k <= 8; ++k) {
        const rig_config rc = {.n = 60,
                               .replicas = 1,
                               .batch = 8,
                               .prefetch = prefetch,
                               .fail_at = -1};
        rig r, o;
        tac_sample skipped[8];
        size_t batches = 0;
        rig_open(&r, &rc);
        rig_open(&o, &rc);
        tac_sampler_set_epoch(o.sampler, 2);
        CHECK_OK(tac_loader_start_epoch(r.loader, 2));
        for (size_t i = 0; i < k; ++i) {
            const tac_batch *b;
            CHECK_OK(tac_loader_next(r.loader, &b));
            tac_sampler_next(o.sampler, 8, skipped);
            if (k % 2) tac_clock_sleep_ns(300000); /* let it run ahead */
        }
        tac_loader_stop(r.loader);
        tac_loader_stop(r.loader);
        const tac_batch *b;
        CHECK_STATUS(tac_loader_next(r.loader, &b), TAC_ERR_STATE);
        CHECK_EQ(tac_sampler_position(r.sampler),
                 tac_sampler_position(o.sampler));
        CHECK_OK(tac_loader_resume(r.loader));
        CHECK_EQ(consume(&r, o.sampler, 8, &batches), k < 8 ? 60 - 8 * k : 0);
        rig_close(&r);
        rig_close(&o);
    }
}

/* A batch must not change while it is held, however far the thread runs. */
static void test_held_batch_is_stable(size_t prefetch)
{
    const rig_config rc = {.n = 100,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .fail_at = -1};
    rig r;
    rig_open(&r, &rc);
    CHECK_OK(tac_loader_start_epoch(r.loader, 0));
    for (;;) {
        const tac_batch *b;
        float x[8 * SAMPLE];
        if (!CHECK_OK(tac_loader_next(r.loader, &b)) || !b) break;
        const size_t bytes = b->count * SAMPLE * sizeof(float);
        memcpy(x, b->x, bytes);
        tac_clock_sleep_ns(1000000);
        CHECK_EQ_MEM(x, b->x, bytes);
    }
    rig_close(&r);
}

/* Never more batches are filled than prefetch allows. */
static void test_bounded_ahead(size_t prefetch)
{
    const rig_config rc = {.n = 400,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .fail_at = -1};
    rig r;
    rig_open(&r, &rc);
    CHECK_OK(tac_loader_start_epoch(r.loader, 0));
    for (long used = 1; used <= 10; ++used) {
        const tac_batch *b;
        CHECK_OK(tac_loader_next(r.loader, &b));
        tac_clock_sleep_ns(500000);
        CHECK(atomic_load(&r.probe.gathers) <= used + (long)prefetch);
    }
    rig_close(&r);
}

/* The order is 1, 5, ... so the failing sample lies in a known batch. */
static void test_failure(size_t prefetch)
{
    const rig_config rc = {.n = 50,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .fail_at = 13};
    rig r;
    rig_open(&r, &rc);
    tac_sample order[50];
    size_t bad = 0;
    CHECK_EQ(tac_sampler_get(r.sampler, 0, 50, order), 50);
    while (order[bad].index != 13) ++bad;
    for (int again = 0; again < 2; ++again) {
        CHECK_OK(tac_loader_start_epoch(r.loader, 0));
        const tac_batch *b = NULL;
        for (size_t i = 0; i < bad / 8; ++i) {
            CHECK_OK(tac_loader_next(r.loader, &b));
            CHECK_EQ(b->step, i);
        }
        const tac_batch *const untouched = b;
        for (int i = 0; i < 3; ++i)
            CHECK_STATUS(tac_loader_next(r.loader, &b), TAC_ERR_IO);
        CHECK(b == untouched);
        CHECK(data_message_has(r.ctx, "sample 13 is unreadable"));
    }
    rig_close(&r);
}

static void test_timeout(void)
{
    const rig_config rc = {.n = 50,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = 2,
                           .fail_at = -1,
                           .timeout_ms = 20,
                           .sleep_ns = 300000000};
    rig r;
    rig_open(&r, &rc);
    const tac_batch *b;
    CHECK_OK(tac_loader_start_epoch(r.loader, 0));
    CHECK_STATUS(tac_loader_next(r.loader, &b), TAC_ERR_TIMEOUT);
    CHECK(data_message_has(r.ctx, "within 20 ms"));
    rig_close(&r);
}

static void test_drop_partial(size_t prefetch)
{
    const rig_config rc = {.n = 30,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .drop_partial = 1,
                           .fail_at = -1};
    rig r;
    rig_open(&r, &rc);
    size_t batches = 0;
    CHECK_EQ(tac_loader_batches(r.loader), 3);
    CHECK_OK(tac_loader_start_epoch(r.loader, 0));
    for (;;) {
        const tac_batch *b;
        if (!CHECK_OK(tac_loader_next(r.loader, &b)) || !b) break;
        CHECK_EQ(b->count, 8);
        ++batches;
    }
    CHECK_EQ(batches, 3);
    rig_close(&r);
}

/* Destroying in every state: never started, at once, in the middle, ended. */
static void test_destroy_any_time(size_t prefetch)
{
    for (int when = 0; when < 40; ++when) {
        const rig_config rc = {.n = 60,
                               .replicas = 1,
                               .batch = 8,
                               .prefetch = prefetch,
                               .fail_at = -1,
                               .sleep_ns = when % 3 ? 0 : 50000};
        rig r;
        rig_open(&r, &rc);
        if (when) CHECK_OK(tac_loader_start_epoch(r.loader, 0));
        for (int i = 1; i < when && i < 12; ++i) {
            const tac_batch *b;
            CHECK_OK(tac_loader_next(r.loader, &b));
        }
        if (when > 12) CHECK_OK(tac_loader_start_epoch(r.loader, 1));
        rig_close(&r);
    }
}

static void test_spans(size_t prefetch)
{
    const rig_config rc = {.n = 40,
                           .replicas = 1,
                           .batch = 8,
                           .prefetch = prefetch,
                           .fail_at = -1,
                           .trace = 100};
    rig r, o;
    size_t batches;
    tac_span spans[100];
    rig_open(&r, &rc);
    rig_open(&o, &rc);
    CHECK_OK(tac_loader_start_epoch(r.loader, 0));
    consume(&r, o.sampler, 8, &batches);
    tac_loader_stop(r.loader);
    CHECK_EQ(tac_trace_read(r.ctx, spans, 100), 5);
    for (int i = 0; i < 5; ++i) {
        CHECK_EQ_STR(spans[i].name, "load");
        CHECK_EQ(spans[i].lane, TAC_LANE_LOADER);
        CHECK_EQ(spans[i].arg, i);
        CHECK(spans[i].begin_ns <= spans[i].end_ns);
    }
    rig_close(&r);
    rig_close(&o);
}

/* Sixteen ranks as threads of one process share one dataset. */
static void test_shared_dataset(void)
{
    enum { R = 16, N = 333 };
    rig r[R];
    unsigned char seen[N] = {0};
    for (size_t i = 0; i < R; ++i) {
        const rig_config rc = {.n = N,
                               .replicas = R,
                               .rank = i,
                               .batch = 4,
                               .prefetch = 2,
                               .fail_at = -1};
        rig_open(&r[i], &rc);
        tac_loader_destroy(r[i].loader);
        tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
        lc.batch = 4;
        CHECK_OK(tac_loader_create(r[i].ctx, r[0].set, r[i].sampler, &lc,
                                   &r[i].loader));
        CHECK_OK(tac_loader_start_epoch(r[i].loader, 0));
    }
    for (size_t i = 0; i < R; ++i) {
        for (;;) {
            const tac_batch *b;
            if (!CHECK_OK(tac_loader_next(r[i].loader, &b)) || !b) break;
            for (size_t k = 0; k < b->count; ++k)
                if (b->valid[k]) ++seen[b->index[k]];
        }
    }
    for (size_t i = 0; i < N; ++i) CHECK_EQ(seen[i], 1);
    for (size_t i = R; i-- > 0;) rig_close(&r[i]);
}

static void test_create_errors(void)
{
    const rig_config rc = {.n = 10, .replicas = 1, .batch = 8, .fail_at = -1};
    rig r;
    rig_open(&r, &rc);
    tac_loader_config lc = TAC_LOADER_CONFIG_INIT;
    tac_loader *l = (tac_loader *)&r;
    lc.batch = 0;
    CHECK_STATUS(tac_loader_create(r.ctx, r.set, r.sampler, &lc, &l),
                 TAC_ERR_ARG);
    CHECK(data_message_has(r.ctx, "batch must be at least 1"));
    lc.batch = SIZE_MAX;
    CHECK_STATUS(tac_loader_create(r.ctx, r.set, r.sampler, &lc, &l),
                 TAC_ERR_NOMEM);
    lc.batch = 4;
    tac_dataset *other = NULL;
    CHECK_OK(tac_dataset_subset(r.ctx, r.set, 1, (uint32_t[]){3}, &other));
    CHECK_STATUS(tac_loader_create(r.ctx, other, r.sampler, &lc, &l),
                 TAC_ERR_ARG);
    CHECK(data_message_has(r.ctx, "has 1 samples, its sampler 10"));
    CHECK(l == (tac_loader *)&r);
    tac_dataset_destroy(other);
    tac_loader_destroy(NULL);
    rig_close(&r);
}

int main(void)
{
    const size_t prefetch[] = {0, 1, 2, 5};
    for (size_t i = 0; i < 4; ++i) {
        test_order(prefetch[i]);
        test_end_and_again(prefetch[i]);
        test_stop_and_resume(prefetch[i]);
        test_held_batch_is_stable(prefetch[i]);
        test_bounded_ahead(prefetch[i]);
        test_failure(prefetch[i]);
        test_drop_partial(prefetch[i]);
        test_destroy_any_time(prefetch[i]);
        test_spans(prefetch[i]);
        printf("prefetch %zu: %ld failed so far\n", prefetch[i],
               tac_check_failed());
    }
    test_timeout();
    test_shared_dataset();
    test_create_errors();
    return tac_check_summary();
}
