/* tacit/export.h: symbol visibility and language glue for every public header.
 *
 * Libraries are built with hidden visibility; TAC_API marks what is public.
 * Headers compile alone as C11 and as C++17. */
#ifndef TACIT_EXPORT_H
#define TACIT_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define TAC_API               __attribute__((visibility("default")))
#define TAC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TAC_NODISCARD         __attribute__((warn_unused_result))
#else
#define TAC_API
#define TAC_PRINTF(fmt, args)
#define TAC_NODISCARD
#endif

#ifdef __cplusplus
#define TAC_BEGIN_DECLS extern "C" {
#define TAC_END_DECLS   }
#else
#define TAC_BEGIN_DECLS
#define TAC_END_DECLS
#endif

#define TAC_VERSION_MAJOR  0
#define TAC_VERSION_MINOR  1
#define TAC_VERSION_PATCH  0
#define TAC_VERSION_STRING "0.1.0"

/* Compared by plug-ins and by ranks at start; grows with every change of a
 * structure that crosses a library boundary. */
#define TAC_ABI 2

#endif
