/*
 * idle.h: when the core's own thread may give blocks back while the program makes no calls. It stays out while a thread forks, a
 * context is released, or the process exits: a forked child would inherit the driver's locks as that thread held them.
 */
#ifndef GMT_IDLE_H
#define GMT_IDLE_H

#include <stdbool.h>

/* Called by the core's thread before such work. False: it must try later. */
bool gmt_idle_begin(void);
void gmt_idle_end(void);

/* Keeps the core's thread out until gmt_idle_go. If it is in a call of the driver, waits a bounded time for it to return. */
void gmt_idle_stop(void);
void gmt_idle_go(void);
/* Called in a forked child: nothing is kept out there. */
void gmt_idle_forget(void);

#endif
