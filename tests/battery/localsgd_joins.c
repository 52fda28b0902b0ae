/* localsgd_joins.c: ranks that are behind, and newcomers. What they take over
 * is compared bit by bit, what follows with the same thing done by hand in f64.
 * Then what a change of ranks must keep, and when it is refused. */
#include "impl.h"
#include "localsgd_regroup.h"

/* ---- a survivor that is behind --------------------------------------------
 */

typedef struct behind {
    meeting m;
    const char *method;
    uint64_t after[4]; /* parameters after the synchronisation */
} behind;

typedef struct snapshot {
    size_t n;
    struct {
        char name[64];
        void *data;
    } item[64];
    float params[TRIAL_N + 64];
} snapshot;

static tac_status take_item(void *arg, const tac_state_item *item)
{
    snapshot *s = arg;
    const size_t bytes =
        tac_state_item_count(item) * tac_dtype_size(item->dtype);
    snprintf(s->item[s->n].name, sizeof s->item[0].name, "%s", item->name);
    s->item[s->n].data = malloc(bytes);
    memcpy(s->item[s->n++].data, item->data, bytes);
    return TAC_OK;
}

static tac_status put_item(void *arg, const tac_state_item *item)
{
    snapshot *s = arg;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->item[i].name, item->name) == 0)
            memcpy(item->data, s->item[i].data,
                   tac_state_item_count(item) * tac_dtype_size(item->dtype));
    return TAC_OK;
}

static void take_snapshot(const trial *t, snapshot *s)
{
    const tac_state_visitor v = {take_item, s, NULL};
    s->n = 0;
    CHECK_OK(tac_localsgd_walk(t->l, &v));
    memcpy(s->params, t->memory, sizeof s->params);
}

/* As if the rank's last attempt had not been made: the others have its delta,
 * it has not their average. */
static void go_back(trial *t, snapshot *s, int64_t done, int64_t version)
{
    const tac_state_visitor v = {put_item, s, NULL};
    CHECK_OK(tac_localsgd_walk(t->l, &v));
    memcpy(t->memory, s->params, sizeof s->params);
    for (size_t i = 0; i < s->n; i++) free(s->item[i].data);
    t->l->done = done;
    t->l->fragments[0].version = version;
    t->attempts--;
}

static void falls_behind(tac_comm *comm, void *arg)
{
    behind *b = arg;
    trial t;
    tac_regroup r;
    snapshot s;
    float anchor[TRIAL_N], params[TRIAL_N];
    const tac_localsgd_config c = preset(comm, b->method, EVERY);
    const int me = tac_comm_rank(comm), anchored = !strcmp(b->method, "diloco");
    if (!trial_start(&t, comm, &c, 0)) return;
    trial_run(&t, 2 * EVERY - 1, rate);
    const int64_t done = t.l->done, version = t.l->fragments[0].version;
    take_snapshot(&t, &s);
    trial_run(&t, 1, rate);
    b->after[me] = trial_hash(&t);
    if (me == 0) {
        go_back(&t, &s, done, version);
    } else {
        for (size_t i = 0; i < s.n; i++) free(s.item[i].data);
        trial_run(&t, 2, rate); /* and these go on for a while */
    }
    const uint64_t before = trial_hash(&t);
    tac_comm *next = meeting_join(&b->m, tac_comm_context(comm), me);
    if (CHECK_OK(tac_localsgd_regroup(t.l, next, &r))) {
        CHECK_EQ((long long)r.attempts, 2 * EVERY + 2);
        CHECK_EQ((long long)r.forward, me == 0 ? 3 : 0);
        CHECK_EQ((long long)r.adopted, me == 0 && anchored);
        CHECK_EQ((long long)r.retried, 0);
        CHECK_EQ((long long)stats_of(t.l).syncs, 2);
        if (me == 0 && anchored) {
            CHECK_EQ_U64(trial_hash(&t), b->after[1]);
            CHECK_EQ((long long)item_of(t.l, "anchor", anchor, TRIAL_N),
                     TRIAL_N);
            trial_flat(&t, params);
            CHECK_EQ_MEM(params, anchor, sizeof anchor);
        } else {
            CHECK_EQ_U64(trial_hash(&t), before);
        }
        t.attempts = r.attempts;
        trial_run(&t, 7, rate);
        CHECK_OK(tac_localsgd_finish(t.l));
        CHECK(all_equal(next, trial_hash(&t)));
    }
    trial_close(&t);
    tac_comm_destroy(next);
}

