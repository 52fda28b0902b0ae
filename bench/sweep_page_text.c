/* sweep_page_text.c: numbers with units, and what stands around them. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sweep_page.h"

/* ---- numbers ---------------------------------------------------------------
 */

const char *tac__sweep_share_mean(const sweep_mean *m, char buf[SWEEP_TEXT])
{
    if (m->n == 0) return "-";
    if (m->n == 1) return tac_page_share(m->mean, buf);
    snprintf(buf, SWEEP_TEXT, "%.2f \xc2\xb1 %.2f %%", 100 * m->mean,
             100 * m->sd);
    return buf;
}

const char *tac__sweep_points(double v, char buf[SWEEP_TEXT])
{
    if (!isfinite(v)) return "-";
    snprintf(buf, SWEEP_TEXT, "%s%.2f points", v < 0 ? "\xe2\x88\x92" : "+",
             100 * fabs(v));
    return buf;
}

static const char *bits_text(double v, char buf[SWEEP_TEXT])
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s",
                                        "Tbit/s"};
    int u = 0;
    for (; v >= 1000 && u < 4; u++) v /= 1000;
    snprintf(buf, SWEEP_TEXT, "%.4g %s", v, units[u]);
    return buf;
}

const char *tac__sweep_link(const tac_sim_network *net, char buf[SWEEP_TEXT])
{
    char bits[SWEEP_TEXT], latency[SWEEP_TEXT];
    snprintf(buf, SWEEP_TEXT, "%.20s, %.20s",
             bits_text(fmin(net->up_bits, net->down_bits), bits),
             tac_page_seconds(net->latency_s, latency));
    return buf;
}

/* ---- HTML ------------------------------------------------------------------
 */

void tac__page_text(sweep_page *p, const char *text)
{
    tac_svg_text(p->f, text ? text : "");
}

void tac__page_html(sweep_page *p, const char *html)
{
    fputs(html, p->f);
}

void tac__page_print(sweep_page *p, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) return; /* the file then has an error, too, or nearly so */
    tac__page_text(p, text);
    free(text);
}

void tac__page_figure(sweep_page *p, const char *id, const char *heading,
                      const char *explanation)
{
    fprintf(p->f, "<figure id=\"%s\"><figcaption><h3>%s</h3><p>", id, heading);
    tac__page_text(p, explanation);
    fputs("</p></figcaption>\n<div class=\"panels\">\n", p->f);
}

void tac__page_figure_end(sweep_page *p)
{
    fputs("</div></figure>\n", p->f);
}
