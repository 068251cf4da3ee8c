/* driver.c: executes commands from its input, one a line, and answers each with a line. */
#define _GNU_SOURCE
#include "calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long rounds;
static int wrong;
static int stop;

/* Reads the end of the stack, since the kernel may not have mapped pages that were never touched. */
static void touch(void)
{
	volatile size_t read = strlen((const char *)getauxval(AT_EXECFN));
	for (char **variable = environ; *variable; variable++)
		read += strlen(*variable);
}

static void call(uint64_t thread, size_t size)
{
	int error = 1;
	uint64_t made = create(7, thread, size, NULL, &error);
	uint64_t want = size % 16 == 15 ? 0 : 7000000 + thread * 100000 + size;
	if (made != want || error != (want ? 0 : -61))
		__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

static void *many(void *thread)
{
	for (long i = 0; i < rounds && !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
		call((uintptr_t)thread, (size_t)(i % 100000));
	return NULL;
}

static pthread_t threads[64];
static int running;

static void start(int count)
{
	stop = 0;
	for (running = 0; running < count; running++)
		pthread_create(&threads[running], NULL, many, (void *)(uintptr_t)(running + 1));
}

static void join(void)
{
	while (running > 0)
		pthread_join(threads[--running], NULL);
}

/* A frame with known bytes, larger than the stack of a sample. */
static __attribute__((noinline)) void deep(void)
{
	volatile uint8_t pattern[20000];
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 256);
	call(1, 42);
	printf("%p\n", (void *)pattern);
}

/* A call with known values in the callee-saved registers; needs -mno-red-zone. */
static void registers(void)
{
	static int error;
	register int *to __asm__("r8") = &error;
	uint64_t (*function)(uint64_t, uint64_t, size_t, void *, int *) = create;
	__asm__ volatile("push %%rbx\n\tpush %%rbp\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n\t"
			 "sub $8, %%rsp\n\t"
			 "mov $0x11, %%rbx\n\tmov $0x12, %%rbp\n\tmov $0x13, %%r12\n\tmov $0x14, %%r13\n\t"
			 "mov $0x15, %%r14\n\tmov $0x16, %%r15\n\t"
			 "mov $7, %%edi\n\tmov $1, %%esi\n\tmov $77, %%edx\n\txor %%ecx, %%ecx\n\t"
			 "call *%%rax\n\t"
			 "add $8, %%rsp\n\t"
			 "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbp\n\tpop %%rbx"
			 : "+r"(to), "+a"(function)
			 :
			 : "rcx", "rdx", "rsi", "rdi", "r9", "r10", "r11", "memory", "cc");
}

static void arguments(void)
{
	static uint64_t table[2];
	struct {
		const void *dispatch;
	} kernel = {&table[0]}, memory = {&table[0]}, alien = {&table[1]};
	void *handle = &memory, *other = &alien, *none = NULL, *nowhere = (void *)8;
	int number = 5;
	set(&kernel, 0, sizeof handle, &handle);
	set(&kernel, 1, sizeof other, &other);
	set(&kernel, 2, sizeof number, &number);
	set(&kernel, 3, sizeof handle, NULL);
	set(&kernel, 4, sizeof none, &none);
	set(&kernel, 5, sizeof nowhere, &nowhere);
	name("sum_of_squares");
	static uint64_t values[100];
	for (uint64_t i = 0; i < 100; i++)
		values[i] = 1000 + i;
	list(3, values);
	list(100, values);
	list(0, NULL);
	printf("%p\n", handle);
}

/* Adds a filter that kills the process if it makes one of the system calls with which new kernels implement probes. */
static int confine(void)
{
	enum { uretprobe = 335, uprobe = 336 };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uretprobe, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uprobe, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof code[0], code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		call(9, 900);
		_exit(3);
	}
	waitpid(pid, NULL, 0);
	printf("%d\n", pid);
}

static void *last(void *unused)
{
	(void)unused;
	struct timespec pause = {0, 20000000};
	nanosleep(&pause, NULL);
	return NULL;
}

/* Executes this program again. */
static void *again(void *arguments)
{
	char **arguments_of_main = arguments;
	execv(arguments_of_main[0], arguments_of_main);
	return NULL;
}

/* Prints how long a number of calls took, ns. */
static void time_calls(long count)
{
	struct timespec before, after;
	int error;
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (long i = 0; i < count; i++)
		create(7, 1, 2, NULL, &error);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("%ld\n", (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec);
}

static int obey(const char *word, long one, long two, char **arguments_of_main)
{
	if (!strcmp(word, "run"))
		rounds = two, start((int)one), join(), printf("%d\n", wrong);
	else if (!strcmp(word, "start"))
		rounds = 1L << 60, start((int)one), printf("%d\n", wrong);
	else if (!strcmp(word, "stop"))
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED), join(), printf("%d\n", wrong);
	else if (!strcmp(word, "shallow"))
		touch(), call(1, 43), printf("0\n");
	else if (!strcmp(word, "deep"))
		deep();
	else if (!strcmp(word, "registers"))
		registers(), printf("0\n");
	else if (!strcmp(word, "arguments"))
		arguments();
	else if (!strcmp(word, "use"))
		use((uint64_t)one), printf("0\n");
	else if (!strcmp(word, "launch")) {
		uint64_t event = 0;
		launch((uint64_t)one, 1, 2, 3, 4, 5, 0, NULL, &event), launch((uint64_t)one, 1, 2, 3, 4, 5, 0, NULL, NULL), printf("0\n");
	} else if (!strcmp(word, "hold"))
		printf("holding\n"), fflush(stdout), printf("%d\n", hold((int)one));
	else if (!strcmp(word, "confine"))
		printf("%d\n", confine());
	else if (!strcmp(word, "fork"))
		child();
	else if (!strcmp(word, "exec"))
		return execv(arguments_of_main[0], arguments_of_main);
	else if (!strcmp(word, "threadexec")) {
		pthread_t thread;
		pthread_create(&thread, NULL, again, arguments_of_main);
		pthread_join(thread, NULL);
	} else if (!strcmp(word, "time"))
		time_calls(one);
	else if (!strcmp(word, "last")) {
		pthread_t thread;
		pthread_create(&thread, NULL, last, NULL);
		pthread_exit(NULL);
	} else
		exit((int)one);
	return 0;
}

int main(int argc, char **argv)
{
	char line[128], word[32];
	(void)argc;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		long one = 0, two = 0;
		sscanf(line, "%31s %ld %ld", word, &one, &two);
		obey(word, one, two, argv);
		fflush(stdout);
	}
	return 0;
}
