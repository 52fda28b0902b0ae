/* domain_bell.c: telling all ranks of a domain that it is over, and bells. */
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "domain.h"

/* The text is written before the rank's number, so whoever reads the number
 * finds it. One thread of a rank wins `aborting`, one rank wins `aborted`. */
void tac__domain_abort(tac__domain *d, tac_status s, const char *text)
{
    tac__line *mine = d->line[d->rank];
    if (atomic_exchange(&d->aborting, 1)) return;
    mine->abort_status = s;
    snprintf(mine->abort_text, sizeof mine->abort_text, "%s", text);
    uint32_t nobody = 0;
    atomic_compare_exchange_strong(&d->line[0]->aborted, &nobody,
                                   (uint32_t)d->rank + 1);
    for (int r = 0; r < d->size; r++) tac__bell_ring(&d->line[r]->bell);
}

tac_status tac__domain_poll(const tac__domain *d, const char **text)
{
    const uint32_t who = atomic_load(&d->line[0]->aborted);
    if (who == 0 || who > (uint32_t)d->size) return TAC_OK;
    *text = d->line[who - 1]->abort_text;
    return (tac_status)d->line[who - 1]->abort_status;
}

void tac__bell_bump(tac__bell *bell)
{
    atomic_fetch_add(&bell->word, 1);
    if (atomic_load(&bell->sleepers) == 0) return;
    /* The word may be in shared memory: no FUTEX_PRIVATE_FLAG. */
    syscall(SYS_futex, (uint32_t *)&bell->word, FUTEX_WAKE, INT32_MAX, NULL,
            NULL, 0);
}

void tac__bell_ring(tac__bell *bell)
{
    if (atomic_load(&bell->sleepers) > 0) tac__bell_bump(bell);
}

void tac__bell_sleep(tac__bell *bell, uint32_t word, uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000u),
                               (long)(ns % 1000000000u)};
    syscall(SYS_futex, (uint32_t *)&bell->word, FUTEX_WAIT, word, &t, NULL, 0);
}
