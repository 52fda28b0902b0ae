/* config_check.c: everything that a configuration can't be. One function a
 * group of fields; each message says what to change. */
#include <math.h>
#include <string.h>

#include "tacit/codec.h"
#include "tacit/localsgd_config.h"

#define FAIL(...) return tac_fail(ctx, TAC_ERR_ARG, __VA_ARGS__)

/* Negated, so that NaN is refused. */
static int is_positive(double x)
{
    return x > 0 && isfinite(x);
}

static tac_status check_rule(tac_context *ctx, const tac_sync_schedule *s)
{
    switch (s->kind) {
    case TAC_SYNC_FIXED: return TAC_OK;
    case TAC_SYNC_QSR:
        if (!is_positive(s->alpha) || !is_positive(s->power))
            FAIL("qsr: alpha %g and power %g must be above 0; alpha is about "
                 "the learning rate at which intervals begin to grow, power 2",
                 s->alpha, s->power);
        return TAC_OK;
    case TAC_SYNC_ADACOMM: return TAC_OK;
    case TAC_SYNC_BUDGET:
        if (!is_positive(s->bytes_per_second))
            FAIL("budget: %g bytes a second can't be; give a number above 0",
                 s->bytes_per_second);
        return TAC_OK;
    case TAC_SYNC_CUSTOM:
        if (!s->next) FAIL("custom schedule: the function `next` is missing");
        return TAC_OK;
    }
    FAIL("there is no schedule %d; see tac_sync_kind", (int)s->kind);
}

static tac_status check_schedule(tac_context *ctx, const tac_localsgd_config *c)
{
    const tac_sync_schedule *s = &c->schedule;
    if (s->every < 1)
        FAIL("an interval of %lld attempts can't be; the least is 1 (every "
             "attempt)",
             (long long)s->every);
    if (s->start < 0 || c->total < 0)
        FAIL("start %lld and total %lld are numbers of attempts; 0 means none "
             "and unknown",
             (long long)s->start, (long long)c->total);
    if (s->min_every < 0 || s->max_every < 0 ||
        (s->max_every > 0 && s->min_every > s->max_every))
        FAIL("intervals from %lld to %lld attempts can't be; 0 means no limit",
             (long long)s->min_every, (long long)s->max_every);
    return check_rule(ctx, s);
}

static tac_status check_custom(tac_context *ctx, const tac_outer *o)
{
    if (!o->fn) FAIL("custom outer optimizer: the function `fn` is missing");
    if (o->state_per_element < 0 || o->state_per_element > 4)
        FAIL("custom outer optimizer: %d arrays of state; possible are 0 to 4",
             o->state_per_element);
    return TAC_OK;
}

static tac_status check_outer(tac_context *ctx, const tac_outer *o)
{
    if ((int)o->kind < 0 || o->kind > TAC_OUTER_CUSTOM)
        FAIL("there is no outer optimizer %d; see tac_outer_kind",
             (int)o->kind);
    if (o->kind == TAC_OUTER_AVERAGE) return TAC_OK;
    if (o->kind == TAC_OUTER_CUSTOM) return check_custom(ctx, o);
    if (!(o->lr >= 0) || !isfinite(o->lr))
        FAIL("outer learning rate %g can't be; it is 0 or more (averaging "
             "corresponds to 1)",
             o->lr);
    if (!(o->momentum >= 0 && o->momentum < 1))
        FAIL("outer momentum %g can't be; it is at least 0 and below 1",
             o->momentum);
    if (o->kind == TAC_OUTER_ADAM &&
        (!(o->beta2 >= 0 && o->beta2 < 1) || !(o->eps >= 0)))
        FAIL("outer adam: beta2 %g is at least 0 and below 1, eps %g at least "
             "0 (DiLoCo used 0.1)",
             o->beta2, o->eps);
    return TAC_OK;
}

static int64_t interval(const tac_localsgd_config *c)
{
    return c->n_levels > 0 ? c->levels[c->n_levels - 1].every
                           : c->schedule.every;
}

static tac_status check_streaming(tac_context *ctx,
                                  const tac_localsgd_config *c, int64_t layers)
{
    const int64_t every = interval(c);
    if (c->fragments < 0 || (layers > 0 && c->fragments > layers))
        FAIL("%lld fragments of a model of %lld layers can't be; there is at "
             "most one a layer",
             (long long)c->fragments, (long long)layers);
    if (c->delay < 0 || c->delay > every)
        FAIL("a delay of %lld attempts can't be: a fragment is sent every %lld "
             "attempts, and its result must be there by then",
             (long long)c->delay, (long long)every);
    if (!(c->alpha >= 0 && c->alpha <= 1))
        FAIL("alpha %g can't be; it is the share of the local parameters, 0 to "
             "1",
             c->alpha);
    return TAC_OK;
}

