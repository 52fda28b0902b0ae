/* tacit/clock.h: monotonic time and thread CPU time. Thread-safe. */
#ifndef TACIT_CLOCK_H
#define TACIT_CLOCK_H

#include <stdint.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

/* CLOCK_MONOTONIC in nanoseconds: the same origin for all processes of a
 * host. */
TAC_API uint64_t tac_clock_ns(void);
/* Seconds, for differences. */
TAC_API double tac_clock_s(void);
/* CPU time of the calling thread, in seconds. */
TAC_API double tac_clock_thread_cpu_s(void);
/* CPU time of the process (all threads), in seconds. */
TAC_API double tac_clock_process_cpu_s(void);
/* Sleeps at least `ns`; returns early on a signal. */
TAC_API void tac_clock_sleep_ns(uint64_t ns);

TAC_END_DECLS

#endif
