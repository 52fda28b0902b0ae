/* tac_check.h: what a test with its own `main` needs (batteries, MPI programs).
 *
 * Every CHECK macro is an expression, 1 if it held and 0 if not, so a test can
 * stop where going on is pointless: `if (!CHECK_OK(s)) return;`. A failure
 * prints one line with place, expression and both values; the run goes on.
 * Counting is atomic: ranks may be threads. `main` ends with
 *
 *     return tac_check_summary();
 *
 * which prints "N passed, N failed" and returns 1 if any check failed or none
 * ran. Under mpirun each rank counts its own; mpirun fails if any rank does. */
#ifndef TAC_CHECK_H
#define TAC_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tacit/status.h"

enum { TAC_CHECK_MAX_LINES = 50, TAC_CHECK_SKIP_CODE = 77 };

typedef struct tac_check_counter {
    atomic_long passed, failed;
} tac_check_counter;

static tac_check_counter tac_check_count;

__attribute__((format(printf, 4, 5))) static inline int
tac_check_report(int ok, const char *file, int line, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (ok) {
        atomic_fetch_add(&tac_check_count.passed, 1);
        return 1;
    }
    const long before = atomic_fetch_add(&tac_check_count.failed, 1);
    if (before >= TAC_CHECK_MAX_LINES) return 0;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, "%s:%d: FAILED: %s\n", file, line, text);
    return 0;
}

static inline int tac_check_i64(long long a, long long b, const char *ta,
                                const char *tb, const char *file, int line)
{
    return tac_check_report(a == b, file, line, "%s == %s (%lld, %lld)", ta, tb,
                            a, b);
}

static inline int tac_check_u64(unsigned long long a, unsigned long long b,
                                const char *ta, const char *tb,
                                const char *file, int line)
{
    return tac_check_report(a == b, file, line, "%s == %s (0x%llx, 0x%llx)", ta,
                            tb, a, b);
}

static inline int tac_check_f64(double a, double b, const char *ta,
                                const char *tb, const char *file, int line)
{
    return tac_check_report(a == b, file, line, "%s == %s (%.17g, %.17g)", ta,
                            tb, a, b);
}

static inline int tac_check_near(double a, double b, double tolerance,
                                 const char *ta, const char *tb,
                                 const char *file, int line)
{
    const double d = fabs(a - b); /* a NaN is never near */
    return tac_check_report(d <= tolerance, file, line,
                            "%s near %s (%.9g, %.9g, off by %.3g, allowed "
                            "%.3g)",
                            ta, tb, a, b, d, tolerance);
}

static inline int tac_check_str(const char *a, const char *b, const char *ta,
                                const char *tb, const char *file, int line)
{
    const int ok = a && b ? strcmp(a, b) == 0 : a == b;
    return tac_check_report(ok, file, line, "%s == %s (\"%s\", \"%s\")", ta, tb,
                            a ? a : "(null)", b ? b : "(null)");
}

static inline int tac_check_mem(const void *a, const void *b, size_t bytes,
                                const char *ta, const char *tb,
                                const char *file, int line)
{
    const unsigned char *x = a, *y = b;
    /* One look at all of it, which sanitizers take at once. */
    size_t i = bytes > 0 && memcmp(a, b, bytes) == 0 ? bytes : 0;
    while (i < bytes && x[i] == y[i]) ++i;
    return tac_check_report(i == bytes, file, line,
                            "%s == %s, first difference at byte %zu of %zu", ta,
                            tb, i, bytes);
}

static inline int tac_check_status(tac_status got, tac_status want,
                                   const char *text, const char *file, int line)
{
    return tac_check_report(got == want, file, line, "%s returned %s, not %s",
                            text, tac_status_name(got), tac_status_name(want));
}

#define CHECK(cond) tac_check_report(!!(cond), __FILE__, __LINE__, "%s", #cond)
/* The same with a printf text instead of the expression's. */
#define CHECK_MSG(cond, ...) \
    tac_check_report(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_FAIL(...) tac_check_report(0, __FILE__, __LINE__, __VA_ARGS__)
/* Signed integers. */
#define CHECK_EQ(a, b) tac_check_i64((a), (b), #a, #b, __FILE__, __LINE__)
/* Unsigned integers and bit patterns; shown in hexadecimal. */
#define CHECK_EQ_U64(a, b) tac_check_u64((a), (b), #a, #b, __FILE__, __LINE__)
/* Floating point, exactly equal; NaN equals nothing. */
#define CHECK_EQ_F64(a, b) tac_check_f64((a), (b), #a, #b, __FILE__, __LINE__)
/* |a - b| <= tol. */
#define CHECK_NEAR(a, b, tol) \
    tac_check_near((a), (b), (tol), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_STR(a, b) tac_check_str((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_MEM(a, b, bytes) \
    tac_check_mem((a), (b), (bytes), #a, #b, __FILE__, __LINE__)
#define CHECK_OK(expr) \
    tac_check_status((expr), TAC_OK, #expr, __FILE__, __LINE__)
#define CHECK_STATUS(expr, want) \
    tac_check_status((expr), (want), #expr, __FILE__, __LINE__)

/* Checks that failed so far, to say which part of a battery did. */
static inline long tac_check_failed(void)
{
    return atomic_load(&tac_check_count.failed);
}

/* Prints the last line; the value to return from `main`. */
static inline int tac_check_summary(void)
{
    const long passed = atomic_load(&tac_check_count.passed);
    const long failed = atomic_load(&tac_check_count.failed);
    fflush(stderr);
    printf("%ld passed, %ld failed\n", passed, failed);
    fflush(stdout);
    return failed > 0 || passed == 0;
}

/* For a test that can't run here: says why; the value to return from `main`. */
static inline int tac_check_skip(const char *why)
{
    printf("skipped: %s\n", why);
    fflush(stdout);
    return TAC_CHECK_SKIP_CODE;
}

#endif
