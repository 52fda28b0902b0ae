/* Checkpoints in the folder; the settings that somebody made, then all. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "report_page_impl.h"

static int is_step(const struct dirent *d)
{
    return strncmp(d->d_name, "step-", 5) == 0;
}

/* The name that checkpoints/<file> holds, "" if there is none. */
static void read_name(const tac__report_page *p, const char *file, char out[64])
{
    char name[64];

    snprintf(name, sizeof name, "checkpoints/%s", file);
    FILE *f = tac__report_open(p, name);
    out[0] = '\0';
    if (!f) return;
    if (!fgets(out, 64, f)) out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

static void put_checkpoints(const tac__report_page *p)
{
    char path[4096], latest[64], best[64];
    struct dirent **names = NULL;
    const int m = snprintf(path, sizeof path, "%s/checkpoints", p->dir);
    const int n = m > 0 && (size_t)m < sizeof path
                      ? scandir(path, &names, is_step, alphasort)
                      : -1;

    fputs("<h2>Checkpoints</h2>\n<p>", p->f);
    read_name(p, "latest", latest);
    read_name(p, "best", best);
    if (n <= 0)
        tac_page_print(p->f, "None (--save-every).");
    else
        tac_page_print(p->f, "%d in checkpoints/: %s to %s; latest %s%s%s.", n,
                       names[0]->d_name, names[n - 1]->d_name,
                       *latest ? latest : "none", *best ? ", best " : "", best);
    fputs("</p>\n", p->f);
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* A line "key = value ; source" whose source is not the default. */
static void put_setting(const tac__report_page *p, char *line)
{
    char *value = strstr(line, " = "), *source = strstr(line, " ; ");

    for (char *next = source; next; next = strstr(next + 1, " ; "))
        source = next;
    if (line[0] == '#' || !value || !source || source < value) return;
    if (!strcmp(source + 3, "default")) return;
    *value = *source = '\0';
    value += 3;
    for (size_t k = strlen(value); k > 0 && value[k - 1] == ' '; k--)
        value[k - 1] = '\0';
    fputs("<tr><td><code>--", p->f);
    tac_page_print(p->f, "%s", line);
    fputs("</code><td class=\"t\">", p->f);
    tac_page_print(p->f, "%s", value);
    fputs("<td class=\"t\">", p->f);
    tac_page_print(p->f, "%s", source + 3);
    fputs("</tr>\n", p->f);
}

static void put_lines(const tac__report_page *p)
{
    for (const char *line = p->config; *line;) {
        const size_t n = strcspn(line, "\n");

        tac_page_print(p->f, "%.*s", (int)n, line);
        putc('\n', p->f);
        line += n + (line[n] == '\n');
    }
}

static void put_settings(const tac__report_page *p)
{
    char *copy = strdup(p->config), *rest = NULL;

    fputs("<h2>Settings</h2>\n<div class=\"box\" tabindex=\"0\"><table><thead>"
          "<tr><th>given<th class=\"t\">value<th class=\"t\">by</tr></thead>"
          "<tbody>\n",
          p->f);
    for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        put_setting(p, line);
    fputs("</tbody></table></div>\n<details><summary>All settings "
          "(config.ini)</summary><pre>",
          p->f);
    put_lines(p);
    fputs("</pre></details>\n", p->f);
    free(copy);
}

void tac__report_page_settings(const tac__report_page *p)
{
    put_checkpoints(p);
    if (p->config) put_settings(p);
}
