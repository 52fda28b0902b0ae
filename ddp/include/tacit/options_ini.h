/* tacit/options_ini.h: reading an INI file into an option table.
 *
 * Keys are the option names, '-' or '_' alike; sections are allowed and only
 * group; '#' and ';' start comments. Unknown keys and bad values are errors
 * that name file and line. */
#ifndef TACIT_OPTIONS_INI_H
#define TACIT_OPTIONS_INI_H

#include "tacit/options.h"

TAC_BEGIN_DECLS

/* Reads `path` with source TAC_SOURCE_FILE. Errors: IO, CONFIG. */
TAC_API tac_status tac_options_read_ini(tac_context *ctx, tac_options *o,
                                        const char *path);

TAC_END_DECLS

#endif
