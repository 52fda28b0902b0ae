/* omp.c: one OpenMP thread for oneDNN, without linking an OpenMP runtime.
 *
 * The count is a property of the calling thread, so it is set around each call
 * and put back: the caller's own OpenMP code does not notice. The functions
 * are those of the runtime that oneDNN brought, whichever that is. */
#include <dlfcn.h>
#include <string.h>

#include "cpu/onednn/onednn.h"

tac__omp tac__omp_find(void)
{
    tac__omp omp = {NULL, NULL};
    void *get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    void *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!get || !set) return omp;
    memcpy(&omp.get, &get, sizeof get); /* ISO C has no such cast */
    memcpy(&omp.set, &set, sizeof set);
    return omp;
}

int tac__omp_enter(const tac__omp *omp)
{
    const int before = omp->get ? omp->get() : 1;
    if (before != 1) omp->set(1);
    return before;
}

void tac__omp_leave(const tac__omp *omp, int before)
{
    if (before != 1) omp->set(before);
}
