/* The table of memory: on stdout, in metrics.jsonl and in summary.json. */
#include "run.h"

#include <stdio.h>
#include <string.h>

const char *tac__bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t u = 0;

    while (bytes >= 1024 && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 32, u ? "%.2f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

static uint64_t a_rank(const tac_memory_summary *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n; i++)
        if (!m->rows[i].per_process) sum += m->rows[i].predicted;
    return sum;
}

/* "optimizer_state" as "optimizer state". */
static void print_row(FILE *out, const tac_memory_row *row)
{
    char name[32], text[32];

    snprintf(name, sizeof name, "%s", row->name);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = ' ';
    fprintf(out, "               %-18s %12s%s\n", name,
            tac__bytes_text((double)row->predicted, text),
            row->per_process ? " a process" : "");
}

void tac__memory_print(const tac__run *run)
{
    const tac_memory_summary *m = &run->memory;
    char a[32], b[32], c[32];

    fprintf(run->out,
            "  memory     %s a rank, %s for the %d rank%s here, %s available\n",
            tac__bytes_text((double)a_rank(m), a),
            tac__bytes_text((double)m->host_predicted, b), m->ranks,
            m->ranks == 1 ? "" : "s", tac__bytes_text((double)m->available, c));
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].predicted > 0) print_row(run->out, &m->rows[i]);
}

static void row_json(tac_json *j, const tac_memory_row *row)
{
    tac_json_begin_object(j, row->name);
    tac_json_u64(j, "predicted", row->predicted);
    tac_json_u64(j, "measured", row->measured);
    tac_json_end_object(j);
}

void tac__memory_json(tac_json *j, const tac_memory_summary *m)
{
    tac_json_i64(j, "ranks", m->ranks);
    tac_json_i64(j, "processes", m->processes);
    for (size_t i = 0; i < m->n; i++) row_json(j, &m->rows[i]);
    tac_json_u64(j, "host_predicted", m->host_predicted);
    tac_json_u64(j, "host_measured", m->host_measured);
    tac_json_u64(j, "available", m->available);
    tac_json_u64(j, "rss_bytes", m->rss_bytes);
}
