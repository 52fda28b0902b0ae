/* The page as a whole: its parts in order, and a file that is there whole or
 * not at all. */
#include "report_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_page_impl.h"

static void write_head(const tac__report_page *p)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<title>",
          p->f);
    tac_page_print(p->f, "%s on %s", tac__report_string(p, "model"),
                   tac__report_string(p, "data"));
    fprintf(p->f,
            "</title>\n<style>\n%s"
            ".bar{display:flex;height:1.5rem;max-width:660px;margin:.6em 0;"
            "background:var(--tac-soft)}.bar span{display:block}"
            ".bar.thin{height:.55rem;margin-top:-.3em}"
            ".hid{background:repeating-linear-gradient(45deg,var(--tac-c1) 0 "
            "2px,var(--tac-paper) 2px 5px)}"
            ".swatch{display:inline-block;width:.8em;height:.8em;"
            "margin-right:.5em}summary{cursor:pointer}"
            "</style>\n</head>\n<body>\n",
            tac_page_style());
}

static tac_status write_page(const tac__report_page *p)
{
    write_head(p);
    tac__report_page_head(p);
    TAC_TRY(tac__report_page_curves(p));
    tac__report_page_tables(p);
    tac__report_page_settings(p);
    fprintf(p->f,
            "<p class=\"note\">Made by tacit %s from the files of this "
            "folder.</p>\n</body>\n</html>\n",
            TAC_VERSION_STRING);
    return TAC_OK;
}

static tac_status cannot_write(const tac__report_page *p)
{
    return tac_fail(p->ctx, TAC_ERR_IO,
                    "cannot write %s/report.html: %m; check the free space and "
                    "the permissions",
                    p->dir);
}

/* Into a file of another name, which then takes its place. */
static tac_status publish(tac__report_page *p, const char *path,
                          const char *temporary)
{
    tac_status s;

    p->f = fopen(temporary, "we");
    if (!p->f) return cannot_write(p);
    s = write_page(p);
    const int failed = ferror(p->f);
    if ((fclose(p->f) != 0 || failed) && s >= 0) s = cannot_write(p);
    if (s >= 0 && rename(temporary, path) != 0) s = cannot_write(p);
    if (s < 0) unlink(temporary);
    return s;
}

tac_status tac__report_page_write(tac_context *ctx, const char *run_dir)
{
    tac__report_page p = {.ctx = ctx, .dir = run_dir};
    char path[4096], temporary[4096];
    tac_status s = tac__report_page_read(&p);
    const int n = snprintf(path, sizeof path, "%s/report.html", run_dir);
    const int m =
        snprintf(temporary, sizeof temporary, "%s/report.html.tmp", run_dir);

    if (s >= 0 && !p.summary && p.n == 0)
        s = tac_fail(ctx, TAC_ERR_DATA,
                     "%s has neither summary.json nor metrics.jsonl: give a "
                     "run folder (ddp_train --run-dir)",
                     run_dir);
    if (s >= 0 && (n < 0 || m < 0 || (size_t)m >= sizeof temporary))
        s = tac_fail(ctx, TAC_ERR_ARG,
                     "the name of the run folder is too long");
    if (s >= 0) s = publish(&p, path, temporary);
    tac__report_page_free(&p);
    return s;
}
