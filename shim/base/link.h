/*
 * link.h: the socket to the session, which only shows whether the session and the process live. The program may close any
 * descriptor and use its number again, so nothing here touches the descriptor without proof that it still is ours.
 */
#ifndef GMT_LINK_H
#define GMT_LINK_H

#include "opencl.h"

void gmt_link_open(int socket);
void gmt_link_close(void);
/* Waits for some time; true if the session is gone. Threads are not cancelled here. */
bool gmt_link_lost(uint32_t nanoseconds);
/*
 * Reports to the session of a runtime folder a program that is not watched. "": this process; otherwise the name of a program
 * that it starts, after GMT_OUTSIDER_FOREIGN if that is for another machine or C library. After GMT_OUTSIDER_ASKED it reports
 * which devices this process asked for. It may run in a child of vfork.
 */
void gmt_link_knock(const char *folder, const char *program);

#endif
