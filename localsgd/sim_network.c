/* sim_network.c: named networks, and how long a reduction lasts on one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim_impl.h"

static const tac_sim_network_entry networks[] = {
    {"nvlink",
     "NVLink 4 inside a host: 3.6 Tbit/s each way, 2 us",
     {3.6e12, 3.6e12, 2e-6, 0}},
    {"ib-400g", "InfiniBand NDR: 400 Gbit/s, 5 us", {400e9, 400e9, 5e-6, 0}},
    {"eth-100g", "Ethernet: 100 Gbit/s, 10 us", {100e9, 100e9, 10e-6, 0}},
    {"eth-10g", "Ethernet: 10 Gbit/s, 50 us", {10e9, 10e9, 50e-6, 0}},
    {"eth-1g", "Ethernet: 1 Gbit/s, 100 us", {1e9, 1e9, 100e-6, 0}},
    {"wan-100m", "between sites: 100 Mbit/s, 20 ms", {100e6, 100e6, 20e-3, 0}},
    {NULL, NULL, {0, 0, 0, 0}},
};

const tac_sim_network_entry *tac_sim_networks(void)
{
    return networks;
}

tac_status tac_sim_network_find(tac_context *ctx, const char *name,
                                tac_sim_network *out)
{
    char names[160] = "";
    size_t at = 0;
    for (const tac_sim_network_entry *e = networks; e->name; e++) {
        if (name && strcmp(e->name, name) == 0) {
            *out = e->net;
            return TAC_OK;
        }
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
                               at ? ", " : "", e->name);
    }
    return tac_fail(ctx, TAC_ERR_ARG, "no network is called '%s'; there are %s",
                    name ? name : "", names);
}

double tac__sim_link_factor(tac_sim_topology t, int64_t members)
{
    if (members < 2) return 0;
    return t == TAC_SIM_ONCE ? 1 : 2 * (1 - 1 / (double)members);
}

static double hops(tac_sim_topology t, int64_t members)
{
    int64_t rounds = 0;
    if (t == TAC_SIM_ONCE) return 1;
    if (t == TAC_SIM_RING) return 2 * (double)(members - 1);
    while ((INT64_C(1) << rounds) < members) rounds++;
    return 2 * (double)rounds;
}

double tac__sim_duration(const tac_sim_network *net, tac_sim_topology t,
                         int64_t members, double bits)
{
    if (members < 2) return 0;
    return hops(t, members) * net->latency_s +
           bits * tac__sim_link_factor(t, members) /
               fmin(net->up_bits, net->down_bits);
}

/* Good to 4.5e-4 (Abramowitz and Stegun, 26.2.23). */
static double first_guess(double log_tail)
{
    const double t = sqrt(-2 * (log_tail - 0.6931471805599453));
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/* x with P(|N| > x) = tail: Newton's method on log erfc, which is nearly
 * straight; a last step below 1e-6 leaves less than 1e-11. */
static double half_normal_tail(double tail)
{
    const double want = log(tail), root2 = 1.4142135623730951;
    double x = first_guess(want), step = 1;
    for (int i = 0; i < 10 && fabs(step) > 1e-6; i++) {
        const double e = erfc(x / root2);
        const double slope = -0.7978845608028654 * exp(-x * x / 2) / e;
        step = (log(e) - want) / slope;
        x -= step;
    }
    return fmax(x, 0);
}

/* The largest of M is below x with probability P(|N| < x)^M. */
double tac__sim_latest(double jitter_s, int64_t members, double u)
{
    if (jitter_s == 0 || members < 2 || u <= 0) return 0;
    return jitter_s * half_normal_tail(-expm1(log(u) / (double)members));
}
