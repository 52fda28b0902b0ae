/* emulated_net.c: the links of virtual hosts (the model: emulate.h).
 *
 * A link is two times, in memory of rank 0 that all ranks see: until when its
 * outgoing and its incoming queue are taken. Whoever sends a piece moves both
 * on with a compare-and-swap, so links need no process of their own. */
#include <stdlib.h>

#include "transports/emulate.h"

#define FRAME_BYTES 1514u
#define FRAME_LOAD  1448u

typedef struct link {
    _Alignas(64) _Atomic uint64_t out_free, in_free;
} link;

struct tac__net {
    tac__emulate what;
    int place;
    _Atomic int refs;
    tac__regions regions;
    link *links; /* [hosts] */
};

tac_status tac__net_open(tac__boot *b, const tac__emulate *want, tac__net **out)
{
    tac_status s = TAC_OK;
    tac__net *n = calloc(1, sizeof *n);
    if (!n) s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a network");
    if (b->hosts > 1)
        s = tac__boot_note(b, TAC_ERR_UNSUPPORTED,
                           "an emulated network needs all ranks on one "
                           "machine; they are on %d",
                           b->hosts);
    s = tac__boot_agree(b, s);
    if (s == TAC_OK)
        s = tac__regions_share(b, b->processes == 1,
                               (size_t)want->hosts * sizeof(link), &n->regions);
    if (s < 0) {
        free(n);
        return s;
    }
    n->what = *want;
    n->place = (int)((int64_t)b->rank * want->hosts / b->size);
    n->links = (link *)(void *)n->regions.base[0];
    atomic_init(&n->refs, 1);
    *out = n;
    return TAC_OK;
}

tac__net *tac__net_retain(tac__net *n)
{
    atomic_fetch_add(&n->refs, 1);
    return n;
}

void tac__net_release(tac__net *n)
{
    if (!n || atomic_fetch_sub(&n->refs, 1) != 1) return;
    tac__regions_release(&n->regions);
    free(n);
}

int tac__net_place(const tac__net *n)
{
    return n->place;
}

const tac__emulate *tac__net_what(const tac__net *n)
{
    return &n->what;
}

size_t tac__net_wire_bytes(size_t bytes)
{
    const size_t frames = (bytes + FRAME_LOAD - 1) / FRAME_LOAD;
    return bytes + (frames ? frames : 1) * (FRAME_BYTES - FRAME_LOAD);
}

/* Occupies a queue for `ns`, from `from` on at the earliest: since when. */
static uint64_t occupy(_Atomic uint64_t *free, uint64_t from, uint64_t ns)
{
    uint64_t taken = atomic_load(free), start;
    do {
        start = taken > from ? taken : from;
    } while (!atomic_compare_exchange_weak(free, &taken, start + ns));
    return start;
}

uint64_t tac__net_carry(tac__net *n, int from, int to, size_t bytes,
                        uint64_t ready, uint64_t *sent)
{
    *sent = ready;
    if (n->what.rate <= 0) return ready + n->what.delay_ns;
    const size_t wire = tac__net_wire_bytes(bytes);
    const size_t first = wire < FRAME_BYTES ? wire : FRAME_BYTES;
    const uint64_t ns = (uint64_t)((double)wire / n->what.rate * 1e9 + 0.5);
    const uint64_t hop = (uint64_t)((double)first / n->what.rate * 1e9 + 0.5);
    const uint64_t out = occupy(&n->links[from].out_free, ready, ns);
    const uint64_t in = occupy(&n->links[to].in_free, out + hop, ns);
    *sent = out + ns;
    return in + ns + n->what.delay_ns;
}
