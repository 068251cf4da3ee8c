/*
 * filtered: has the kernel kill it for system calls that it has no more use for, before its first OpenCL call or after some
 * rounds of work, and works on.
 *
 *	filtered [-t] early | late [ITERATIONS] [SIZE]
 */
#define _GNU_SOURCE
#include "work.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILLED(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define TALKING KILLED(SYS_socket), KILLED(SYS_connect), KILLED(SYS_memfd_create), KILLED(SYS_sendmsg), KILLED(SYS_sendto)
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

int main(int argc, char **argv)
{
	struct sock_filter early[] = {NUMBER, TALKING, ALLOWED}, late[] = {NUMBER, TALKING, OPENING, ALLOWED};
	struct arguments arguments = arguments_read(argc, argv, "early | late [ITERATIONS] [SIZE]", 3);
	bool begins = arguments.count > 0 && strcmp(arguments.values[0], "early") == 0;
	size_t iterations = arguments_count(&arguments, 1, 300), size = arguments_size(&arguments, 2, 1u << 20);
	if (begins)
		install(early, sizeof early / sizeof *early);
	struct gpu gpu = gpu_open(0);
	uint64_t hash = work(&gpu, 5, size);
	if (!begins)
		install(late, sizeof late / sizeof *late);
	for (size_t i = 0; i < 8; i++) { /* what is cached of one size is no use to the next */
		uint64_t done = work(&gpu, iterations / 8, size * (i + 1));
		hash = checksum(hash, &done, sizeof done);
	}
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
