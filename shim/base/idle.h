/*
 * idle.h: when the core's own thread may give blocks back while the program makes no calls. It stays out while a thread forks, a
 * context is released, or the process exits: a forked child would inherit the driver's locks as that thread held them.
 */
#ifndef GMT_IDLE_H
#define GMT_IDLE_H

#include <stdbool.h>

/* For the core's thread: false, if it has to look again later. */
bool gmt_idle_begin(void);
void gmt_idle_end(void);

/* Keeps the core's thread out until gmt_idle_go; waits for it to come out, if it is in a call of the driver, for a bounded time. */
void gmt_idle_stop(void);
void gmt_idle_go(void);
/* In a forked child. */
void gmt_idle_forget(void);

#endif
