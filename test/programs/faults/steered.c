/*
 * steered: does what the lines of stdin say, and prints what came of each:
 *
 *	create SIZE   creates a buffer of SIZE MiB, and writes all of it
 *	release       releases what it has
 *	pause MS      does nothing for a while
 *
 * Status 0, whatever failed.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 1000 };

static cl_mem buffers[BUFFERS];
static size_t count;

static void create(const struct gpu *gpu, size_t size)
{
	const cl_uint pattern = (cl_uint)size;
	cl_int status = CL_OUT_OF_RESOURCES;
	cl_mem buffer = count < BUFFERS ? clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status) : NULL;
	if (buffer) {
		CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
		CHECK(clFinish(gpu->queue));
		buffers[count++] = buffer;
	}
	printf("create: %d\n", status);
}

static void release(void)
{
	printf("released: %zu\n", count);
	while (count > 0)
		CHECK(clReleaseMemObject(buffers[--count]));
}

int main(void)
{
	char line[64];
	struct gpu gpu = gpu_open(0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof line, stdin)) {
		char *end;
		unsigned long number = strchr(line, ' ') ? strtoul(strchr(line, ' '), &end, 10) : 0;
		if (strncmp(line, "create ", 7) == 0)
			create(&gpu, (size_t)number << 20);
		else if (strncmp(line, "pause ", 6) == 0)
			pause_us((long)number * 1000);
		else if (strcmp(line, "release\n") == 0)
			release();
		else
			fail("steered: what is %s", line);
	}
	release();
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
