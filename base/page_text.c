/* page_text.c: numbers with units, and text that HTML may not read as markup.
 */
#include "tacit/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tacit/svg.h"

const char *tac_page_bytes(double v, char buf[TAC_PAGE_TEXT])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int u = 0;
    if (!isfinite(v)) return "-";
    for (; v >= 999.5 && u < 4; u++) v /= 1000;
    snprintf(buf, TAC_PAGE_TEXT, "%.3g %s", v, units[u]);
    return buf;
}

const char *tac_page_seconds(double v, char buf[TAC_PAGE_TEXT])
{
    if (!isfinite(v)) return "-";
    if (v >= 999.5)
        snprintf(buf, TAC_PAGE_TEXT, "%.0f s", v);
    else if (v >= 1 || v <= 0)
        snprintf(buf, TAC_PAGE_TEXT, "%.3g s", v);
    else if (v >= 1e-3)
        snprintf(buf, TAC_PAGE_TEXT, "%.3g ms", v * 1e3);
    else
        snprintf(buf, TAC_PAGE_TEXT, "%.3g \xc2\xb5s", v * 1e6);
    return buf;
}

const char *tac_page_share(double v, char buf[TAC_PAGE_TEXT])
{
    if (!isfinite(v)) return "-";
    snprintf(buf, TAC_PAGE_TEXT, "%.2f %%", 100 * v);
    return buf;
}

const char *tac_page_count(double v, char buf[TAC_PAGE_TEXT])
{
    char digits[TAC_PAGE_TEXT];
    size_t n, k = 0;

    if (!isfinite(v) || fabs(v) > 1e18) return "-";
    n = (size_t)snprintf(digits, sizeof digits, "%.0f", v);
    for (size_t i = 0; i < n; i++) {
        const size_t left = n - i;
        if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') buf[k++] = ',';
        buf[k++] = digits[i];
    }
    buf[k] = '\0';
    return buf;
}

void tac_page_print(FILE *f, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) return; /* the file then has an error, too, or nearly so */
    tac_svg_text(f, text);
    free(text);
}
