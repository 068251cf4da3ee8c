/*
 * barred: creates and releases buffers on many threads after it had the kernel refuse it further threads. It prints how many
 * descriptors wait for events.
 *
 *	barred [THREADS] [CREATES]
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 256

static struct gpu opened;
static size_t creates;
static pthread_barrier_t barrier;

static bool bar(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

SITE(create_buffer)

static void create(size_t pages)
{
	CHECK(clReleaseMemObject(create_buffer(&opened, 4096 * pages)));
}

static void *work(void *unused)
{
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < creates; i++)
		create(1 + i % 7);
	return unused;
}

static int event_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 1024; fd++) {
		char path[32], target[64] = "";
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof target - 1) > 0 && strncmp(target, "anon_inode:[event", 17) == 0)
			count++;
	}
	return count;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[THREADS] [CREATES]", 2);
	size_t count = arguments_count(&arguments, 0, 64);
	creates = arguments_count(&arguments, 1, 500);
	opened = gpu_open(0);
	create(1);
	pthread_t threads[MOST];
	if (count > MOST || pthread_barrier_init(&barrier, NULL, (unsigned)count + 1) != 0)
		fail("too many threads");
	for (size_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			fail("cannot create a thread");
	if (!bar())
		fail("cannot bar threads");
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%d event descriptors\n", event_descriptors());
	print_checksum(&arguments, checksum(CHECKSUM_START, &count, sizeof count));
	return 0;
}
