/* tac_sanitized.h: what a test does less of under sanitizers, and how it keeps
 * ThreadSanitizer from looking at every element of arrays that it alone uses.
 *
 * TESTS_SLOW is 1 under any sanitizer, TESTS_TSAN under ThreadSanitizer: for
 * the number of repetitions, never for what is covered.
 *
 * An UNWATCHED function is not instrumented: it computes what is to be
 * expected, fills or compares, many times faster. Its arguments that other
 * ranks see are shown to ThreadSanitizer by the caller, the whole range at
 * once: watch_write before they are handed over, watch_read after they came
 * back. So races on them are found as ever. */
#ifndef TAC_SANITIZED_H
#define TAC_SANITIZED_H

#include <stddef.h>

#if defined(__SANITIZE_THREAD__)
#define TESTS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TESTS_TSAN 1
#endif
#endif
#ifndef TESTS_TSAN
#define TESTS_TSAN 0
#endif

#if TESTS_TSAN || defined(__SANITIZE_ADDRESS__)
#define TESTS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TESTS_SLOW 1
#endif
#endif
#ifndef TESTS_SLOW
#define TESTS_SLOW 0
#endif

#if TESTS_TSAN
void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes);
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define UNWATCHED
#endif

static inline void watch_read(const void *at, size_t bytes)
{
#if TESTS_TSAN
    if (bytes > 0) __tsan_read_range((void *)(unsigned long)at, bytes);
#else
    (void)at, (void)bytes;
#endif
}

static inline void watch_write(void *at, size_t bytes)
{
#if TESTS_TSAN
    if (bytes > 0) __tsan_write_range(at, bytes);
#else
    (void)at, (void)bytes;
#endif
}

#endif
