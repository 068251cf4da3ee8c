/* refuse_others.c: unmaps, fills, migrations, kernel arguments and reference counts that must be refused, or just not. */
#include "queries.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned char host[8192];

static void refuse_unmaps(const struct gpu *gpu, const char *label, size_t size)
{
	cl_int code;
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL), other = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
#define UNMAP(what, queue, memory, pointer)                                                                            \
	print_error(label, "clEnqueueUnmapMemObject", what, clEnqueueUnmapMemObject((queue), (memory), (pointer), 0, NULL, NULL))
	UNMAP("never mapped, NULL", gpu->queue, buffer, NULL);
	UNMAP("never mapped", gpu->queue, buffer, host);
	unsigned char *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, &code);
	CHECK(code);
	UNMAP("NULL", gpu->queue, buffer, NULL);
	UNMAP("another pointer", gpu->queue, buffer, host);
	UNMAP("a byte further", gpu->queue, buffer, mapped + 1);
	UNMAP("another buffer", gpu->queue, other, mapped);
	UNMAP("no buffer", gpu->queue, NULL, mapped);
	UNMAP("no queue", NULL, buffer, mapped);
	CHECK(clFinish(gpu->queue));
	settle(buffer, 2); /* PoCL counts a map as a reference */
	ask_memory_object("buffer after refused unmaps", buffer);
	UNMAP("right", gpu->queue, buffer, mapped);
	CHECK(clFinish(gpu->queue));
	UNMAP("twice", gpu->queue, buffer, mapped);
#undef UNMAP
	CHECK(clReleaseMemObject(other));
	CHECK(clReleaseMemObject(buffer));
}

static void refuse_fills(const struct gpu *gpu, const char *label, size_t size)
{
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	const struct {
		const char *what;
		size_t pattern, offset, size;
	} fills[] = {
		{"no pattern", 0, 0, 4},           {"pattern of 3", 3, 0, 3},        {"pattern of 256", 256, 0, 256},
		{"pattern of 128", 128, 0, 128},   {"uneven offset", 4, 2, 4},       {"uneven size", 4, 0, 6},
		{"uneven and beyond", 4, 2, size}, {"as much as fits", 16, 0, size / 16 * 16}, {"one pattern more", 16, 0, size / 16 * 16 + 16},
		{"no pattern, beyond", 0, 0, size + 1},
	};
	for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
		print_error(label, "clEnqueueFillBuffer", fills[i].what,
			    clEnqueueFillBuffer(gpu->queue, buffer, host, fills[i].pattern, fills[i].offset, fills[i].size, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseMemObject(buffer));
}

static void refuse_migrations(const struct gpu *gpu, const char *label, size_t size)
{
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	const cl_mem some[2] = {buffer, NULL};
#define MIGRATE(what, count, list, flags)                                                                              \
	print_error(label, "clEnqueueMigrateMemObjects", what,                                                         \
		    clEnqueueMigrateMemObjects(gpu->queue, (count), (list), (flags), 0, NULL, NULL))
	MIGRATE("right", 1, some, 0);
	MIGRATE("to the host", 1, some, CL_MIGRATE_MEM_OBJECT_HOST);
	MIGRATE("contents undefined", 1, some, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
	MIGRATE("none", 0, some, 0);
	MIGRATE("no list", 1, NULL, 0);
	MIGRATE("unknown flag", 1, some, (cl_mem_migration_flags)1 << 40);
	MIGRATE("one is NULL", 2, some, 0);
#undef MIGRATE
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseMemObject(buffer));
}

static void refuse_arguments(const struct gpu *gpu, const char *label, size_t size)
{
	const char *source = "kernel void add(global int *data, constant int *table, int by) { data[get_global_id(0)] += by + table[0]; }";
	cl_program program = gpu_build(gpu, source);
	cl_kernel kernel = gpu_kernel(program, "add");
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL), none = NULL;
	cl_int by = 1;
	size_t items = 1, zero = 0;
#define SET(what, index, bytes, value) print_error(label, "clSetKernelArg", what, clSetKernelArg(kernel, (index), (bytes), (value)))
#define RUN(what, dimensions, global)                                                                                  \
	print_error(label, "clEnqueueNDRangeKernel", what,                                                             \
		    clEnqueueNDRangeKernel(gpu->queue, kernel, (dimensions), NULL, (global), NULL, 0, NULL, NULL))
	RUN("no arguments", 1, &items);
	SET("right", 0, sizeof buffer, &buffer);
	RUN("not all arguments", 1, &items);
	SET("size too small", 0, sizeof buffer - 1, &buffer);
	SET("size too large", 0, sizeof buffer + 1, &buffer);
	SET("no value", 2, sizeof by, NULL);
	SET("a number of another size", 2, sizeof by + 1, &by);
	SET("an invalid index", 3, sizeof by, &by);
	SET("constant", 1, sizeof buffer, &buffer);
	SET("number", 2, sizeof by, &by);
	RUN("right", 1, &items);
	RUN("no dimensions", 0, &items);
	RUN("four dimensions", 4, &items);
	RUN("no work", 1, &zero);
	SET("NULL buffer", 0, sizeof none, &none);
	SET("NULL value", 0, sizeof none, NULL);
#undef SET
#undef RUN
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
}

