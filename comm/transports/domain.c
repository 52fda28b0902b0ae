/* domain.c: phases of a shared-memory domain. The protocol is in domain.h.
 *
 * Cost: a publication is one store and p loads; a wake-up one system call for
 * each sleeper. */
#include "domain.h"

#include <stdlib.h>
#include <string.h>

#include "tacit/clock.h"

static size_t line_bytes(void)
{
    return (sizeof(tac__line) + 4095u) & ~(size_t)4095u;
}

tac_status tac__domain_open(tac__boot *b, int threads, size_t staging_bytes,
                            tac__domain **out)
{
    tac_status s = TAC_OK;
    tac__domain *d = calloc(1, sizeof *d);
    tac__line **line = calloc((size_t)b->size, sizeof *line);
    if (!d || !line)
        s = tac__boot_note(b, TAC_ERR_NOMEM, "no memory for a domain");
    s = tac__boot_agree(b, s);
    if (s < 0) goto fail_alloc;
    const size_t slot = (staging_bytes / 2) & ~(size_t)63u;
    s = tac__regions_share(b, threads, line_bytes() + 2 * slot, &d->regions);
    if (s < 0) goto fail_alloc;
    for (int r = 0; r < b->size; r++)
        line[r] = (tac__line *)(void *)d->regions.base[r];
    d->rank = b->rank;
    d->size = b->size;
    d->line = line;
    d->slot_bytes = slot;
    *out = d;
    return TAC_OK;

fail_alloc:
    free(line);
    free(d);
    return s;
}

void tac__domain_close(tac__domain *d)
{
    if (!d) return;
    atomic_store(&d->line[d->rank]->left, 1);
    for (int r = 0; r < d->size; r++)
        if (r != d->rank) tac__bell_ring(&d->line[r]->bell);
    tac__regions_release(&d->regions);
    free(d->line);
    free(d);
}

char *tac__domain_slot(const tac__domain *d, int r)
{
    return d->regions.base[r] + line_bytes() + (d->step & 1u) * d->slot_bytes;
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
