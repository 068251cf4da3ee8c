/* gate.c: see gate.h. */
#define _GNU_SOURCE
#include "gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gmt_gate gmt_gate_plan, gmt_gate_core;

void gmt_gate_wait(struct gmt_gate *gate)
{
	for (;;) {
		uint32_t free = atomic_load_explicit(&gate->free, memory_order_relaxed);
		if (free == 0)
			(void)syscall(SYS_futex, &gate->free, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		else if (atomic_compare_exchange_weak_explicit(&gate->free, &free, free - 1, memory_order_acquire, memory_order_relaxed))
			return;
	}
}

void gmt_gate_pass_on(struct gmt_gate *gate)
{
	atomic_fetch_add_explicit(&gate->free, 1, memory_order_release);
	(void)syscall(SYS_futex, &gate->free, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
