/*
 * handler: creates and releases buffers while signals arrive every 50 microseconds, whose handler needs much stack.
 * Whatever is loaded into a program must leave its handlers the stack that they are used to.
 *
 *	handler before|after [COUNT] [BYTES]    before, after: when the handler is installed, seen from the first context
 */
#include "common.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

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

static void install(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	if (sigaction(SIGALRM, &action, NULL) != 0)
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
	struct arguments arguments = arguments_read(argc, argv, "before|after [COUNT] [BYTES]", 3);
	if (arguments.count < 1)
		fail("say when: before or after");
	bool before = strcmp(arguments.values[0], "before") == 0;
	size_t count = arguments_count(&arguments, 1, 100000);
	stack = arguments_size(&arguments, 2, 200000);
	if (before)
		install();
	struct gpu gpu = gpu_open(0);
	if (!before)
		install();
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
