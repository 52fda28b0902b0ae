/* sim_size.c: how large what is sent is: `bits` a parameter, or exactly what
 * training sends. */
#include <math.h>

#include "sim_impl.h"

double tac__sim_layer_params(const tac_sim_config *c, int64_t l)
{
    const double n = c->params, count = (double)c->layers;
    if (c->layer_params) return c->layer_params[l];
    if (c->bits > 0) return n / count;
    /* Whole numbers that add up: codecs know no others. */
    return floor(n * (double)(l + 1) / count) - floor(n * (double)l / count);
}

double tac__sim_plain_bits(const tac_sim_config *c)
{
    return c->bits > 0 ? c->bits : 32;
}

tac_status tac__sim_codec(tac_context *ctx, tac__sim_plan *p)
{
    if (p->c->bits > 0 || !p->localsgd->codec) return TAC_OK;
    return tac_codec_create(ctx, p->localsgd->codec, &p->codec);
}

static double coded_bits(const tac__sim_plan *p, double n)
{
    if (n == 0) return 0;
    return 8 * (double)tac_codec_wire_bytes(p->codec, (size_t)n, NULL);
}

/* Codecs begin and warm up by their own count of calls. */
static double call_bits(tac__sim_plan *p, int level, int64_t f)
{
    uint64_t *calls = &p->calls[level * p->n_fragments + f];
    const size_t n = (size_t)p->size[f];
    if (n == 0) return 0;
    return 8 * (double)tac_codec_wire_bytes_at(p->codec, n, NULL, (*calls)++);
}

uint64_t tac__sim_model_bytes(const tac__sim_plan *p)
{
    double bits = 0;
    for (int64_t f = 0; f < p->n_fragments; f++)
        bits += p->codec ? coded_bits(p, p->size[f])
                         : p->size[f] * tac__sim_plain_bits(p->c);
    return (uint64_t)(bits / 8);
}

static int64_t members(const tac__sim_plan *p, int level)
{
    return level < p->levels - 1 ? p->localsgd->levels[level].ranks
                                 : p->c->workers;
}

double tac__sim_fragment_share(tac__sim_plan *p, const tac__due *due, int64_t f)
{
    const int level = p->at[f];
    const double n = p->size[f], plain = n * tac__sim_plain_bits(p->c);
    double bits = plain;
    if (p->codec && !due->plain && members(p, level) > 1)
        bits = call_bits(p, level, f);
    /* Anchors that differ are averaged, too, at the end. */
    if (due->end && !due->plain && p->localsgd->stale == TAC_STALE_EAGER)
        bits += plain;
    return n > 0 ? bits / n : 0;
}
