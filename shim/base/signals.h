/*
 * signals.h: calls into the Go core, safe from the program's signal handlers. Go code runs on small stacks. A handler
 * without SA_ONSTACK would run on such a stack and write beyond it.
 */
#ifndef GMT_SIGNALS_H
#define GMT_SIGNALS_H

#include "gate.h"
#include "session.h"

#include <signal.h>

/* 1 once the program has a handler without SA_ONSTACK for an asynchronous signal. */
extern _Atomic int gmt_handlers;

struct gmt_signals {
	bool held;
	sigset_t mask;
};

void gmt_signals_block(sigset_t *before);
void gmt_signals_unblock(const sigset_t *before);

/* Executes a statement inside the core's gate, with all signals blocked if the program has such a handler. */
#define GMT_GATED(what)                                                                                                \
	__extension__({                                                                                                \
		struct gmt_signals gmt_signals;                                                                        \
		gmt_signals.held = atomic_load_explicit(&gmt_handlers, memory_order_relaxed);                          \
		if (gmt_unlikely(gmt_signals.held))                                                                    \
			gmt_signals_block(&gmt_signals.mask);                                                          \
		gmt_gate_enter();                                                                                      \
		int64_t gmt_result = (what);                                                                           \
		gmt_gate_leave();                                                                                      \
		if (gmt_unlikely(gmt_signals.held))                                                                    \
			gmt_signals_unblock(&gmt_signals.mask);                                                        \
		gmt_result;                                                                                            \
	})

/* Calls the Go core. */
#define GMT_CORE(call) GMT_GATED(gmt_session.core.call)

/* The program's handlers before the core starts: afterwards they are restored, because Go changes them. */
struct gmt_dispositions {
	struct sigaction action[NSIG];
};
void gmt_signals_save(struct gmt_dispositions *before);
/* inside: any address in the core's library. */
void gmt_signals_restore(const struct gmt_dispositions *before, const void *inside);

/* Notes a handler that the program installs by syscall(), from the arguments of rt_sigaction. */
void gmt_signals_note_raw(long number, long action);

/* Our hook for a function of the C library that installs handlers; NULL for any other function. */
void *gmt_signals_hook_named(const char *name, void *real);

#endif
