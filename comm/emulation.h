/* emulation.h: a communicator's part in an emulated network. */
#ifndef TACIT_COMM_EMULATION_H
#define TACIT_COMM_EMULATION_H

#include "comm_impl.h"

/* Collective, agreed; before a transport is chosen. With config.emulate c->net
 * becomes the network (the parent's, if there is one), and if the ranks are on
 * several virtual hosts, c->place those. ARG, NOMEM, UNSUPPORTED. */
tac_status tac__emulation_join(tac__boot *b, tac_comm *c,
                               const tac_comm *parent);
/* Collective, agreed: puts the network before the transport chosen. */
tac_status tac__emulation_wrap(tac__boot *b, tac_comm *c);
/* The ranks' hosts are the virtual ones from now on. */
void tac__emulation_show(tac_comm *c);
void tac__emulation_leave(tac_comm *c);

#endif
