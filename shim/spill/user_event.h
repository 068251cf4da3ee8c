/* user_event.h: user events that the program has not set yet: what waits for one does not end by itself. */
#ifndef GMT_SPILL_USER_EVENT_H
#define GMT_SPILL_USER_EVENT_H

#include "context.h"

/* Whether there is one. */
bool gmt_spill_gated(void);
/* Whether one is this thread's, as far as is known. */
bool gmt_spill_gated_here(void);
/* How often the first of them was made. */
uint64_t gmt_spill_gate_epoch(void);
/* This thread has set one. */
void gmt_spill_gate_opened(void);
void gmt_spill_override_user_events(struct gmt_functions *over);

#endif
