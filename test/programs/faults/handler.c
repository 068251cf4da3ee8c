/*
 * handler: creates and releases buffers while signals arrive every 50 microseconds, whose handler needs much stack.
 * Whatever is loaded into a program must leave its handlers the stack that they are used to.
 *
 *	handler before|after|ssignal|sigset|dlsym|syscall [COUNT] [BYTES]
 *
 * before, after: when the handler is installed, seen from the first context. The others say how it is installed after it.
 */
#define _GNU_SOURCE
#include "common.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;
static volatile size_t stack;

static void __attribute__((noinline)) use_stack(size_t bytes)
{
	volatile char some[1024];
	memset((void *)(uintptr_t)some, 0x5a, sizeof some);
	if (bytes > sizeof some)
		use_stack(bytes - sizeof some);
	some[0] = 1; /* no tail call */
}

static void on_signal(int number)
{
	(void)number;
	signals = 1;
	use_stack(stack);
}

/* What the kernel takes, with the function that ends a handler, which the C library knows. */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static bool by_system_call(void)
{
	struct kernel_action action;
	if (signal(SIGALRM, SIG_DFL) == SIG_ERR || syscall(SYS_rt_sigaction, SIGALRM, NULL, &action, sizeof action.mask) != 0)
		return false;
	action.handler = on_signal;
	return syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, sizeof action.mask) == 0;
}

static bool from_the_c_library(const struct sigaction *action)
{
	int (*install)(int, const struct sigaction *, struct sigaction *) = NULL;
	void *library = dlopen("libc.so.6", RTLD_LAZY), *symbol = library ? dlsym(library, "sigaction") : NULL;
	memcpy(&install, &symbol, sizeof install);
	return install && install(SIGALRM, action, NULL) == 0;
}

/* Old programs still use it. */
static bool by_sigset(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	return sigset(SIGALRM, on_signal) != SIG_ERR;
#pragma GCC diagnostic pop
}

static void install(const char *way)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	bool done;
	if (strcmp(way, "ssignal") == 0)
		done = ssignal(SIGALRM, on_signal) != SIG_ERR;
	else if (strcmp(way, "sigset") == 0)
		done = by_sigset();
	else if (strcmp(way, "dlsym") == 0)
		done = from_the_c_library(&action);
	else if (strcmp(way, "syscall") == 0)
		done = by_system_call();
	else
		done = sigaction(SIGALRM, &action, NULL) == 0;
	if (!done)
		fail("cannot install a handler");
}

static void every(suseconds_t microseconds)
{
	struct itimerval timer = {{0, microseconds}, {0, microseconds}};
	if (setitimer(ITIMER_REAL, &timer, NULL) != 0)
		fail("cannot start a timer");
}

SITE(create_buffer)

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "before|after|ssignal|sigset|dlsym|syscall [COUNT] [BYTES]", 3);
	if (arguments.count < 1)
		fail("say when, before or after, or how");
	bool before = strcmp(arguments.values[0], "before") == 0;
	size_t count = arguments_count(&arguments, 1, 100000);
	stack = arguments_size(&arguments, 2, 200000);
	if (before)
		install("sigaction");
	struct gpu gpu = gpu_open(0);
	if (!before)
		install(arguments.values[0]);
	every(50);
	for (size_t i = 0; i < count; i++)
		CHECK(clReleaseMemObject(create_buffer(&gpu, 4096 * (1 + i % 64))));
	every(0);
	gpu_close(&gpu);
	if (!signals)
		fail("no signal arrived");
	print_checksum(&arguments, checksum(CHECKSUM_START, &count, sizeof count));
	return 0;
}
