/*
 * link.h: the socket to the session, which is a sign of life and no more. The program may close any descriptor and use its
 * number again, so nothing here touches the descriptor without proof that it still is ours.
 */
#ifndef GMT_LINK_H
#define GMT_LINK_H

#include "opencl.h"

void gmt_link_open(int socket);
void gmt_link_close(void);
/* Waits that long, or until the session is gone: true. It is no point of cancellation. */
bool gmt_link_lost(uint32_t nanoseconds);

#endif
