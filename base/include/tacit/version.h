/* tacit/version.h: what a loaded library is, for programs that were not
 * compiled against its headers (bindings of other languages).
 *
 * Compiled programs compare TAC_VERSION_STRING and TAC_ABI with these. */
#ifndef TACIT_VERSION_H
#define TACIT_VERSION_H

#include "tacit/export.h"

TAC_BEGIN_DECLS

/* TAC_VERSION_STRING and TAC_ABI of the library. Thread-safe. */
TAC_API const char *tac_version(void);
TAC_API int tac_abi(void);

TAC_END_DECLS

#endif
