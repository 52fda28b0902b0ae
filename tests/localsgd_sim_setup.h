/* localsgd_sim_setup.h: small simulations for tests of the simulator. Numbers
 * are powers of two where results are compared exactly. */
#ifndef LOCALSGD_SIM_SETUP_H
#define LOCALSGD_SIM_SETUP_H

#include <math.h>

#include "tacit/localsgd_sim.h"

/* A model of `layers` layers, a step of 3 s (1 forward, 2 backward), 1 bit a
 * parameter, params bits in all. */
static inline tac_sim_config sim_config(int64_t layers, double params,
                                        int64_t steps)
{
    tac_sim_config c = TAC_SIM_CONFIG_INIT;
    c.layers = layers;
    c.params = params;
    c.bits = 1;
    c.step_s = 3;
    c.steps = steps;
    return c;
}

static inline tac_localsgd_config sim_every(int64_t every)
{
    tac_localsgd_config l = TAC_LOCALSGD_CONFIG_INIT;
    l.schedule.every = every;
    return l;
}

static inline void sim_local(tac_sim_config *c, const tac_localsgd_config *l)
{
    c->method = TAC_SIM_LOCAL;
    c->localsgd = l;
}

static inline tac_sim_network sim_net(double bits, double latency)
{
    return (tac_sim_network){bits, bits, latency, 0};
}

/* Within rounding of sums of many terms. */
static inline int sim_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

#endif
