/* reducer_predict.c: bytes of a run, from the layout and the codec alone.
 *
 * Calls of a codec differ only while it begins and warms up; from then on each
 * is like the one before. */
#include "codecs/codec_bytes.h"
#include "reducer_impl.h"
#include "wire.h"

/* Of the step that is the codec's `call`-th, from 0. */
static uint64_t step_wire(const tac_reducer *r, uint64_t call)
{
    uint64_t sum = 0;
    for (size_t b = 0; b < r->layout.n_buckets; b++) {
        const tac__bucket *k = &r->layout.buckets[b];
        if (k->count == 0) continue;
        if (r->wire_dtype != TAC_WIRE_SAME)
            sum += tac__wire_of(r->wire_dtype)->bytes(k->count);
        else if (r->codec)
            sum += tac_codec_wire_bytes_at(r->codec, k->count, &r->layouts[b],
                                           call);
        else
            sum += k->count * tac_dtype_size(k->dtype);
    }
    return sum;
}

void tac_reducer_predict(const tac_reducer *r, uint64_t steps,
                         uint64_t *bytes_logical, uint64_t *bytes_wire)
{
    const uint64_t changing = r->codec ? tac__codec_settles(r->codec) : 0;
    uint64_t wire = 0, logical = 0, step = 0;
    if (r->world > 1) {
        while (step < steps && step < changing) wire += step_wire(r, step++);
        wire += (steps - step) * step_wire(r, step);
        for (size_t b = 0; b < r->layout.n_buckets; b++)
            logical += steps * r->layout.buckets[b].bytes;
    }
    *bytes_logical = logical;
    *bytes_wire = wire;
}
