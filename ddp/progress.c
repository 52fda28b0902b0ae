/* The progress bar: one carriage return and one erase code, no library. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tacit/clock.h"

enum { BAR_WIDTH = 20 };
static const double bar_seconds = 0.2, line_seconds = 10.0;

void tac__progress_begin(tac__progress *p, int enabled, int64_t steps,
                         int64_t epoch_steps)
{
    memset(p, 0, sizeof *p);
    p->enabled = enabled;
    p->tty = isatty(STDERR_FILENO);
    p->steps = steps > 0 ? steps : 1;
    p->epoch_steps = epoch_steps;
    p->begin_s = p->shown_s = tac_clock_s();
}

static void format_eta(char *text, size_t bytes, double seconds)
{
    const int64_t s = (int64_t)(seconds + 0.5);

    if (s < 60)
        snprintf(text, bytes, "%" PRId64 " s", s);
    else if (s < 3600)
        snprintf(text, bytes, "%" PRId64 " min %02" PRId64 " s", s / 60,
                 s % 60);
    else
        snprintf(text, bytes, "%" PRId64 " h %02" PRId64 " min", s / 3600,
                 s % 3600 / 60);
}

static void draw_bar(char *bar, double share)
{
    const int full = (int)(share * BAR_WIDTH);

    for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
}

static void print_line(tac__progress *p, const tac__progress_sample *s,
                       double now)
{
    const double share = (double)s->step / (double)p->steps;
    const double left =
        s->step > 0 ? (now - p->begin_s) * (1 / share - 1) : 0.0;
    char eta[48], bar[BAR_WIDTH + 1], line[256];
    int n;

    format_eta(eta, sizeof eta, left);
    draw_bar(bar, share);
    n = snprintf(line, sizeof line,
                 "%s%s%s step %" PRId64 "/%" PRId64
                 "  loss %.4f  acc %.1f %%  lr %.2e  %.0f img/s  "
                 "comm %.0f %%  eta %s%s",
                 p->tty ? "\r" : "", p->tty ? bar : "", p->tty ? "\033[K" : "",
                 s->step, p->steps, s->loss, 100 * s->accuracy, s->lr,
                 s->samples_per_s, 100 * s->comm_share, eta,
                 p->tty ? "" : "\n");
    if (n > 0 && (size_t)n < sizeof line &&
        write(STDERR_FILENO, line, (size_t)n) >= 0)
        p->drawn = p->tty;
}

void tac__progress_show(tac__progress *p, const tac__progress_sample *s)
{
    const double now = tac_clock_s();

    if (!p->enabled) return;
    if (now - p->shown_s < (p->tty ? bar_seconds : line_seconds)) return;
    p->shown_s = now;
    print_line(p, s, now);
}

void tac__progress_clear(tac__progress *p)
{
    static const char erase[] = "\r\033[K";

    if (!p->drawn) return;
    if (write(STDERR_FILENO, erase, sizeof erase - 1) >= 0) p->drawn = 0;
}
