/* tacit/folder.h: making a folder with its parents. Thread-safe. */
#ifndef TACIT_FOLDER_H
#define TACIT_FOLDER_H

#include "tacit/export.h"

TAC_BEGIN_DECLS

/* mkdir -p. 0: `path` is a folder now; -1: errno says why not (ENOTDIR: it is
 * something else). Does not report. */
TAC_API int tac_make_folders(const char *path);

TAC_END_DECLS

#endif
