/* domain.c: phases of a shared-memory domain. The protocol is in domain.h.
 *
 * Cost: a publication is one store and p loads; a wake-up one system call for
 * each sleeper. */
#include "domain.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"
#include "transports/channel.h"

/* Of a slot, for each rank: room for a block of any wire format. */
#define LEAST_SLOT_A_RANK ((size_t)2176)

static size_t line_bytes(void)
{
    return (sizeof(tac__line) + 4095u) & ~(size_t)4095u;
}

static size_t slot_bytes(size_t staging_bytes, int size)
{
    const size_t least = LEAST_SLOT_A_RANK * (size_t)size;
    const size_t slot = (staging_bytes / TAC__SLOTS) & ~(size_t)63u;
    return slot > least ? slot : least;
}

/* The cores that a process may use, as bits. */
typedef struct cores {
    uint64_t word[16];
} cores;

static cores own_cores(const tac_context *ctx)
{
    cores c = {{0}};
    if (sched_getaffinity(0, sizeof c, (cpu_set_t *)(void *)&c) >= 0) return c;
    for (int i = 0; i < tac_context_cpus(ctx) && i < 1024; i++)
        c.word[i / 64] |= UINT64_C(1) << i % 64;
    return c;
}

/* Has every rank a core? The same answer on all ranks. */
static tac_status find_crowded(tac__boot *b, int *crowded)
{
    const cores mine = own_cores(b->ctx);
    cores *all = calloc((size_t)b->size, sizeof *all);
    int n = 0;
    tac_status s = all ? TAC_OK : tac__boot_note(b, TAC_ERR_NOMEM, "no memory");
    s = tac__boot_agree(b, s);
    if (s == TAC_OK) s = tac__boot_exchange(b, &mine, all, sizeof mine);
    for (int i = 0; i < 16 && s == TAC_OK; i++) {
        uint64_t any = 0;
        for (int r = 0; r < b->size; r++) any |= all[r].word[i];
        n += __builtin_popcountll(any);
    }
    *crowded = b->size > n;
    free(all);
    return s;
}

size_t tac__domain_bytes(size_t staging_bytes, int size)
{
    const size_t bytes = line_bytes() +
                         TAC__SLOTS * slot_bytes(staging_bytes, size) +
                         tac__channels_bytes(size);
    return (bytes + 4095u) & ~(size_t)4095u;
}

tac_status tac__domain_open(tac__boot *b, int threads, size_t staging_bytes,
                            tac__domain **out)
{
    tac_status s = TAC_OK;
    tac__domain *d = calloc(1, sizeof *d);
    tac__line **line = calloc((size_t)b->size, sizeof *line);
    void **dsts = calloc((size_t)b->size, sizeof *dsts);
    tac__channels *channels = tac__channels_new(b->rank, b->size);
    if (!d || !line || !dsts || !channels)
        s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a domain");
    s = tac__boot_agree(b, s);
    if (s < 0) goto fail_alloc;
    s = find_crowded(b, &d->crowded);
    if (s < 0) goto fail_alloc;
    const size_t slot = slot_bytes(staging_bytes, b->size);
    const size_t rings_at = line_bytes() + TAC__SLOTS * slot;
    s = tac__regions_share(b, threads, rings_at + tac__channels_bytes(b->size),
                           &d->regions);
    if (s < 0) goto fail_alloc;
    for (int r = 0; r < b->size; r++)
        line[r] = (tac__line *)(void *)d->regions.base[r];
    d->rank = b->rank;
    d->size = b->size;
    d->line = line;
    d->dsts = dsts;
    d->slot_bytes = slot;
    d->channels = channels;
    tac__channels_attach(channels, d, rings_at);
    *out = d;
    return TAC_OK;

fail_alloc:
    tac__channels_free(channels);
    free(dsts);
    free(line);
    free(d);
    return s;
}

static void wait_for_borrowers(const tac__domain *d)
{
    if (d->regions.kind != TAC__REGION_PRIVATE) return;
    for (int r = 0; r < d->size; r++)
        while (atomic_load(&d->line[r]->borrows)) sched_yield();
}

/* Either a borrower sees that this rank has left, or this rank sees it. */
int tac__domain_borrow(tac__domain *d)
{
    if (d->regions.kind != TAC__REGION_PRIVATE) return 1;
    atomic_store(&d->line[d->rank]->borrows, 1);
    for (int r = 0; r < d->size; r++)
        if (atomic_load(&d->line[r]->left)) {
            tac__domain_give_back(d);
            return 0;
        }
    return 1;
}

void tac__domain_give_back(tac__domain *d)
{
    atomic_store(&d->line[d->rank]->borrows, 0);
}

void tac__domain_close(tac__domain *d)
{
    if (!d) return;
    atomic_store(&d->line[d->rank]->left, 1);
    for (int r = 0; r < d->size; r++)
        if (r != d->rank) tac__bell_ring(&d->line[r]->bell);
    wait_for_borrowers(d);
    tac__regions_release(&d->regions);
    tac__channels_free(d->channels);
    free(d->dsts);
    free(d->line);
    free(d);
}

char *tac__domain_slot(const tac__domain *d, int r, uint64_t step)
{
    return d->regions.base[r] + line_bytes() +
           step % TAC__SLOTS * d->slot_bytes;
}

/* Looks further along the ranks, as far as they have arrived. */
static int all_arrived(tac__domain *d)
{
    for (; d->next < d->size; d->next++) {
        tac__line *l = d->line[d->next];
        if (atomic_load(&l->phase) < d->phase) return 0;
        const uint64_t at =
            atomic_load_explicit(&l->at[d->phase & 1u], memory_order_relaxed);
        if (at > d->latest_ns) d->latest_ns = at;
    }
    return 1;
}

void tac__domain_publish(tac__domain *d)
{
    tac__line *mine = d->line[d->rank];
    d->phase++;
    d->next = 0;
    d->latest_ns = 0;
    atomic_store_explicit(&mine->at[d->phase & 1u], tac_clock_ns(),
                          memory_order_relaxed);
    atomic_store(&mine->phase, d->phase);
    if (!all_arrived(d)) return;
    for (int r = 0; r < d->size; r++)
        if (r != d->rank) tac__bell_ring(&d->line[r]->bell);
}

int tac__domain_arrived(tac__domain *d, uint64_t *wait_ns)
{
    if (!all_arrived(d)) return 0;
    const uint64_t mine = atomic_load_explicit(
        &d->line[d->rank]->at[d->phase & 1u], memory_order_relaxed);
    if (d->latest_ns > mine) *wait_ns += d->latest_ns - mine;
    return 1;
}

int tac__domain_has(const tac__domain *d, int r)
{
    return atomic_load(&d->line[r]->phase) >= d->phase;
}
