/*
 * squeezed: lets the kernel give its user only a few threads more than there are, before its first OpenCL call, after that, or
 * once its context is open, and works on, in some threads as far as it gets them. Root has no such limit: it becomes another user.
 *
 *	squeezed [-t] first | later | open FREE [ITERATIONS] [SIZE]
 */
#define _GNU_SOURCE
#include "work.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, USER = 61234 };

static struct gpu gpu;
static size_t iterations, size;

/* Entries of a folder that are numbers. */
static size_t numbers_in(const char *path)
{
	size_t count = 0;
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	if (folder)
		closedir(folder);
	return count;
}

/* The threads of all processes of this user. */
static size_t threads_of_user(void)
{
	size_t count = 0;
	DIR *folder = opendir("/proc");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[512];
		struct stat about;
		snprintf(path, sizeof path, "/proc/%s/task", entry->d_name);
		if (stat(path, &about) == 0 && about.st_uid == getuid())
			count += numbers_in(path);
	}
	if (folder)
		closedir(folder);
	return count;
}

static void squeeze(size_t free_threads)
{
	rlim_t most = threads_of_user() + free_threads;
	const struct rlimit limit = {most, most};
	if (syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, NULL) != 0) /* gpumemtop's threads are among those counted */
		fail("squeezed: no limit can be set");
}

static void *work_here(void *hash)
{
	*(uint64_t *)hash = work(&gpu, iterations, size);
	return NULL;
}

/* All work is done, by threads or not. */
static uint64_t work_in_threads(void)
{
	pthread_t threads[THREADS];
	uint64_t done[THREADS], hash = CHECKSUM_START;
	bool started[THREADS];
	for (int i = 0; i < THREADS; i++)
		started[i] = pthread_create(&threads[i], NULL, work_here, &done[i]) == 0;
	for (int i = 0; i < THREADS; i++) {
		if (started[i])
			pthread_join(threads[i], NULL);
		else
			work_here(&done[i]);
		hash = checksum(hash, &done[i], sizeof done[i]);
	}
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "first | later | open FREE [ITERATIONS] [SIZE]", 4);
	const char *when = arguments.count > 0 ? arguments.values[0] : "";
	size_t free_threads = arguments.count > 1 ? strtoul(arguments.values[1], NULL, 10) : 0; /* may be 0 */
	iterations = arguments_count(&arguments, 2, 50);
	size = arguments_size(&arguments, 3, 64u << 10);
	cl_platform_id platform;
	if (getuid() == 0 && (setgid(USER) || setuid(USER)))
		fail("squeezed: no other user");
	if (strcmp(when, "first") == 0)
		squeeze(free_threads);
	CHECK(clGetPlatformIDs(1, &platform, NULL));
	if (strcmp(when, "later") == 0)
		squeeze(free_threads);
	gpu = gpu_open(0);
	if (strcmp(when, "open") == 0)
		squeeze(free_threads);
	uint64_t hash = work_in_threads();
	print_checksum(&arguments, hash);
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
