/* files.h: paths, folders and files that are on the disk when a call returns.
 * None of these reports: errno says why. Private to data/. */
#ifndef TAC_DATA_FILES_H
#define TAC_DATA_FILES_H

#include <stddef.h>

/* "dir/name", malloc'd; NULL: no memory. */
char *tac__files_join(const char *dir, const char *name);
int tac__files_is_dir(const char *path);
/* rm -r; what isn't there is no failure. */
int tac__files_remove_tree(const char *path);
/* fsync of a folder: the names in it. */
int tac__files_sync_dir(const char *path);
/* write(2) until all is written. */
int tac__files_write_all(int fd, const void *p, size_t bytes);
/* Makes or replaces a file with this text, and fsyncs it. On failure there is
 * none. */
int tac__files_write(const char *path, const char *text, size_t bytes);

#endif
