/* tacit/page.h: what HTML pages of results have in common: one style sheet, and
 * numbers with units. Plots are tacit/svg.h's. Thread-safe. */
#ifndef TACIT_PAGE_H
#define TACIT_PAGE_H

#include <stdio.h>

#include "tacit/export.h"

TAC_BEGIN_DECLS

/* CSS for light and dark, telephones and paper: dl.facts, .panels of inline
 * plots, ul.legend, .box around wide tables, .warn, .note. Static. */
TAC_API const char *tac_page_style(void);
/* Its first part: the variables alone. */
TAC_API const char *tac_page_colours(void);

/* Each returns buf, or "-" for what is not finite. */
enum { TAC_PAGE_TEXT = 48 };
TAC_API const char *tac_page_bytes(double v,
                                   char buf[TAC_PAGE_TEXT]); /* "1.64 MB" */
TAC_API const char *tac_page_seconds(double v,
                                     char buf[TAC_PAGE_TEXT]); /* "3.2 ms" */
TAC_API const char *tac_page_share(double v,
                                   char buf[TAC_PAGE_TEXT]); /* "89.12 %" */
TAC_API const char *tac_page_count(double v,
                                   char buf[TAC_PAGE_TEXT]); /* "421,642" */

/* printf, with what HTML would read as markup replaced. */
TAC_API void tac_page_print(FILE *f, const char *format, ...) TAC_PRINTF(2, 3);

TAC_END_DECLS

#endif
