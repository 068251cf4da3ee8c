/* exit.c: memory that is released when the program ends: by atexit, and by a destructor, which comes later. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct gpu gpu;
static cl_mem left[4];

/* Prints a line past stdio, which may have been closed already. */
static void say(const char *name, bool ok)
{
	char line[64];
	int length = snprintf(line, sizeof line, "%s %s\n", name, ok ? "ok" : "FAILED: an error from a release or create");
	if (length > 0 && write(STDOUT_FILENO, line, (size_t)length) < 0)
		_exit(1);
	if (!ok)
		_exit(1);
}

static bool release_and_create(size_t first)
{
	bool ok = clReleaseMemObject(left[first]) == CL_SUCCESS && clReleaseMemObject(left[first + 1]) == CL_SUCCESS;
	cl_mem another = new_buffer(&gpu, CL_MEM_READ_WRITE, 4096, NULL);
	return ok && another != NULL && references(another) == 1 && clReleaseMemObject(another) == CL_SUCCESS;
}

static void at_exit(void)
{
	say("release_from_atexit", release_and_create(0));
}

__attribute__((destructor)) static void at_the_very_end(void)
{
	if (left[0] != NULL) /* else the program ended before */
		say("release_from_destructor", release_and_create(2));
}

void leave_to_exit(struct bench *bench)
{
	gpu = bench->gpu;
	for (size_t i = 0; i < 4; i++) {
		left[i] = new_buffer(&gpu, CL_MEM_READ_WRITE, 4096 - i, NULL);
		CHECK(set_all(&gpu, left[i], 16, 1));
		if (i % 2 == 0)
			CHECK(clFinish(gpu.queue));
	}
	if (atexit(at_exit) != 0)
		fail("conformance: cannot register for the end");
}