static void refuse_null(const struct gpu *gpu, const char *label)
{
	cl_int code;
	cl_event event = NULL;
	print_error(label, "clRetainMemObject", "NULL", clRetainMemObject(NULL));
	print_error(label, "clReleaseMemObject", "NULL", clReleaseMemObject(NULL));
	print_error(label, "clGetMemObjectInfo", "NULL", clGetMemObjectInfo(NULL, CL_MEM_SIZE, 0, NULL, NULL));
	print_error(label, "clGetImageInfo", "NULL", clGetImageInfo(NULL, CL_IMAGE_WIDTH, 0, NULL, NULL));
	print_error(label, "clSetMemObjectDestructorCallback", "NULL", clSetMemObjectDestructorCallback(NULL, NULL, NULL));
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, 4000, NULL);
	print_error(label, "clSetMemObjectDestructorCallback", "no function", clSetMemObjectDestructorCallback(buffer, NULL, NULL));
	print_error(label, "clGetImageInfo", "a buffer", clGetImageInfo(buffer, CL_IMAGE_WIDTH, 0, NULL, NULL));
	CHECK(clReleaseMemObject(buffer));
	print_error(label, "clFinish", "NULL", clFinish(NULL));
	print_error(label, "clFlush", "NULL", clFlush(NULL));
	print_error(label, "clWaitForEvents", "none", clWaitForEvents(0, NULL));
	print_error(label, "clWaitForEvents", "no list", clWaitForEvents(1, NULL));
	print_error(label, "clWaitForEvents", "NULL", clWaitForEvents(1, &event));
	print_error(label, "clRetainContext", "NULL", clRetainContext(NULL));
	print_error(label, "clReleaseContext", "NULL", clReleaseContext(NULL));
	print_error(label, "clReleaseCommandQueue", "NULL", clReleaseCommandQueue(NULL));
	cl_command_queue queue = clCreateCommandQueueWithProperties(NULL, gpu->device, NULL, &code);
	print_error(label, "clCreateCommandQueueWithProperties", queue ? "no context: a queue" : "no context", code);
	cl_event user = clCreateUserEvent(NULL, &code);
	print_error(label, "clCreateUserEvent", user ? "no context: an event" : "no context", code);
}

void refuse_others(const struct gpu *gpu)
{
	const size_t sizes[] = {4096, 4000, 2049, 65000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char label[32];
		snprintf(label, sizeof label, "%zu bytes", sizes[i]);
		refuse_unmaps(gpu, label, sizes[i]);
		refuse_fills(gpu, label, sizes[i]);
		refuse_migrations(gpu, label, sizes[i]);
		refuse_arguments(gpu, label, sizes[i]);
	}
	refuse_null(gpu, "NULL");
	print_references("after other refusals", gpu);
}
