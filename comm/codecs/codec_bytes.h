/* codec_bytes.h: what the reducer has to know about a codec's next call. */
#ifndef TACIT_COMM_CODEC_BYTES_H
#define TACIT_COMM_CODEC_BYTES_H

#include "tacit/codec.h"

/* Bytes on the wire of the next call for such a buffer on `size` ranks, which
 * may be sent as f32. */
size_t tac__codec_next_bytes(const tac_codec *c, size_t count,
                             const tac_codec_layout *layout, int size);

/* Calls after which all are alike in bytes. */
uint64_t tac__codec_settles(const tac_codec *c);

#endif
