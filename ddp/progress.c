/* The progress bar: one carriage return and one erase code, no library. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tacit/clock.h"

enum { BAR_WIDTH = 20 };
static const double bar_seconds = 0.2, line_seconds = 10.0;

/* A terminal that knows how to erase a line. */
static int is_screen(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb");
}

static size_t screen_width(void)
{
    struct winsize w;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0) return 80;
    return w.ws_col;
}

void tac__progress_begin(tac__progress *p, int enabled, int64_t steps,
                         int64_t epoch_steps)
{
    memset(p, 0, sizeof *p);
    p->enabled = enabled;
    p->tty = is_screen();
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

    *bar++ = '[';
    for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < full ? '#' : '.';
    memcpy(bar + BAR_WIDTH, "] ", 3);
}

static size_t format_figures(const tac__progress *p,
                             const tac__progress_sample *s, double now,
                             char *text, size_t bytes)
{
    const double share = (double)s->step / (double)p->steps;
    const double left =
        s->step > 0 ? (now - p->begin_s) * (1 / share - 1) : 0.0;
    char eta[48], bar[BAR_WIDTH + 4] = "", scaling[64] = "", syncs[32] = "";

    format_eta(eta, sizeof eta, left);
    if (p->tty) draw_bar(bar, share);
    if (s->scaled)
        snprintf(scaling, sizeof scaling, "  scale %.10g  skipped %" PRIu64,
                 s->loss_scale, s->skipped);
    if (s->local) snprintf(syncs, sizeof syncs, "  syncs %" PRIu64, s->syncs);
    const int n =
        snprintf(text, bytes,
                 "%sstep %" PRId64 "/%" PRId64
                 "  eta %s  loss %.4f  acc %.1f %%  %.0f img/s  "
                 "comm %.0f %%  lr %.2e%s%s",
                 bar, s->step, p->steps, eta, s->loss, 100 * s->accuracy,
                 s->samples_per_s, 100 * s->comm_share, s->lr, syncs, scaling);

    return n < 0 ? 0 : (size_t)n < bytes ? (size_t)n : bytes - 1;
}

static void print_line(tac__progress *p, const tac__progress_sample *s,
                       double now)
{
    char figures[260], line[300];
    size_t width = format_figures(p, s, now, figures, sizeof figures);

    if (p->tty && width >= screen_width()) width = screen_width() - 1;
    const int n = snprintf(line, sizeof line, "%s%.*s%s", p->tty ? "\r" : "",
                           (int)width, figures, p->tty ? "\033[K" : "\n");
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) >= 0) p->drawn = p->tty;
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
