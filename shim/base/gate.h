/*
 * gate.h: lets one thread at a time into the core, so that decisions have an order (enum gmtorder in event.h). The others wait
 * here: if they waited in Go, the runtime would need a thread for each (entry/room.h), and the wait would take longer than the
 * whole call. The core's own thread passes the gate, too.
 */
#ifndef GMT_GATE_H
#define GMT_GATE_H

#include "core.h"
#include "opencl.h"

enum { GMT_GATE_OPEN, GMT_GATE_TAKEN, GMT_GATE_AWAITED };

struct gmt_gate {
	_Alignas(64) _Atomic uint32_t state; /* GMT_GATE_AWAITED: taken, and others may sleep */
};

extern struct gmt_gate gmt_gate;
extern struct gmt_ledger gmt_ledger; /* for the thread that has passed the gate */

void gmt_gate_wait(void);
void gmt_gate_wake(void);

static inline void gmt_gate_enter(void)
{
	uint32_t open = GMT_GATE_OPEN;
	if (gmt_unlikely(!atomic_compare_exchange_strong_explicit(&gmt_gate.state, &open, GMT_GATE_TAKEN, memory_order_acquire,
								  memory_order_relaxed)))
		gmt_gate_wait();
}

static inline void gmt_gate_leave(void)
{
	if (gmt_unlikely(atomic_exchange_explicit(&gmt_gate.state, GMT_GATE_OPEN, memory_order_release) == GMT_GATE_AWAITED))
		gmt_gate_wake();
}

#endif
