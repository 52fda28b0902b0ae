/* Seconds a sample on networks that are not here: localsgd_sweep's model, fed
 * with the row's own computing time and bytes. */
#include <math.h>
#include <stdlib.h>

#include "efficiency.h"
#include "tacit/data.h"

static tac_status model_row(const eff *e, eff_row *row, double *layers,
                            int64_t n)
{
    eff_told told;
    sweep_row r = {.lr = row->lr,
                   .seed = 1,
                   .steps = row->steps,
                   .samples = row->samples,
                   .bytes_predicted = row->bytes_predicted,
                   .bytes_counted = row->bytes,
                   .predictable = isfinite(row->bytes_predicted)};

    TAC_TRY(eff_tell(e, row, &told));
    told.s.cases = &told.k;
    told.s.n_cases = 1;
    told.s.rows = &r;
    told.s.n_rows = 1;
    told.s.layers = n;
    told.s.layer_params = layers;
    told.s.params = e->params;
    told.s.compute_s = row->compute_s;
    told.s.n_networks = (int)e->n_networks;
    for (size_t i = 0; i < e->n_networks; i++)
        told.s.networks[i] = e->networks[i];
    TAC_TRY(sweep_model(&told.s));
    for (size_t i = 0; i < e->n_networks; i++)
        row->modelled[i] = r.modelled_s[i] / (double)row->samples;
    return TAC_OK;
}

/* Shapes alone; any data set has them. */
static tac_status find_layers(const eff *e, sweep *s)
{
    tac_data_config dc = TAC_DATA_CONFIG_INIT;
    tac_data data;

    dc.dir = e->o->data_dir;
    TAC_TRY(tac_data_open(e->ctx, e->o->data, &dc, &data));
    const tac_status status = sweep_layers(s, data.train);
    tac_data_close(&data);
    return status;
}

/* A world of one sends nothing. */
tac_status eff_model(eff *e)
{
    sweep_options o = {.model = e->o->model};
    sweep s = {.o = &o, .ctx = e->ctx};
    tac_status status = find_layers(e, &s);

    for (size_t i = 0; i < e->n_rows && status >= 0; i++)
        if (e->rows[i].n > 0 && e->world > 1)
            status = model_row(e, &e->rows[i], s.layer_params, s.layers);
    free(s.layer_params);
    return status;
}