/* ---- newcomers ------------------------------------------------------------
 */

typedef struct arrival {
    meeting m;
    const char *method, *codec;
    int64_t at, delay;
    uint64_t anchor, outer, params, clock; /* of rank 0 */
} arrival;

static uint64_t item_hash(tac_localsgd *l, const char *name)
{
    static float all[HAND_RANKS + 2][TRIAL_N];
    float *x = all[l->rank];
    const size_t n = item_of(l, name, x, TRIAL_N);
    return tac_hash_bytes(TAC_HASH_INIT, x, n * sizeof *x);
}

static void join_by_hand(const arrival *a, const trial *t,
                         const tac_localsgd_config *c, int ranks, int64_t to)
{
    static by_hand hands[HAND_RANKS];
    by_hand *h = &hands[t->rank];
    hand_open(h, c->outer, ranks);
    hand_attempts(h, a->at);
    h->here[ranks] = 1;
    memcpy(h->x[ranks], strcmp(a->method, "local") ? h->a : h->x[0],
           sizeof h->a);
    hand_attempts(h, to);
    if (to % EVERY != 0) hand_sync(h, 0, TRIAL_N, 0.1);
    hand_compare(h, t->rank, t, a->method);
}

static tac_localsgd_config arrival_config(tac_comm *comm, const arrival *a)
{
    tac_localsgd_config c = preset(comm, a->method, EVERY);
    c.codec = a->codec;
    c.delay = a->delay;
    return c;
}

/* What old and new ranks do once they are together. */
static void go_on(arrival *a, trial *t, tac_comm *next, int first,
                  const tac_localsgd_config *c)
{
    enum { MORE = 11 };
    t->attempts = a->at;
    trial_run(t, MORE, rate);
    CHECK_OK(tac_localsgd_finish(t->l));
    CHECK(all_equal(next, trial_hash(t)));
    CHECK_EQ((long long)stats_of(t->l).attempts, (long long)a->at + MORE);
    if (!a->codec && !a->delay) join_by_hand(a, t, c, first, a->at + MORE);
}

/* The last of the new world. */
static void *newcomer(void *arg)
{
    arrival *a = arg;
    enum { ME = 3 };
    trial t;
    tac_regroup r;
    tac_context *ctx = rank_context(ME, ME + 1);
    tac_comm *next = meeting_join(&a->m, ctx, ME);
    const tac_localsgd_config c = arrival_config(next, a);
    float params[TRIAL_N], moved[TRIAL_N], anchor[TRIAL_N];
    if (trial_open(&t, next, &c, 0)) {
        for (size_t i = 0; i < 17; i++) t.p[2][i] = -7; /* anything */
        CHECK_OK(tac_localsgd_regroup(t.l, next, &r));
        CHECK_EQ(r.joined, 1);
        CHECK_EQ((long long)r.attempts, (long long)a->at);
        CHECK_EQ((long long)r.forward, (long long)a->at);
        trial_flat(&t, params);
        if (item_of(t.l, "anchor", anchor, TRIAL_N) > 0)
            CHECK_EQ_MEM(params, anchor, sizeof params);
        else
            CHECK_EQ_U64(trial_hash(&t), a->params);
        CHECK_EQ_U64(item_hash(t.l, "anchor"), a->anchor);
        CHECK_EQ_U64(item_hash(t.l, "outer0"), a->outer);
        go_on(a, &t, next, ME, &c);
        trial_flat(&t, moved);
        CHECK(memcmp(params, moved, sizeof moved) != 0);
    }
    trial_close(&t);
    tac_comm_destroy(next);
    tac_context_destroy(ctx);
    return NULL;
}

