/* clock.c: time. */
#include "tacit/clock.h"

#include <time.h>

static double read_s(clockid_t id)
{
    struct timespec t = {0, 0};
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t tac_clock_ns(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

double tac_clock_s(void)
{
    return read_s(CLOCK_MONOTONIC);
}

double tac_clock_thread_cpu_s(void)
{
    return read_s(CLOCK_THREAD_CPUTIME_ID);
}

double tac_clock_process_cpu_s(void)
{
    return read_s(CLOCK_PROCESS_CPUTIME_ID);
}

void tac_clock_sleep_ns(uint64_t ns)
{
    struct timespec t;
    t.tv_sec = (time_t)(ns / 1000000000u);
    t.tv_nsec = (long)(ns % 1000000000u);
    nanosleep(&t, NULL);
}
