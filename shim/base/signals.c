/*
 * signals.c: see signals.h. Hooks of sigaction, signal, their relatives and syscall() see the handlers that the program
 * installs; gmt_signals_save looks for those installed before the core starts.
 */
#define _GNU_SOURCE
#include "signals.h"

#include "dispatch.h"
#include "flight_ends.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

_Atomic int gmt_handlers;

/* Whether a thread's own instructions raise the signal: then never inside the core, unless the core is broken. */
static bool is_synchronous(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP;
}

static bool has_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Notes a handler without SA_ONSTACK. With it, a handler has a stack of its own: Go provides one for threads without. */
static void note_handler(int number, const struct sigaction *action)
{
	if (has_handler(action) && !(action->sa_flags & SA_ONSTACK) && !is_synchronous(number))
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

#ifndef GMT_NO_DLSYM

/* Whether the program's calls reach the hooks below: not if we are only a layer of a loader. */
static bool reaches_hooks(void)
{
	void *found = gmt_real_dlsym()(RTLD_DEFAULT, "sigaction"), *ours = NULL;
	int (*hook)(int, const struct sigaction *, struct sigaction *) = sigaction;
	memcpy(&ours, &hook, sizeof ours);
	return found == ours;
}

#endif

void gmt_signals_save(struct gmt_dispositions *before)
{
#ifndef GMT_NO_DLSYM
	if (!reaches_hooks())
		atomic_store_explicit(&gmt_handlers, 1, memory_order_relaxed);
#endif
	for (int i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &before->action[i]) != 0)
			before->action[i].sa_handler = SIG_DFL;
		note_handler(i, &before->action[i]);
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
		if ((is_synchronous(i) && !has_handler(was)) || sigaction(i, NULL, &now) != 0)
			continue;
		bool same = now.sa_handler == was->sa_handler;
		if (same ? now.sa_flags != was->sa_flags : in_library(&now, inside))
			sigaction(i, was, NULL);
	}
}

#ifndef GMT_NO_DLSYM /* sanitizers define these, too */

/* glibc's other names for the functions that we hook. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);
sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t ssignal(int number, sighandler_t handler);
sighandler_t sysv_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

GMT_HOOK int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
	struct sigaction instead;
	if (action) {
		note_handler(number, action);
		instead = *action;
		instead.sa_handler = gmt_flight_handler_instead(number, action->sa_handler);
	}
	int err = __sigaction(number, action ? &instead : NULL, before);
	if (before && err == 0)
		before->sa_handler = gmt_flight_handler_to_show(before->sa_handler);
	return err;
}

GMT_HOOK sighandler_t signal(int number, sighandler_t handler)
{
	note_handler(number, &(struct sigaction){.sa_handler = handler});
	return gmt_flight_handler_to_show(bsd_signal(number, gmt_flight_handler_instead(number, handler)));
}

GMT_HOOK sighandler_t ssignal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

/* signal() in programs compiled for strict ISO C: the handler serves once and blocks nothing. */
GMT_HOOK sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	struct sigaction before, action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
	return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

GMT_HOOK sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return __sysv_signal(number, handler);
}

/* sigset(), signal() of System V release 3: SIG_HOLD blocks the signal, every other disposition unblocks it. */
GMT_HOOK sighandler_t hook_sigset(int number, sighandler_t handler) __asm__("sigset");
GMT_HOOK sighandler_t hook_sigset(int number, sighandler_t handler)
{
	struct sigaction before, action = {.sa_handler = handler};
	bool hold = handler == SIG_HOLD;
	sigset_t one, mask;
	sigemptyset(&one);
	if (sigaddset(&one, number) != 0 || sigaction(number, hold ? NULL : &action, &before) != 0)
		return SIG_ERR;
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &one, &mask);
	return sigismember(&mask, number) ? SIG_HOLD : before.sa_handler;
}

/* The kernel's struct sigaction. */
struct kernel_action {
	sighandler_t handler;
	unsigned long flags;
};

void gmt_signals_note_raw(long number, long action)
{
	const struct kernel_action *raw = NULL;
	memcpy(&raw, &action, sizeof raw);
	if (raw)
		note_handler((int)number, &(struct sigaction){.sa_handler = raw->handler, .sa_flags = (int)raw->flags});
}

static const struct {
	const char *name;
	sighandler_t (*hook)(int number, sighandler_t handler);
} named[] = {
	{"signal", signal},   {"ssignal", ssignal},         {"sysv_signal", sysv_signal},
	{"sigset", hook_sigset},   {"__sysv_signal", __sysv_signal},
};

/* Whether two functions are in the same library. */
static bool in_same_library(const void *a, const void *b)
{
	Dl_info one, other;
	return a && dladdr(a, &one) && dladdr(b, &other) && one.dli_fbase == other.dli_fbase;
}

void *gmt_signals_hook_named(const char *name, void *real)
{
	int (*ours)(int, const struct sigaction *, struct sigaction *) = sigaction;
	int (*libc)(int, const struct sigaction *, struct sigaction *) = __sigaction;
	void *found = NULL, *inside = NULL;
	memcpy(&inside, &libc, sizeof inside);
	if (strcmp(name, "sigaction") == 0 || strcmp(name, "__sigaction") == 0)
		memcpy(&found, &ours, sizeof found);
	for (size_t i = 0; !found && i < sizeof named / sizeof *named; i++)
		if (strcmp(name, named[i].name) == 0)
			memcpy(&found, &named[i].hook, sizeof found);
	return found && in_same_library(real, inside) ? found : NULL;
}

#endif
