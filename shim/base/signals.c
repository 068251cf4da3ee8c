/*
 * signals.c: see signals.h. Hooks of sigaction and signal see what the program installs; gmt_signals_save looks at what
 * was there before the core starts.
 */
#define _GNU_SOURCE
#include "signals.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

_Atomic int gmt_handlers;

/* A thread raises these itself, so never inside the core, unless the core is broken. */
static bool synchronous(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP;
}

static bool handled(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* A handler with SA_ONSTACK has its own stack: Go provides one for threads without. */
static void note(int number, const struct sigaction *action)
{
	if (handled(action) && !(action->sa_flags & SA_ONSTACK) && !synchronous(number))
		atomic_store_explicit(&gmt_handlers, 1, memory_order_relaxed);
}

void gmt_signals_block(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void gmt_signals_unblock(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

void gmt_signals_save(struct gmt_dispositions *before)
{
	for (int i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &before->action[i]) != 0)
			before->action[i].sa_handler = SIG_DFL;
		note(i, &before->action[i]);
	}
}

static bool in_library(const struct sigaction *action, const void *inside)
{
	Dl_info theirs, core;
	void *handler = NULL;
	memcpy(&handler, &action->sa_handler, sizeof handler);
	return inside && dladdr(inside, &core) && dladdr(handler, &theirs) && core.dli_fbase == theirs.dli_fbase;
}

/*
 * Go makes existing handlers run on its small signal stacks and installs its own for some signals. Only Go's fault
 * handlers may stay, and only where the program has none: they turn a fault of the core into an error. Handlers that
 * another thread of the program installed meanwhile stay as well.
 */
void gmt_signals_restore(const struct gmt_dispositions *before, const void *inside)
{
	for (int i = 1; i < NSIG; i++) {
		const struct sigaction *was = &before->action[i];
		struct sigaction now;
		if ((synchronous(i) && !handled(was)) || sigaction(i, NULL, &now) != 0)
			continue;
		bool same = now.sa_handler == was->sa_handler;
		if (same ? now.sa_flags != was->sa_flags : in_library(&now, inside))
			sigaction(i, was, NULL);
	}
}

#ifndef GMT_NO_DLSYM /* sanitizers define these, too */

/* glibc's other names for the functions that we hook. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);
sighandler_t ssignal(int number, sighandler_t handler);
sighandler_t sysv_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

GMT_HOOK int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
	if (action)
		note(number, action);
	return __sigaction(number, action, before);
}

GMT_HOOK sighandler_t signal(int number, sighandler_t handler)
{
	note(number, &(struct sigaction){.sa_handler = handler});
	return ssignal(number, handler);
}

/* What signal() is called in programs compiled for strict ISO C. */
GMT_HOOK sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	note(number, &(struct sigaction){.sa_handler = handler});
	return sysv_signal(number, handler);
}

#endif
