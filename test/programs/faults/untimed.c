/*
 * untimed: gives up the processor's time stamp counter, by whose faults programs replay and isolate others, and creates and
 * releases buffers. Which thread does it, and how:
 *
 *	untimed [-t] first | prctl | syscall | unseen | thread | strict [CREATES]
 */
#define _GNU_SOURCE
#include "common.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct gpu opened;
static size_t creates;

SITE(create_buffer)

static void create(size_t count)
{
	for (size_t i = 0; i < count; i++)
		CHECK(clReleaseMemObject(create_buffer(&opened, 4096 * (1 + i % 7))));
}

static void give_up(void)
{
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
		fail("untimed: the counter cannot be given up");
}

/* By our own instruction, as another process may do it for this one: no library sees it. */
static void give_up_unseen(void)
{
	long result = 0;
#ifdef __x86_64__
	__asm__ volatile("syscall" : "=a"(result) : "0"((long)SYS_prctl), "D"((long)PR_SET_TSC), "S"((long)PR_TSC_SIGSEGV) : "rcx", "r11", "memory");
#endif
	if (result != 0)
		fail("untimed: the counter cannot be given up");
}

static void *work(void *unused)
{
	give_up();
	create(creates);
	return unused;
}

/* Not even the C library's end of a thread is permitted. */
static void *work_strictly(void *unused)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		fail("untimed: no strict mode");
	create(creates);
	(void)syscall(SYS_exit, 0);
	return unused;
}

static void in_thread(void *(*what)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, what, NULL) != 0 || pthread_join(thread, NULL) != 0)
		fail("untimed: no thread");
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "first | prctl | syscall | unseen | thread | strict [CREATES]", 2);
	const char *how = arguments.count ? arguments.values[0] : "prctl";
	creates = arguments_count(&arguments, 1, 20000);
	opened = gpu_open(0);
	if (strcmp(how, "first") == 0)
		give_up();
	create(creates); /* longer than the clock takes to find its rate */
	if (strcmp(how, "thread") == 0)
		in_thread(work);
	else if (strcmp(how, "strict") == 0)
		in_thread(work_strictly);
	else if (strcmp(how, "syscall") == 0 && syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
		fail("untimed: the counter cannot be given up");
	else if (strcmp(how, "prctl") == 0)
		give_up();
	else if (strcmp(how, "unseen") == 0)
		give_up_unseen();
	create(creates);
	print_checksum(&arguments, checksum(CHECKSUM_START, &creates, sizeof creates));
	return 0;
}
