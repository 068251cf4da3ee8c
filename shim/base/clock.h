/*
 * clock.h: CLOCK_MONOTONIC. If the kernel itself computes it from the processor's counter, we read the counter without the
 * kernel's code. That takes a third less time, or two thirds less if the order among instructions does not matter.
 */
#ifndef GMT_CLOCK_H
#define GMT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Called once, before other threads read the clock for events. Without it, all times are read from the system. */
void gmt_clock_start(void);
/* Called in a forked child: from here on, all times are read from the system. */
void gmt_clock_stop(void);

/* Called by a thread that is about to lose the right to read the counter: from here on, the process asks the kernel for every time. */
void gmt_clock_note_refusal(void);
/*
 * Called in a handler of SIGSEGV: whether this thread faulted because it had lost that right unseen. Then its reading of the
 * counter returns 0, which never counts as a time, and from here on the process asks the kernel for every time. inside: the
 * thread is in a hook.
 */
bool gmt_clock_handle_trap(void *context, bool inside);
/* Whether this thread, and those that it starts, have that right. If not, the process asks the kernel for every time. */
bool gmt_clock_permitted(void);
/* Sets the address of the core's word that becomes 0 when the kernel is asked for every time: see gmt_core_clock_fn in core.h. */
void gmt_clock_share_with_core(int64_t address);
/* Reads a clock of the system. */
uint64_t gmt_system_clock(clockid_t clock);

/*
 * CLOCK_MONOTONIC in ns, within a microsecond of the system's. Any thread may call it at any time. The reading is not moved
 * before preceding instructions: a thread that has seen another one's effects reads a time at most 10 ns earlier than that
 * thread's.
 */
uint64_t gmt_now(void);

/*
 * The same, but the reading may move by some instructions, so it may be less than an earlier gmt_now. For the beginning or the
 * end of a duration, never for the time of an event.
 */
uint64_t gmt_about_now(void);

/* ns from one time to another: 0 if the second was read too early. */
static inline uint64_t gmt_elapsed(uint64_t since, uint64_t until)
{
	return until > since ? until - since : 0;
}

/* The same for an event's field, at most what fits. */
static inline uint32_t gmt_took(uint64_t since, uint64_t until)
{
	uint64_t ns = gmt_elapsed(since, until);
	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

#endif
