/*
 * flight_ends.c: writes the flight log however the process ends. exit() runs handlers, and at last the destructor of this
 * library. _exit() and signals run none: we hook _exit() and install handlers for signals. Only SIGKILL cannot be noticed.
 */
#define _GNU_SOURCE
#include "flight_ends.h"

#include "call.h"
#include "dispatch.h"
#include "flight.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Signals that end a process by default, sent from outside, by abort() or by a fault. */
static const int ending[] = {SIGHUP, SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

static bool replaced;  /* our handlers stand in for the defaults */
static bool forgiving; /* our handler stands in for the default of SIGSEGV, for faults of our clock */
static bool informed[NSIG]; /* our handler of this signal gets siginfo, so that it can recognise a fault; not with the program's flags */

static bool is_ending(int number)
{
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
		if (ending[i] == number)
			return true;
	return false;
}

int __sigaction(int number, const struct sigaction *action, struct sigaction *before); /* not our hook */

/*
 * The handler: writes the flight log, then has the signal do what it would have done. A fault recurs, with its address, when
 * the handler returns and the instruction runs again; a signal that was sent is raised. In a child of vfork() nothing is
 * written.
 */
static void handle_ending_signal(int number, siginfo_t *info, void *context)
{
	if (number == SIGSEGV && gmt_clock_handle_trap(context, gmt_inside))
		return;
	struct sigaction usual = {.sa_handler = SIG_DFL};
	gmt_flight_write(-1, number);
	__sigaction(number, &usual, NULL);
	if (!informed[number] || info->si_code <= 0)
		raise(number); /* delivered when this handler returns */
}

/* handle_ending_signal as a handler of one argument: where it needs its context, the kernel passes it whatever the flags. */
static sighandler_t ending_handler(void)
{
	union {
		void (*with_context)(int, siginfo_t *, void *);
		sighandler_t handler;
	} ours = {handle_ending_signal};
	return ours.handler;
}

sighandler_t gmt_flight_handler_instead(int number, sighandler_t handler)
{
	bool ours = (replaced && is_ending(number)) || (forgiving && number == SIGSEGV);
	if (gmt_likely(!ours || handler != SIG_DFL))
		return handler;
	informed[number] = false;
	return ending_handler();
}

sighandler_t gmt_flight_handler_to_show(sighandler_t handler)
{
	return gmt_unlikely(handler == ending_handler()) ? SIG_DFL : handler;
}

static void write_at_exit(int status, void *nothing)
{
	(void)nothing;
	gmt_flight_write(status, 0);
}

static void write_at_quick_exit(void)
{
	gmt_flight_write(-1, 0);
}

/* Runs after destructors of the program and its libraries, which may have released memory. */
__attribute__((destructor)) static void write_after_destructors(void)
{
	gmt_flight_write_again();
}

static void replace_default(int number)
{
	struct sigaction now, ours = {.sa_sigaction = handle_ending_signal, .sa_flags = SA_ONSTACK | SA_RESTART | SA_SIGINFO};
	if (__sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
		informed[number] = true;
		__sigaction(number, &ours, NULL);
	}
}

/* Signals do not end process 1 by default. */
void gmt_flight_catch_ends(void)
{
	on_exit(write_at_exit, NULL);
	at_quick_exit(write_at_quick_exit);
	replaced = getpid() != 1;
	for (size_t i = 0; i < sizeof ending / sizeof *ending && replaced; i++)
		replace_default(ending[i]);
}

void gmt_flight_catch_faults(void)
{
#ifdef __x86_64__
	forgiving = true;
	replace_default(SIGSEGV);
#endif
}

#ifndef GMT_NO_DLSYM /* sanitizers define these, too */

static void (*next_exit)(int status);
static void (*next_abort)(void);

/* Before main: a child of vfork() that ends must not call the linker. */
__attribute__((constructor)) static void find_next_exits(void)
{
	void *found = gmt_real_dlsym()(RTLD_NEXT, "_exit");
	memcpy(&next_exit, &found, sizeof found);
	found = gmt_real_dlsym()(RTLD_NEXT, "abort");
	memcpy(&next_abort, &found, sizeof found);
}

GMT_HOOK void _exit(int status)
{
	gmt_flight_write(status, 0);
	if (next_exit)
		next_exit(status);
	for (;;)
		(void)syscall(SYS_exit_group, status);
}

GMT_HOOK void _Exit(int status)
{
	_exit(status);
}

/* A driver's handler of SIGABRT may come before ours (LLVM's). */
GMT_HOOK void abort(void)
{
	gmt_flight_write(-1, SIGABRT);
	if (next_abort)
		next_abort();
	for (;;)
		__builtin_trap();
}

#endif
