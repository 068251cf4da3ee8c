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
/*
 * Reports to the session of a runtime folder what is not watched: "", this process; else a program that it starts, behind
 * GMT_OUTSIDER_FOREIGN if it is for another machine or C library; or, behind GMT_OUTSIDER_ASKED, which devices it asked for.
 * It may run in a child of vfork.
 */
void gmt_link_knock(const char *folder, const char *program);

#endif
