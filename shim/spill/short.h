/* short.h: whether memory is short: anything was evicted in this process. */
#ifndef GMT_SPILL_SHORT_H
#define GMT_SPILL_SHORT_H

#include "../base/opencl.h"

/* Any lock or none. */
bool gmt_spill_is_short(void);
/* It is from now on. Under the residency lock. */
void gmt_spill_note_short(void);
/* What runs the first time, if anything. */
extern void (*gmt_spill_at_first_shortage)(void);

#endif