static void welcomes(tac_comm *comm, void *arg)
{
    arrival *a = arg;
    pthread_t other;
    trial t;
    tac_regroup r;
    const tac_localsgd_config c = arrival_config(comm, a);
    const int me = tac_comm_rank(comm);
    if (!trial_start(&t, comm, &c, 0)) return;
    trial_run(&t, a->at, rate);
    const uint64_t before = trial_hash(&t);
    CHECK_OK(tac_localsgd_settle(t.l));
    if (me == 0) {
        a->anchor = item_hash(t.l, "anchor");
        a->outer = item_hash(t.l, "outer0");
        a->params = before;
        CHECK(pthread_create(&other, NULL, newcomer, a) == 0);
    }
    tac_comm *next = meeting_join(&a->m, tac_comm_context(comm), me);
    if (CHECK_OK(tac_localsgd_regroup(t.l, next, &r))) {
        CHECK_EQ(r.ranks, 4);
        CHECK_EQ(r.joined, 1);
        CHECK_EQ((long long)r.forward, 0);
        CHECK_EQ((long long)r.dropped, 0);
        CHECK_EQ_U64(trial_hash(&t), before);
        go_on(a, &t, next, 3, &c);
    }
    if (me == 0) pthread_join(other, NULL);
    trial_close(&t);
    tac_comm_destroy(next);
}

/* ---- bytes, residuals, refusals -------------------------------------------
 */

typedef struct pair {
    meeting m;
    const char *codec;
} pair;

/* What is owed stays owed, and what was counted stays counted. */
static void keeps(tac_comm *comm, void *arg)
{
    pair *q = arg;
    trial t;
    float own[TRIAL_N], result[TRIAL_N], after[TRIAL_N];
    tac_localsgd_config c = preset(comm, "local", EVERY);
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    c.codec = q->codec;
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_run(&t, 2 * EVERY + 1, rate);
    const tac_localsgd_stats before = stats_of(t.l);
    memset(result, 0, sizeof result);
    item_of(t.l, "level0.codec.fragment 0.residual", own, TRIAL_N);
    item_of(t.l, "level0.codec.fragment 0.result", result, TRIAL_N);
    tac_comm *next = meeting_join(&q->m, tac_comm_context(comm), me);
    CHECK_OK(tac_localsgd_regroup(t.l, next, NULL));
    item_of(t.l, "level0.codec.fragment 0.residual", after, TRIAL_N);
    for (size_t i = 0; i < TRIAL_N && q->codec; i++)
        if (!(fabsf(own[i] + (float)size * result[i] - after[i]) < 1e-6f)) {
            CHECK_NEAR(after[i], own[i] + (float)size * result[i], 1e-6);
            break;
        }
    const tac_localsgd_stats now = stats_of(t.l);
    CHECK_EQ_U64(now.bytes_wire, before.bytes_wire);
    CHECK_EQ_U64(now.bytes_logical, before.bytes_logical);
    CHECK_EQ_U64(now.bytes_control, before.bytes_control);
    trial_run(&t, 2 * EVERY, rate);
    CHECK_OK(tac_localsgd_finish(t.l));
    tac_localsgd_prediction p;
    const tac_localsgd_model m = tac_localsgd_model_of(t.l);
    CHECK_OK(tac_localsgd_predict(tac_comm_context(comm), &c, &m, size,
                                  4 * EVERY + 1, NULL, NULL, &p));
    CHECK_EQ_U64(stats_of(t.l).bytes_wire, p.bytes_wire);
    CHECK_EQ((long long)stats_of(t.l).syncs, (long long)p.syncs);
    trial_close(&t);
    tac_comm_destroy(next);
}

