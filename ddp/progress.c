/* The progress bar: one carriage return and one erase code, no library. */
#include "progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tacit/clock.h"
#include "tacit/export.h"

enum { BAR_WIDTH = 20, NARROW = 70 }; /* narrower: no bar */
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

void tac__progress_begin(tac__progress *p, int enabled, int64_t first_step,
                         int64_t steps)
{
    memset(p, 0, sizeof *p);
    p->enabled = enabled;
    p->tty = is_screen();
    p->steps = steps > 0 ? steps : 1;
    p->first_step = first_step;
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

/* A line of figures that ends where the screen does: a figure that does not
 * fit as a whole is left out, and so are those behind it, which matter less. */
typedef struct figures {
    char text[300];
    size_t n, room;
    int full;
} figures;

static void add(figures *f, const char *format, ...) TAC_PRINTF(2, 3);
static void add(figures *f, const char *format, ...)
{
    char one[80];
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(one, sizeof one, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof one || f->n + (size_t)n > f->room)
        f->full = 1;
    if (f->full) return;
    memcpy(f->text + f->n, one, (size_t)n);
    f->n += (size_t)n;
}

static double seconds_left(const tac__progress *p, int64_t step, double now)
{
    const double done = (double)(step - p->first_step);

    return done > 0 ? (now - p->begin_s) * (double)(p->steps - step) / done
                    : 0.0;
}

static void format_figures(const tac__progress *p,
                           const tac__progress_sample *s, double now,
                           figures *f)
{
    char eta[48], bar[BAR_WIDTH + 4];

    format_eta(eta, sizeof eta, seconds_left(p, s->step, now));
    draw_bar(bar, (double)s->step / (double)p->steps);
    if (p->tty && f->room >= NARROW) add(f, "%s", bar);
    add(f, "step %" PRId64 "/%" PRId64, s->step, p->steps);
    add(f, "  eta %s", eta);
    add(f, "  loss %.4f", s->loss);
    add(f, "  acc %.1f %%", 100 * s->accuracy);
    if (s->scaled && s->skipped) add(f, "  skipped %" PRIu64, s->skipped);
    add(f, "  %.0f img/s", s->samples_per_s);
    add(f, "  comm %.0f %%", 100 * s->comm_share);
    add(f, "  lr %.2e", s->lr);
    if (s->local) add(f, "  syncs %" PRIu64, s->syncs);
    if (s->scaled) add(f, "  scale %.10g", s->loss_scale);
}

static void print_line(tac__progress *p, const tac__progress_sample *s,
                       double now)
{
    figures f = {.n = 0};
    char line[320];

    f.room = p->tty ? screen_width() - 1 : sizeof f.text - 1;
    if (f.room > sizeof f.text - 1) f.room = sizeof f.text - 1;
    format_figures(p, s, now, &f);
    const int n = snprintf(line, sizeof line, "%s%.*s%s", p->tty ? "\r" : "",
                           (int)f.n, f.text, p->tty ? "\033[K" : "\n");
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
