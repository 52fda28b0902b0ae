/* domain_bell.c: telling all ranks of a domain that it is over, and bells. */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "domain.h"

#define FALLBACK_NS UINT64_C(100000)

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

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* As in linux/futex.h of 5.16 and later. */
typedef struct wait_on {
    uint64_t value, address;
    uint32_t flags, reserved;
} wait_on;

#define WORD_OF_32_BITS 2u

/* 0: the kernel has no such call. */
static int wait_for_any(tac__bell *const *bell, const uint32_t *word, int n,
                        uint64_t ns)
{
    wait_on w[TAC__BELLS];
    struct timespec until;
    for (int i = 0; i < n; i++)
        w[i] = (wait_on){word[i], (uint64_t)(uintptr_t)&bell[i]->word,
                         WORD_OF_32_BITS, 0};
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    const long rc = syscall(SYS_futex_waitv, w, n, 0u, &until, CLOCK_MONOTONIC);
    return rc >= 0 || (errno != ENOSYS && errno != EPERM);
}

void tac__bells_sleep(tac__bell *const *bell, const uint32_t *word, int n,
                      uint64_t ns)
{
    if (n > 1 && wait_for_any(bell, word, n, ns)) return;
    if (n > 1 && ns > FALLBACK_NS) ns = FALLBACK_NS;
    tac__bell_sleep(bell[0], word[0], ns);
}
