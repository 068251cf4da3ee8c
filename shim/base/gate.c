/* gate.c: see gate.h. */
#include "gate.h"

#include "lock.h"

#define LOOKS 200 /* before a thread sleeps; they take as long as a few calls of the core */

struct gmt_gate gmt_gate;
struct gmt_ledger gmt_ledger;

static bool take_by_spinning(void)
{
	for (int i = 0; i < LOOKS; i++) {
		uint32_t state = atomic_load_explicit(&gmt_gate.state, memory_order_relaxed);
		if (state == GMT_GATE_OPEN && atomic_compare_exchange_weak_explicit(&gmt_gate.state, &state, GMT_GATE_TAKEN,
										    memory_order_acquire, memory_order_relaxed))
			return true;
		gmt_cpu_pause();
	}
	return false;
}

/* A thread that has slept does not know whether others sleep: it unlocks as if some did. */
void gmt_gate_wait(void)
{
	if (take_by_spinning())
		return;
	while (atomic_exchange_explicit(&gmt_gate.state, GMT_GATE_AWAITED, memory_order_acquire) != GMT_GATE_OPEN)
		gmt_futex_wait(&gmt_gate.state, GMT_GATE_AWAITED, 0);
}

void gmt_gate_wake(void)
{
	gmt_futex_wake(&gmt_gate.state, 1);
}
