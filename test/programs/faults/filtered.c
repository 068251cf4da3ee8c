/*
 * filtered: has the kernel kill it for system calls that it has no more use for, before its first OpenCL call or after some
 * rounds of work, and works on. Or, after those rounds, it is refused calls about signals, and works on in this thread and in
 * one that was made before.
 *
 *	filtered [-t] early | late | signals [ITERATIONS] [SIZE]
 */
#define _GNU_SOURCE
#include "work.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILLED(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define TALKING KILLED(SYS_socket), KILLED(SYS_connect), KILLED(SYS_memfd_create), KILLED(SYS_sendmsg), KILLED(SYS_sendto)
#define REFUSED(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define OPENING KILLED(SYS_open), KILLED(SYS_openat), KILLED(SYS_clone), KILLED(SYS_clone3), KILLED(SYS_execve)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ALLOWED BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* In all threads. */
static void install(struct sock_filter *filter, size_t length)
{
	struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		fail("filtered: no filter can be installed");
}

static struct gpu gpu;
static size_t iterations, size;
static pthread_barrier_t barrier;

static uint64_t work_in_sizes(void)
{
	uint64_t hash = CHECKSUM_START;
	for (size_t i = 0; i < 8; i++) { /* what is cached of one size is no use to the next */
		uint64_t done = work(&gpu, iterations / 8, size * (i + 1));
		hash = checksum(hash, &done, sizeof done);
	}
	return hash;
}

/* Its first OpenCL call comes after the filter. */
static void *work_later(void *hash)
{
	pthread_barrier_wait(&barrier);
	*(uint64_t *)hash = work_in_sizes();
	return NULL;
}

int main(int argc, char **argv)
{
	struct sock_filter early[] = {NUMBER, TALKING, ALLOWED}, late[] = {NUMBER, TALKING, OPENING, ALLOWED};
	struct sock_filter signals[] = {NUMBER, REFUSED(SYS_rt_sigprocmask), REFUSED(SYS_sigaltstack), ALLOWED};
	struct arguments arguments = arguments_read(argc, argv, "early | late | signals [ITERATIONS] [SIZE]", 3);
	const char *when = arguments.count > 0 ? arguments.values[0] : "late";
	iterations = arguments_count(&arguments, 1, 300);
	size = arguments_size(&arguments, 2, 1u << 20);
	if (strcmp(when, "early") == 0)
		install(early, sizeof early / sizeof *early);
	gpu = gpu_open(0);
	uint64_t hash = work(&gpu, 5, size), others = 0;
	pthread_t thread;
	bool refused = strcmp(when, "signals") == 0; /* a second thread opens files, for malloc() */
	if (refused && (pthread_barrier_init(&barrier, NULL, 2) != 0 || pthread_create(&thread, NULL, work_later, &others) != 0))
		fail("filtered: no thread can be made");
	if (strcmp(when, "late") == 0)
		install(late, sizeof late / sizeof *late);
	if (refused) {
		install(signals, sizeof signals / sizeof *signals);
		pthread_barrier_wait(&barrier);
	}
	uint64_t mine = work_in_sizes();
	if (refused)
		pthread_join(thread, NULL);
	hash = checksum(checksum(hash, &mine, sizeof mine), &others, sizeof others);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
