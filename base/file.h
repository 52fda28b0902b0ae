/* file.h: replacing a file's contents at once. Private to base/. */
#ifndef TAC_FILE_H
#define TAC_FILE_H

#include <stddef.h>

#include "tacit/status.h"

/* Writes `bytes` of `text` and a newline to `path`: through a temporary file in
 * the same folder and rename, so that readers see the old contents or the new;
 * straight if `path` is a pipe or a device. Doesn't report: errno says why.
 * Errors: IO, NOMEM. */
tac_status tac__file_replace(const char *path, const char *text, size_t bytes);

#endif
