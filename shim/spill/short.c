/* short.c: see short.h. */
#define _GNU_SOURCE
#include "short.h"

static _Atomic bool is_short;
void (*gmt_spill_at_first_shortage)(void);

bool gmt_spill_is_short(void)
{
	return atomic_load_explicit(&is_short, memory_order_relaxed);
}

void gmt_spill_note_short(void)
{
	if (!atomic_exchange(&is_short, true) && gmt_spill_at_first_shortage)
		gmt_spill_at_first_shortage();
}
