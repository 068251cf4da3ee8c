/* eager: prints whether the process grows by 256 MiB with the create of such a buffer, and with its first use. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 256 << 20 };

SITE(create_plain)

static size_t mapped(void)
{
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%zu", &pages) != 1)
		fail("eager: /proc/self/statm cannot be read");
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static const char *grows(size_t bytes)
{
	return bytes >= SIZE / 2 ? "yes" : "no";
}

int main(void)
{
	struct gpu gpu = gpu_open(0);
	unsigned char *bytes = allocate(SIZE), first = 0;
	bytes[0] = 7;
	size_t before = mapped();
	cl_mem plain = create_plain(&gpu, SIZE);
	size_t created = mapped();
	CHECK(clEnqueueFillBuffer(gpu.queue, plain, "\5", 1, 0, 1, 0, NULL, NULL));
	CHECK(clFinish(gpu.queue));
	printf("create %s, use %s\n", grows(created - before), grows(mapped() - created));
	CHECK(clReleaseMemObject(plain));
	cl_int err = CL_SUCCESS;
	cl_mem copy = clCreateBuffer(gpu.context, CL_MEM_COPY_HOST_PTR, SIZE, bytes, &err);
	CHECK(err);
	CHECK(clEnqueueReadBuffer(gpu.queue, copy, CL_TRUE, 0, 1, &first, 0, NULL, NULL));
	printf("first byte %d\n", first);
	CHECK(clReleaseMemObject(copy));
	free(bytes);
	gpu_close(&gpu);
	return 0;
}
