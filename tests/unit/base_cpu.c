/* base_cpu.c: detected features against the kernel's list. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacit/cpu.h"
#include "tacit/half.h"

/* The line "flags : fpu vme ..." with a space at its end; "" if there is none
 * (another processor). */
static char *read_flags(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    static char line[8192];
    int found = 0;
    cr_assert_not_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = strncmp(line, "flags", 5) == 0;
    fclose(f);
    if (!found) line[0] = 0;
    for (char *p = line; *p; ++p)
        if (*p == '\n') *p = ' ';
    return line;
}

Test(cpu, as_the_kernel_says)
{
    const tac_cpu_features c = tac_cpu_detect();
    const char *flags = read_flags();
    const struct {
        const char *name;
        int got;
    } rows[] = {
        {" avx2 ", c.avx2},         {" fma ", c.fma},
        {" f16c ", c.f16c},         {" avx512f ", c.avx512f},
        {" avx512bw ", c.avx512bw}, {" avx512vl ", c.avx512vl},
        {" avx512dq ", c.avx512dq}, {" avx512_bf16 ", c.avx512_bf16},
        {" amx_bf16 ", c.amx_bf16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        cr_assert_eq(rows[i].got, strstr(flags, rows[i].name) != NULL, "%s",
                     rows[i].name);
}

/* A slower table than this processor deserves would go unnoticed. */
Test(cpu, half_table_follows)
{
    const tac_cpu_features c = tac_cpu_detect();
    const tac_half_impl *impl = tac_half_impls();
    int scalar = 0;
    for (; impl->name; ++impl) {
        if (strcmp(impl->name, "avx512") == 0)
            cr_assert_eq(impl->available(),
                         c.avx512f && c.avx512bw && c.avx512vl && c.f16c);
        if (strcmp(impl->name, "f16c") == 0)
            cr_assert_eq(impl->available(), c.f16c && c.avx2);
        scalar |= strcmp(impl->name, "scalar") == 0 && impl->available();
    }
    cr_assert(scalar);
}
