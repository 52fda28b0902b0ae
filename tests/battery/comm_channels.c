/* comm_channels.c: messages through the rings of a shared-memory domain, used
 * as a transport: any number under way, all sizes around the rings', both
 * channels, to oneself, in any order of testing; sizes that differ; messages
 * given up. Every byte is a function of (from, to, channel, number, index). */
#include "comm_suite.h"
#include "comm_fork.h"

enum { BATCH = 24 };

static board *the_board;

static unsigned char byte_at(uint64_t key, size_t i)
{
    return (unsigned char)(mix(key + i / 8) >> (8 * (i % 8)));
}

static uint64_t key_of(int from, int to, int channel, uint64_t n)
{
    return mix((uint64_t)(from * 64 + to) * 2 + (uint64_t)channel) ^ (n << 32);
}

/* Known to both ends: mostly small, some longer than any ring. */
static size_t size_of(uint64_t key)
{
    static const size_t edge[] = {0,    1,    15,   16,     17,    4079,
                                  4080, 4096, 4097, 262144, 700001};
    const uint64_t h = mix(key ^ 77);
    if (h % 4 == 0) return edge[(h >> 8) % (TESTS_SLOW ? 9 : 11)];
    return (size_t)((h >> 8) % 3000);
}

typedef struct flight {
    void *op;
    unsigned char *buf;
    size_t bytes;
    uint64_t key;
    int receives;
} flight;

static flight *open_flight(tac_comm *c, flight *f, int peer, int channel,
                           uint64_t n, int receives)
{
    const int from = receives ? peer : c->rank, to = receives ? c->rank : peer;
    const uint64_t key = key_of(from, to, channel, n);
    *f = (flight){.key = key, .bytes = size_of(key), .receives = receives};
    f->buf = malloc(f->bytes + GUARD);
    if (!f->buf) abort();
    memset(f->buf, POISON, f->bytes + GUARD);
    for (size_t i = 0; i < f->bytes && !receives; i++)
        f->buf[i] = byte_at(key, i);
    CHECK_OK(receives ? c->transport->irecv(c->link, peer, channel, f->buf,
                                            f->bytes, &f->op)
                      : c->transport->isend(c->link, peer, channel, f->buf,
                                            f->bytes, &f->op));
    return f;
}

static void close_flight(const flight *f)
{
    size_t bad = 0;
    for (size_t i = 0; i < f->bytes && f->receives; i++)
        bad += f->buf[i] != byte_at(f->key, i);
    CHECK_MSG(bad == 0, "%zu of %zu bytes are wrong", bad, f->bytes);
    CHECK(guarded((char *)f->buf, f->bytes));
    free(f->buf);
}

/* One message of each kind to and from every rank a turn, tested in an order
 * of its own, until nothing is left. */
static void exchange(tac_comm *c, uint64_t *number, uint64_t seed)
{
    const int p = c->size, n = BATCH * 2 * p;
    flight *all = calloc((size_t)n, sizeof *all);
    int open = 0, made = 0;
    if (!all) abort();
    for (int k = 0; k < BATCH; k++, ++*number)
        for (int i = 0; i < p; i++) {
            const int peer = (c->rank + i) % p, ch = (k + peer + c->rank) % 2;
            const int first = (int)(mix(seed + (uint64_t)made) % 2);
            open_flight(c, &all[made++], peer, ch, *number, first);
            open_flight(c, &all[made++], peer, ch, *number, !first);
        }
    for (open = n; open > 0; sched_yield())
        for (int i = 0, at = (int)(mix(seed++) % (uint64_t)n); i < n; i++) {
            flight *f = &all[(at + i) % n];
            if (!f->buf) continue;
            const tac_status s = c->transport->test(c->link, &f->op);
            if (s == TAC_INPROGRESS) continue;
            CHECK_OK(s);
            CHECK(f->op == NULL);
            close_flight(f);
            f->buf = NULL;
            open--;
        }
    free(all);
}

static void exchanges(tac_comm *c, void *arg)
{
    uint64_t number = 0;
    (void)arg;
    for (uint64_t k = 0; k < (TESTS_SLOW ? 2 : 5); k++)
        exchange(c, &number, k * 1000 + (uint64_t)c->rank);
}

/* Another size: the receiver finds out, both are told, with the numbers. */
static void sizes_differ(tac_comm *c, void *arg)
{
    char buf[64] = {0};
    const char *text = "";
    void *op = NULL;
    tac_status told = TAC_OK;
    (void)arg;
    if (c->rank == 0)
        CHECK_OK(c->transport->isend(c->link, 1, 0, buf, 40, &op));
    else
        CHECK_OK(c->transport->irecv(c->link, 0, 0, buf, 41, &op));
    for (int i = 0; i < 5000 && told == TAC_OK; i++) {
        if (op) (void)c->transport->test(c->link, &op);
        told = c->transport->poll(c->link, &text);
        tac_clock_sleep_ns(1000000u);
    }
    CHECK_STATUS(told, TAC_ERR_MISMATCH);
    CHECK_MSG(strstr(text, "from rank 0 to rank 1 has 40 bytes") &&
                  strstr(text, "expects 41"),
              "\"%s\"", text);
    if (op) c->transport->cancel(c->link, &op);
    CHECK(op == NULL);
}

/* Given up in any order, whatever has moved of them. */
static void given_up(tac_comm *c, void *arg)
{
    static const int order[] = {1, 3, 0, 2};
    enum { LONG = 1000000 };
    char *buf = calloc(4, LONG);
    void *op[8] = {0};
    const int peer = (c->rank + 1) % c->size;
    (void)arg;
    for (int i = 0; i < 4; i++) {
        CHECK_OK(c->transport->isend(c->link, peer, i % 2, buf, LONG, &op[i]));
        CHECK_OK(c->transport->irecv(c->link, c->rank, i % 2, buf + LONG, LONG,
                                     &op[4 + i]));
    }
    for (int i = 0; i < 8; i++) {
        void **o = &op[4 * (i / 4) + order[i % 4]];
        c->transport->cancel(c->link, o);
        CHECK(*o == NULL);
    }
    free(buf);
}

int main(void)
{
    static const int sizes[] = {2, 3, 8};
    tac_comm_config config = TAC_COMM_CONFIG_INIT;
    the_board = board_create();
    if (!CHECK(the_board != NULL)) return tac_check_summary();
    for (int i = 0; i < 3; i++) {
        with_threads(sizes[i], &config, exchanges, NULL);
        with_processes(sizes[i], &config, exchanges, NULL, the_board, NULL);
        printf("%d ranks: %ld failed so far\n", sizes[i], tac_check_failed());
    }
    with_threads(2, &config, sizes_differ, NULL);
    with_processes(2, &config, sizes_differ, NULL, the_board, NULL);
    with_threads(3, &config, given_up, NULL);
    return tac_check_summary();
}
