/* chain.c: calls capture below everything that makes a stack hard to walk. */
#define _GNU_SOURCE
#include "record.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define KEEP __attribute__((noinline, noclone))
#ifdef __clang__
#undef KEEP
#define KEEP __attribute__((noinline))
#endif

static volatile int zero;

KEEP static int innermost(int value)
{
	capture("chain");
	return value + zero;
}

KEEP static int again(int value)
{
	return through(innermost, value * 3, 2) + zero;
}

KEEP static int many_registers(int a, int b, int c, int d, int e, int f)
{
	int total = through(again, a, 3);
	for (int i = 0; i < 3; i++)
		total += through(again, a * b + c, 0) * (d + e) - f;
	return total;
}

KEEP static int with_alloca(int size)
{
	char *memory = alloca((size_t)size + 100);
	memset(memory, size, (size_t)size);
	capture("alloca");
	return memory[size / 2] + zero;
}

/* Aligns the stack, so that the caller's frame is found through a saved pointer. */
KEEP static int realigned(int size)
{
	alignas(64) volatile char aligned[64];
	char *memory = alloca((size_t)size);
	memset(memory, 1, (size_t)size);
	aligned[size % 64] = memory[0];
	capture("realigned");
	return aligned[size % 64] + with_alloca(size) + zero;
}

KEEP static int large_frame(int value)
{
	volatile char room[9000];
	room[value] = 1;
	capture("large frame");
	return room[value] + zero;
}

KEEP static int huge_frame(int value)
{
	volatile char room[20000];
	room[value] = 1;
	capture("truncated");
	return room[value] + zero;
}

static int compare(const void *a, const void *b)
{
	static int told;
	if (!told++)
		capture("callback of the C library");
	return *(const int *)a - *(const int *)b;
}

KEEP static int sorted(void)
{
	int numbers[4] = {3, 1, 2, 0};
	qsort(numbers, 4, sizeof numbers[0], compare);
	return numbers[0] + zero;
}

static void while_choosing(void)
{
	capture("dynamic linker");
}

static void handler(int number)
{
	capture("signal");
	zero = number - number;
}

KEEP static int signalled(void)
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	return zero;
}

static void elsewhere(int number)
{
	capture("alternate stack"); /* the interrupted frames are on another stack, which is not captured */
	zero = number - number;
}

KEEP static int signalled_elsewhere(void)
{
	static char room[64 << 10];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
	sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_handler = elsewhere, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
	return zero;
}

static void coroutine(void)
{
	capture("coroutine");
}

KEEP static int switched(void)
{
	static ucontext_t here, there;
	static char room[64 << 10];
	getcontext(&there);
	there.uc_stack.ss_sp = room;
	there.uc_stack.ss_size = sizeof room;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
	return zero;
}

KEEP static int plain(int value)
{
	return value + zero;
}

static volatile sig_atomic_t stepping, steps;

static void stepped(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	ucontext_t *here = context;
	if (!stepping)
		here->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
	else if (++steps < 250 || steps % 23 == 0)
		capture("step");
}

/* Runs with the processor's trap flag, so that capture is called between all instructions, also of prologues and PLT. */
KEEP static int step_by_step(void)
{
	struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &action, NULL);
	struct timespec now;
	stepping = 1;
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
	clock_gettime(CLOCK_MONOTONIC, &now); /* looked up by the dynamic linker, and in the vdso */
	int value = through(plain, zero, 1);
	stepping = 0;
	return value + zero;
}

static void *in_thread(void *arg)
{
	int *value = arg;
	*value += through(innermost, *value, 1);
	return arg;
}

int main(int argc, char **argv)
{
	(void)argv;
	int value = many_registers(argc, 2, 3, 4, 5, 6);
	value += realigned(argc * 333) + large_frame(argc) + huge_frame(argc) + sorted() + signalled();
	value += signalled_elsewhere() + switched();
	choosing = while_choosing;
	value += chosen(argc);
	choosing = NULL;
	pthread_t thread;
	pthread_create(&thread, NULL, in_thread, &value);
	pthread_join(thread, NULL);
	value += step_by_step();
	zero = value & 0;
	finish();
	return value;
}
