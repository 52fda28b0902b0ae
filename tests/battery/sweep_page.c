/* sweep_page.c: the page of a sweep that nobody ran: it is written whole, also
 * of a sweep without runs, with one seed, or with figures missing. With a
 * folder as argument the pages and their JSON stay there, for cli.sweep_page to
 * read. */
#include <stdio.h>
#include <unistd.h>

#include "sweep_page.h"
#include "sweep_synthetic.h"
#include "tac_check.h"

static const char *folder;

/* The file as text, to be freed; NULL: none. */
static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (!f) return NULL;
    if (getdelim(&text, &room, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

/* Models it, writes page and JSON, returns the page. */
static char *publish(synthetic *y, const char *name)
{
    char html[512], json[512], svg[512];
    snprintf(html, sizeof html, "%s/%s.html", folder, name);
    snprintf(json, sizeof json, "%s/%s.json", folder, name);
    snprintf(svg, sizeof svg, "%s/%s.svg", folder, name);
    if (!CHECK_OK(sweep_model(&y->s))) return NULL;
    if (!CHECK_OK(sweep_write_json(&y->s, json))) return NULL;
    if (!CHECK_OK(sweep_write_svg(&y->s, svg))) return NULL;
    if (!CHECK_OK(sweep_write_page(&y->s, html))) return NULL;
    char *drawn = read_file(svg), *text = read_file(html);
    CHECK(drawn && strstr(drawn, "</svg>\n") && !strstr(drawn, "\"nan"));
    if (y->s.n_cases > 0) CHECK(drawn && strstr(drawn, ">accumulation</text>"));
    CHECK(text && strstr(text, "</html>\n"));
    free(drawn);
    return text;
}

static int has(const char *text, const char *what)
{
    if (text && strstr(text, what)) return 1;
    fprintf(stderr, "no '%s' in the page\n", what);
    return 0;
}

/* ---- pages -----------------------------------------------------------------
 */

static void whole(tac_context *ctx)
{
    synthetic *y = syn_make(ctx, 3);
    char *text = publish(y, "whole");
    CHECK(has(text, "Oversubscribed"));
    CHECK(has(text, "at H = 1"));
    CHECK(has(text, "beats it at H = "));
    CHECK(has(text, "100 Mbit/s, 20 ms"));
    free(text);
    free(y);
}

static void one_seed(tac_context *ctx)
{
    synthetic *y = syn_make(ctx, 1);
    char *text = publish(y, "one_seed");
    CHECK(has(text, "One seed"));
    free(text);
    free(y);
}

static void nothing_yet(tac_context *ctx)
{
    synthetic *y = syn_make(ctx, 2);
    y->s.n_rows = y->s.n_trials = 0;
    char *text = publish(y, "nothing");
    CHECK(has(text, "No run has ended yet"));
    y->s.n_cases = 0;
    free(text);
    text = publish(y, "no_cases");
    free(text);
    free(y);
}

/* Diverged runs, nothing tested, nothing predicted, no networks, no compute. */
static void gaps(tac_context *ctx)
{
    synthetic *y = syn_make(ctx, 2);
    for (size_t i = 0; i < y->s.n_rows; i++) {
        sweep_row *r = &y->rows[i];
        r->test_accuracy = r->wall_predicted_s = NAN;
        if (i % 5 == 0) {
            r->train_loss = r->eval_loss = r->eval_accuracy = NAN;
            r->diverged = 1;
        }
        if (i % 3 == 0) r->n_evals = 0;
        if (i % 7 == 0) r->predictable = 0;
    }
    y->cases[2].lr_at_edge = 1;
    y->s.compute_s = NAN;
    y->s.n_networks = 0;
    y->s.failed = "local H=4";
    char *text = publish(y, "gaps");
    CHECK(has(text, "Validation accuracy"));
    CHECK(has(text, "beyond: local H=4 (largest"));
    CHECK(has(text, "Incomplete"));
    CHECK(has(text, "nothing to compare"));
    free(text);
    free(y);
}

/* Names are text, whatever is in them. */
static void hostile(tac_context *ctx)
{
    static const char evil[] = "<script>alert(\"x\")</script>&amp;'";
    synthetic *y = syn_make(ctx, 2);
    static const tac_sim_network_entry network = {
        evil, evil, {1e9, 1e9, 1e-3, 0}};
    for (size_t i = 0; i < y->s.n_cases; i++)
        snprintf(y->cases[i].label, sizeof y->cases[i].label, "%zu %s", i,
                 evil);
    y->o.data = y->o.out = y->o.lrs = y->o.launch = evil;
    y->s.networks[0] = &network;
    y->s.command = y->s.failed = evil;
    char *text = publish(y, "hostile");
    CHECK(text && !strstr(text, "<script>alert"));
    CHECK(has(text, "&lt;script&gt;alert(&quot;x&quot;)"));
    free(text);
    free(y);
}

/* ---- errors ----------------------------------------------------------------
 */

static void unwritable(tac_context *ctx)
{
    synthetic *y = syn_make(ctx, 1);
    CHECK_STATUS(sweep_write_page(&y->s, "/nowhere/at/all.html"), TAC_ERR_IO);
    free(y);
}

static void to_a_temporary_folder(char *path)
{
    snprintf(path, 64, "/tmp/tacit-sweep-XXXXXX");
    if (!mkdtemp(path)) abort();
    folder = path;
}

static void clean(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", path);
    CHECK_EQ(system(command), 0);
}

int main(int argc, char **argv)
{
    char own[64] = "";
    tac_context *ctx = NULL;
    if (argc > 1)
        folder = argv[1];
    else
        to_a_temporary_folder(own);
    if (!CHECK_OK(tac_context_create(NULL, &ctx))) return 1;
    whole(ctx);
    one_seed(ctx);
    nothing_yet(ctx);
    gaps(ctx);
    hostile(ctx);
    unwritable(ctx);
    tac_context_destroy(ctx);
    if (own[0]) clean(own);
    return tac_check_summary();
}
