/*
 * forker: forks children that use OpenCL: one before the parent does, one after it did (which may only create, ask and
 * release: a driver's threads do not survive fork), and one that runs another program. Waits for all of them.
 *
 *	forker [-t] [ITERATIONS] [SIZE] [raw]     raw: by _Fork(), which runs no handlers
 */
#define _GNU_SOURCE
#include "work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool raw;

static pid_t start_child(void)
{
	pid_t child = raw ? _Fork() : fork();
	if (child < 0)
		fail("cannot fork: %s", strerror(errno));
	return child;
}

/* Waits for a child and adds how it ended to the checksum. */
static uint64_t await(pid_t child, uint64_t hash)
{
	int status;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			fail("cannot wait: %s", strerror(errno));
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail("a child ended with status %x", (unsigned)status);
	return checksum(hash, &status, sizeof status);
}

static _Noreturn void early_child(size_t iterations, size_t size)
{
	struct gpu gpu = gpu_open(0);
	uint64_t hash = work(&gpu, iterations, size);
	gpu_close(&gpu);
	_exit(hash == 0);
}

/* kept was created by the parent; this process holds a copy. */
static _Noreturn void late_child(const struct gpu *gpu, cl_mem kept, size_t size)
{
	cl_mem buffer = create_worked(gpu, size);
	size_t answer = 0;
	CHECK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof answer, &answer, NULL));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(kept));
	if (raw && answer == size)
		exit(EXIT_SUCCESS);
	_exit(answer != size);
}

/* Runs this very program, alone, for one piece of work. Its output goes nowhere. */
static _Noreturn void exec_child(const char *name)
{
	if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 && setenv("FORKER_CHILD", "1", 1) == 0)
		execl("/proc/self/exe", name, (char *)NULL);
	_exit(125);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE] [raw]", 3);
	raw = arguments.count > 2;
	size_t iterations = arguments_count(&arguments, 0, 20);
	size_t size = arguments_size(&arguments, 1, 64u << 10);
	if (getenv("FORKER_CHILD") != NULL)
		early_child(iterations, size);

	pid_t early = start_child();
	if (early == 0)
		early_child(iterations, size);
	uint64_t hash = await(early, CHECKSUM_START);

	struct gpu gpu = gpu_open(0);
	cl_mem kept = create_worked(&gpu, size);
	uint64_t before = work(&gpu, iterations, size);
	pid_t late = start_child();
	if (late == 0)
		late_child(&gpu, kept, size);
	pid_t other = start_child();
	if (other == 0)
		exec_child(argv[0]);
	uint64_t after = work(&gpu, iterations, size);
	hash = await(other, await(late, hash));
	CHECK(clReleaseMemObject(kept));
	gpu_close(&gpu);
	hash = checksum(checksum(hash, &before, sizeof before), &after, sizeof after);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
