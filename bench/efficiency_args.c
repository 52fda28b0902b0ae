/* A row as localsgd_sweep would have it: its arguments for ddp_train, and its
 * model of networks, serve here, too. */
#include <string.h>

#include "efficiency.h"

static tac_status describe(const eff *e, const eff_row *row, eff_told *out)
{
    const int n = snprintf(out->extra, sizeof out->extra,
                           "%s--eval-every %lld --log-every %lld %.800s",
                           row->recompute ? "--recompute block " : "",
                           (long long)row->steps, (long long)row->steps,
                           e->o->extra ? e->o->extra : "");

    if (n > 0 && (size_t)n < sizeof out->extra &&
        (!e->o->extra || strlen(e->o->extra) <= 800))
        return TAC_OK;
    return tac_fail(e->ctx, TAC_ERR_CONFIG,
                    "--extra is too long; put options into a file, and give "
                    "\"--config FILE\" there");
}

tac_status eff_tell(const eff *e, const eff_row *row, eff_told *out)
{
    memset(out, 0, sizeof *out);
    TAC_TRY(describe(e, row, out));
    out->o = (sweep_options){.model = e->o->model,
                             .data = e->o->data,
                             .data_dir = e->o->data_dir,
                             .optimizer = row->optimizer,
                             .shards = "iid",
                             .precision = row->precision,
                             .emulate = e->o->emulate,
                             .threads = e->o->threads,
                             .batch = row->batch,
                             .extra = out->extra};
    out->k.every = row->every;
    out->k.accumulate = row->accumulate;
    out->k.steps = row->steps;
    snprintf(out->k.sync, sizeof out->k.sync, "%s", row->sync);
    snprintf(out->k.compress, sizeof out->k.compress, "%s", row->compress);
    out->s = (sweep){.o = &out->o, .ctx = e->ctx, .world = e->world};
    return TAC_OK;
}
