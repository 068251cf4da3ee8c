/*
 * clock.h: CLOCK_MONOTONIC. Where the kernel itself takes it from the processor's counter, it is read from there without the
 * kernel's code, which takes a third less time, or two thirds where the order among instructions does not matter.
 */
#ifndef GMT_CLOCK_H
#define GMT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Once per process, before other threads read the clock for events. Without it all times are read from the system. */
void gmt_clock_start(void);
/* In a forked child: from here on all times are read from the system. */
void gmt_clock_stop(void);

/* This thread is about to lose the right to read the counter: from here on every time in the process is asked of the kernel. */
void gmt_clock_refused(void);
/*
 * In a handler of SIGSEGV: whether the fault is that this thread had lost the right unseen. Then its reading of the counter
 * ends with 0, which is never taken for a time, and from here on every time is asked of the kernel. inside: of a hook.
 */
bool gmt_clock_trapped(void *context, bool inside);
/* Whether this thread, and what it starts, has that right. If not, every time is asked of the kernel. */
bool gmt_clock_permitted(void);
/* The address of the core's word that is to become 0 with that: core.h. */
void gmt_clock_of_core(int64_t address);
/* A clock of the system. */
uint64_t gmt_system_clock(clockid_t clock);

/*
 * CLOCK_MONOTONIC, ns, within a microsecond of what the system says. Any thread, any time. It is read after all that precedes
 * it: a thread that has seen what another one did reads no earlier time, or one by less than 10 ns.
 */
uint64_t gmt_now(void);

/*
 * The same, but some instructions earlier or later, so that it may be less than a gmt_now before it: for the beginning or the
 * end of a duration, never for the time of an event.
 */
uint64_t gmt_about_now(void);

/* ns from one time to another: 0 if the second was read too early. */
static inline uint64_t gmt_elapsed(uint64_t since, uint64_t until)
{
	return until > since ? until - since : 0;
}

/* The same for an event: at most what fits. */
static inline uint32_t gmt_took(uint64_t since, uint64_t until)
{
	uint64_t ns = gmt_elapsed(since, until);
	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

#endif