static void refuses(tac_comm *comm, void *arg)
{
    meeting *m = arg;
    trial t;
    char text[400];
    tac_localsgd_config c = preset(comm, "diloco", 6);
    const int me = tac_comm_rank(comm), size = tac_comm_size(comm);
    c.n_levels = 2; /* pairs, which three ranks don't make */
    c.levels[0] = (tac_sync_level){2, 3};
    c.levels[1] = (tac_sync_level){size, 6};
    if (!trial_start(&t, comm, &c, 1)) return;
    trial_run(&t, 4, rate);
    if (me < 3) {
        tac_comm *next = meeting_join(m, tac_comm_context(comm), me);
        CHECK_STATUS(tac_localsgd_regroup(t.l, next, NULL), TAC_ERR_ARG);
        CHECK_STATUS(one_step(&t), TAC_ERR_ARG);
        (void)tac_context_error(tac_comm_context(comm), text, sizeof text);
        CHECK_MSG(strstr(text, "level") != NULL, "%s", text);
        tac_comm_destroy(next);
    }
    trial_close(&t);
}

static void refuses_more(tac_comm *comm, void *arg)
{
    meeting *m = arg;
    trial t;
    tac_localsgd_config c = preset(comm, "diloco", EVERY);
    const int me = tac_comm_rank(comm);
    /* nobody has a state */
    if (!trial_open(&t, comm, &c, 1)) return;
    tac_comm *next = meeting_join(m, tac_comm_context(comm), me);
    CHECK_STATUS(tac_localsgd_regroup(t.l, next, NULL), TAC_ERR_STATE);
    trial_close(&t);
    tac_comm_destroy(next);
    /* one's own anchor */
    c.delay = EVERY;
    c.stale = TAC_STALE_EAGER;
    if (!trial_start(&t, comm, &c, 1)) return;
    next = meeting_join(m, tac_comm_context(comm), me);
    CHECK_STATUS(tac_localsgd_regroup(t.l, next, NULL), TAC_ERR_UNSUPPORTED);
    trial_close(&t);
    tac_comm_destroy(next);
    /* the end was already */
    c = preset(comm, "local", EVERY);
    if (!trial_start(&t, comm, &c, 1)) return;
    CHECK_OK(tac_localsgd_finish(t.l));
    next = meeting_join(m, tac_comm_context(comm), me);
    CHECK_STATUS(tac_localsgd_regroup(t.l, next, NULL), TAC_ERR_STATE);
    trial_close(&t);
    tac_comm_destroy(next);
}

/* ---- all of it ------------------------------------------------------------
 */

static void all_arrivals(void)
{
    static const arrival cases[] = {
        {.method = "local", .at = 6},
        {.method = "local", .at = 8},
        {.method = "slowmo", .at = 7},
        {.method = "diloco", .at = 5},
        {.method = "diloco", .codec = "int8", .at = 6},
        {.method = "diloco", .codec = "topk:0.2,bits=4", .at = 9},
        {.method = "diloco", .delay = 2, .at = 9},
        {.method = "diloco", .delay = 4, .at = 10}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        arrival a = cases[k];
        meeting_open(&a.m, 3, 4);
        with_threads(3, NULL, welcomes, &a);
        meeting_close(&a.m);
    }
}

int main(void)
{
    behind behinds[] = {{.method = "diloco"}, {.method = "local"}};
    pair pairs[] = {{.codec = "int8"}, {.codec = "topk:0.1"}, {.codec = NULL}};
    meeting m;
    for (int k = 0; k < 2; k++) {
        meeting_open(&behinds[k].m, 3, 3);
        with_threads(3, NULL, falls_behind, &behinds[k]);
        meeting_close(&behinds[k].m);
    }
    all_arrivals();
    for (int k = 0; k < 3; k++) {
        meeting_open(&pairs[k].m, 3, 3);
        with_threads(3, NULL, keeps, &pairs[k]);
        meeting_close(&pairs[k].m);
    }
    meeting_open(&m, 4, 3);
    with_threads(4, NULL, refuses, &m);
    with_threads(3, NULL, refuses_more, &m);
    meeting_close(&m);
    return tac_check_summary();
}