static tac_status check_eager(tac_context *ctx, const tac_localsgd_config *c)
{
    if (c->stale != TAC_STALE_EAGER && c->stale != TAC_STALE_DELAYED)
        FAIL("there is no treatment %d of stale deltas; see tac_stale",
             (int)c->stale);
    if (c->stale != TAC_STALE_EAGER) return TAC_OK;
    if (c->delay != interval(c))
        FAIL("eager updates need a delay of one interval (%lld attempts), not "
             "%lld: make them equal, or take delayed updates",
             (long long)interval(c), (long long)c->delay);
    if (c->n_levels > 1)
        FAIL("eager updates can't have levels: anchors differ between ranks");
    if (c->drop_probability > 0)
        FAIL("eager updates can't drop deltas; set drop_probability to 0");
    return TAC_OK;
}

static tac_status check_level(tac_context *ctx, const tac_localsgd_config *c,
                              int i)
{
    const tac_sync_level *l = &c->levels[i];
    if (l->ranks < 1 || l->every < 1)
        FAIL("level %d: groups of %d ranks every %lld attempts can't be", i,
             l->ranks, (long long)l->every);
    if (i > 0 && (l->ranks % l[-1].ranks != 0 || l->every <= l[-1].every))
        FAIL("level %d: its groups (%d ranks every %lld) must consist of whole "
             "groups of the level before (%d every %lld) and meet less often",
             i, l->ranks, (long long)l->every, l[-1].ranks,
             (long long)l[-1].every);
    return TAC_OK;
}

static tac_status check_levels(tac_context *ctx, const tac_localsgd_config *c,
                               int world)
{
    if (c->n_levels == 0) return TAC_OK;
    if (c->n_levels < 0 || c->n_levels > TAC_LOCALSGD_LEVELS)
        FAIL("%d levels can't be; possible are 0 to %d", c->n_levels,
             TAC_LOCALSGD_LEVELS);
    for (int i = 0; i < c->n_levels; i++) TAC_TRY(check_level(ctx, c, i));
    if (world > 0 && c->levels[c->n_levels - 1].ranks != world)
        FAIL("the last level has groups of %d, and there are %d workers; it "
             "must have all: make it groups of %d",
             c->levels[c->n_levels - 1].ranks, world, world);
    if (c->schedule.kind != TAC_SYNC_FIXED)
        FAIL("levels have fixed periods; set the schedule to fixed");
    return TAC_OK;
}

static tac_status check_codec(tac_context *ctx, const char *spec)
{
    tac_codec *codec = NULL;
    if (!spec) return TAC_OK;
    if (strncmp(spec, "powersgd", 8) == 0)
        FAIL("powersgd needs the shapes of parameters, which a delta has not; "
             "use topk, int8 or fp4");
    TAC_TRY(tac_codec_create(ctx, spec, &codec));
    tac_codec_destroy(codec);
    return TAC_OK;
}

static tac_status check_late(tac_context *ctx, const tac_localsgd_config *c)
{
    if (c->late != TAC_LATE_WAIT && c->late != TAC_LATE_DROP)
        FAIL("there is no treatment %d of late ranks; see tac_late",
             (int)c->late);
    if (c->late == TAC_LATE_DROP && !is_positive(c->deadline_s))
        FAIL("dropping the work of late ranks needs a deadline above 0 s, not "
             "%g",
             c->deadline_s);
    if (!(c->drop_probability >= 0 && c->drop_probability <= 1))
        FAIL("a probability of %g can't be", c->drop_probability);
    if ((int)c->weighting < 0 || c->weighting > TAC_WEIGHT_STEPS)
        FAIL("there is no weighting %d; see tac_weighting", (int)c->weighting);
    return TAC_OK;
}

tac_status tac_localsgd_check(tac_context *ctx, const tac_localsgd_config *c,
                              int world, int64_t layers)
{
    if (!c) return TAC_ERR_ARG;
    if (c->struct_size != sizeof *c)
        FAIL("the configuration has %zu bytes instead of %zu; begin with "
             "TAC_LOCALSGD_CONFIG_INIT and build against this version",
             c->struct_size, sizeof *c);
    TAC_TRY(check_schedule(ctx, c));
    TAC_TRY(check_outer(ctx, &c->outer));
    TAC_TRY(check_levels(ctx, c, world));
    TAC_TRY(check_streaming(ctx, c, layers));
    TAC_TRY(check_eager(ctx, c));
    TAC_TRY(check_late(ctx, c));
    return check_codec(ctx, c->codec);
}

int64_t tac_localsgd_fragment_of(const tac_localsgd_config *c, int64_t layer,
                                 int64_t layers)
{
    const int64_t p = c->fragments;
    if (p <= 1 || layers <= 0) return 0;
    return c->strided ? layer % p : layer * p / layers;
}

int tac_localsgd_has_anchor(const tac_localsgd_config *c)
{
    return c->outer.kind != TAC_OUTER_AVERAGE || c->delay > 0 ||
           (c->codec && strcmp(c->codec, "none") != 0);
}
