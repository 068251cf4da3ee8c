/*
 * sites: creates 10,000 buffers, each at a place of its own in one function, and releases them.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

enum { SITES = 10000 };
static cl_mem buffers[SITES];

#define CREATE *buffer++ = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
#define TEN(x) x x x x x x x x x x

static __attribute__((noinline)) void create_all(cl_context context)
{
	cl_mem *buffer = buffers;
	TEN(TEN(TEN(TEN(CREATE))))
}

int main(int argc, char **argv)
{
	arguments_read(argc, argv, "", 0);
	struct gpu gpu = gpu_open(0);
	create_all(gpu.context);
	for (size_t i = 0; i < SITES; i++)
		CHECK(clReleaseMemObject(buffers[i]));
	gpu_close(&gpu);
	printf("%d buffers\n", SITES);
	return EXIT_SUCCESS;
}
