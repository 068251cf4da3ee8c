/*
 * gate.h: how many threads of the program may be in the core at once. The Go runtime adds a thread of its own where others
 * wait or are on their way, so this bounds how many it needs (entry/room.h).
 */
#ifndef GMT_GATE_H
#define GMT_GATE_H

#include "opencl.h"

#define GMT_GATE_MOST 4

struct gmt_gate {
	_Alignas(64) _Atomic uint32_t inside; /* and before it */
	_Atomic uint32_t free;                /* places that were given to threads before it */
};

/* Of calls that may wait in the core for another thread's call, and of all others. */
extern struct gmt_gate gmt_gate_plan, gmt_gate_core;

void gmt_gate_wait(struct gmt_gate *gate);
void gmt_gate_pass_on(struct gmt_gate *gate);

static inline void gmt_gate_enter(struct gmt_gate *gate)
{
	if (gmt_unlikely(atomic_fetch_add_explicit(&gate->inside, 1, memory_order_acquire) >= GMT_GATE_MOST))
		gmt_gate_wait(gate);
}

static inline void gmt_gate_leave(struct gmt_gate *gate)
{
	if (gmt_unlikely(atomic_fetch_sub_explicit(&gate->inside, 1, memory_order_release) > GMT_GATE_MOST))
		gmt_gate_pass_on(gate);
}

#endif
