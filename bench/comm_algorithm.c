/* comm_algorithm.c: which algorithm ran? The flight recorder knows; it is
 * written to a file that has no name any more when it is read. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm_bench.h"

static const char *folder(void)
{
    const char *t = getenv("TMPDIR");
    return t && *t ? t : "/tmp";
}

/* The algorithm of the last operation of that kind. */
static void find_last(const json_t *dump, const char *collective,
                      char out[TAC__ALGORITHM])
{
    const json_t *all = json_object_get(dump, "operations");
    for (size_t i = json_array_size(all); i-- > 0;) {
        const json_t *op = json_array_get(all, i);
        const char *kind = json_string_value(json_object_get(op, "collective"));
        const char *name = json_string_value(json_object_get(op, "algorithm"));
        if (!kind || !name || strcmp(kind, collective) != 0) continue;
        snprintf(out, TAC__ALGORITHM, "%s", name);
        return;
    }
}

void tac__last_algorithm(const tac__comm_bench *b, tac_coll coll,
                         char out[TAC__ALGORITHM])
{
    char path[512];
    json_error_t e;
    snprintf(out, TAC__ALGORITHM, "%s",
             b->opt->algorithm ? b->opt->algorithm : "auto");
    snprintf(path, sizeof path, "%.450s/tacit-bench-%ld.json", folder(),
             (long)getpid());
    json_t *dump =
        tac_comm_dump(b->comm, path) >= 0 ? json_load_file(path, 0, &e) : NULL;
    unlink(path);
    if (dump) find_last(dump, tac_coll_name(coll), out);
    json_decref(dump);
}
