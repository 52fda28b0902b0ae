/* emulate_spec.c: reading "hosts=4,rate=1gbit,delay=10ms". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transports/emulate.h"

#define MOST_HOSTS 65536.0

typedef struct unit {
    const char *name;
    double value;
} unit;

/* Bytes a second; seconds; hosts. */
static const unit rates[] = {
    {"kbit", 125.0}, {"mbit", 125e3}, {"gbit", 125e6}, {NULL, 0}};
static const unit delays[] = {
    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {NULL, 0}};
static const unit hosts[] = {{"", 1.0}, {NULL, 0}};

/* 0 needs no unit. */
static int read_number(const char *text, const unit *units, double *out)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || !(x >= 0) || x > 1e9) return 0;
    for (; units->name; units++)
        if (strcmp(end, units->name) == 0) {
            *out = x * units->value;
            return 1;
        }
    *out = 0;
    return x == 0 && *end == '\0';
}

static int set(const char *key, const char *value, tac__emulate *e)
{
    double x = 0;
    if (strcmp(key, "hosts") == 0) {
        if (!read_number(value, hosts, &x) || x < 1 || x > MOST_HOSTS) return 0;
        e->hosts = (int)x;
        return (double)e->hosts == x;
    }
    if (strcmp(key, "rate") == 0) return read_number(value, rates, &e->rate);
    if (strcmp(key, "delay") == 0 && read_number(value, delays, &x) &&
        x < 1e6) {
        e->delay_ns = (uint64_t)(x * 1e9 + 0.5);
        return 1;
    }
    return 0;
}

/* Sets *twice to a key that was there before. */
static int read_part(char *part, tac__emulate *e, unsigned *seen,
                     const char **twice)
{
    static const char *const keys[] = {"hosts", "rate", "delay"};
    char *value = strchr(part, '=');
    if (!value) return 0;
    *value++ = '\0';
    for (unsigned k = 0; k < 3; k++) {
        if (strcmp(part, keys[k]) != 0) continue;
        if (*seen & (1u << k)) *twice = keys[k];
        *seen |= 1u << k;
    }
    return !*twice && set(part, value, e);
}

int tac__emulate_parse(const char *text, tac__emulate *out, char *why,
                       size_t bytes)
{
    char copy[128], *rest = copy;
    const char *twice = NULL;
    unsigned seen = 0;
    tac__emulate e = {0};
    int good = strlen(text) < sizeof copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *part; good && (part = strsep(&rest, ",")) != NULL;)
        good = read_part(part, &e, &seen, &twice);
    if (good && e.hosts > 0) {
        *out = e;
        return 1;
    }
    if (twice)
        snprintf(why, bytes, "emulate '%.80s' gives %s twice", text, twice);
    else
        snprintf(why, bytes,
                 "emulate '%.80s' is not a network: write hosts=N, and if "
                 "wanted rate=Xkbit|mbit|gbit and delay=Xus|ms|s (0: none), "
                 "like hosts=4,rate=1gbit,delay=10ms",
                 text);
    return 0;
}
