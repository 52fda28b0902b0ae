/* version.c: the library's own version and ABI number. */
#include "tacit/version.h"

const char *tac_version(void)
{
    return TAC_VERSION_STRING;
}

int tac_abi(void)
{
    return TAC_ABI;
}
