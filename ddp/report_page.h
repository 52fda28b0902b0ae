/* report.html: what a run was and how it went, as one page that needs nothing
 * from outside; made from the files of a run folder alone.
 *
 *   summary.json, config.ini, metrics.jsonl -> read -> head, curves, tables
 */
#ifndef TAC_DDP_REPORT_PAGE_H
#define TAC_DDP_REPORT_PAGE_H

#include "tacit/context.h"

/* Writes <run_dir>/report.html, whole or not at all. What is missing in the
 * folder is missing on the page, which says so; a file that is not what its
 * name says is DATA, naming it. Errors: IO, DATA, NOMEM. */
tac_status tac__report_page_write(tac_context *ctx, const char *run_dir);

#endif
