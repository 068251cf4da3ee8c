/*
 * mistakes: makes the mistake that is asked for, and says what OpenCL answered. A dead handle is only safe to use while
 * gpumemtop's pool stands in front of the driver: double-release and use-after-release may crash without it.
 *
 *	mistakes KIND|nearly-KIND [TIMES]
 *
 * nearly-KIND does what looks like the mistake and is right.
 */
#include "work.h"

#include <CL/cl_icd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

static const char *const source =
	"__kernel void keep(__global const uint *in, __global uint *out) {\n"
	"	uint i = get_global_id(0);\n"
	"	out[i] = in[i];\n"
	"}\n";

SITE(create_victim)
SITE(create_result)

/* Creates a buffer and writes all of it. */
static cl_mem create_written(const struct gpu *gpu)
{
	const cl_uint pattern = 0x600dda7au;
	cl_mem buffer = create_victim(gpu, SIZE);
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, SIZE, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
	return buffer;
}

/* Reads a buffer; returns what OpenCL says. */
static cl_int read_all(const struct gpu *gpu, cl_mem buffer)
{
	void *host = allocate(SIZE);
	cl_int status = clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, SIZE, host, 0, NULL, NULL);
	free(host);
	return status;
}

static cl_int release_twice(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	CHECK(clReleaseMemObject(buffer));
	return clReleaseMemObject(buffer);
}

/* Creates a buffer through the driver's own dispatch table, where hooks of clCreateBuffer do not see it. */
static cl_int release_unknown(const struct gpu *gpu)
{
	struct _cl_icd_dispatch *driver;
	cl_int status;
	memcpy(&driver, gpu->context, sizeof driver);
	cl_mem buffer = driver->clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, SIZE, NULL, &status);
	CHECK(status);
	return clReleaseMemObject(buffer);
}

static cl_int use_after_release(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	CHECK(clReleaseMemObject(buffer));
	return read_all(gpu, buffer);
}

static cl_int use_in_wrong_context(const struct gpu *gpu)
{
	struct gpu other = gpu_open(0);
	cl_mem buffer = create_written(gpu);
	cl_int answer = read_all(&other, buffer);
	CHECK(clReleaseMemObject(buffer));
	gpu_close(&other);
	return answer;
}

static cl_int release_mapped(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	cl_int status;
	clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 0, SIZE, 0, NULL, NULL, &status);
	CHECK(status);
	return clReleaseMemObject(buffer);
}

static cl_int end_of(pid_t child)
{
	int status = -1;
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("no child");
	return status;
}

static cl_int use_in_child(const struct gpu *gpu)
{
	pid_t child = fork();
	if (child == 0) {
		CHECK(clReleaseMemObject(create_victim(gpu, SIZE)));
		_exit(0);
	}
	return end_of(child);
}

/* One child asks and releases what it has of its parent, as exit handlers do, another one runs a program. */
static cl_int end_in_child(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	pid_t child = fork();
	if (child == 0) {
		size_t size;
		CHECK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL));
		CHECK(clReleaseMemObject(buffer));
		_exit(0);
	}
	cl_int answer = end_of(child);
	child = fork();
	if (child == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	CHECK(clReleaseMemObject(buffer));
	return answer | end_of(child);
}

/* Creates a buffer that a pool serves with used memory, and writes nothing to it. */
static cl_mem create_stale(const struct gpu *gpu)
{
	CHECK(clReleaseMemObject(create_written(gpu)));
	return create_victim(gpu, SIZE);
}

static cl_int read_stale(const struct gpu *gpu)
{
	cl_mem buffer = create_stale(gpu);
	cl_int answer = read_all(gpu, buffer);
	CHECK(clReleaseMemObject(buffer));
	return answer;
}

/* With the option that makes drivers report how a kernel may access its arguments. */
static cl_program build_with_arguments(const struct gpu *gpu)
{
	cl_int status;
	const char *text = source;
	cl_program program = clCreateProgramWithSource(gpu->context, 1, &text, NULL, &status);
	CHECK(status);
	CHECK(clBuildProgram(program, 1, &gpu->device, "-cl-kernel-arg-info", NULL, NULL));
	return program;
}

/* Gives a kernel two buffers: it reads the first and writes the second. */
static cl_int give(const struct gpu *gpu, cl_mem buffer, cl_mem result)
{
	cl_program program = build_with_arguments(gpu);
	cl_kernel keep = gpu_kernel(program, "keep");
	const size_t items = SIZE / sizeof(cl_uint);
	gpu_arguments(keep, sizeof(cl_mem), &buffer, sizeof(cl_mem), &result, (size_t)0);
	cl_int answer = clEnqueueNDRangeKernel(gpu->queue, keep, 1, NULL, &items, NULL, 0, NULL, NULL);
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(result));
	CHECK(clReleaseKernel(keep));
	CHECK(clReleaseProgram(program));
	return answer;
}

static cl_int give_stale(const struct gpu *gpu)
{
	return give(gpu, create_stale(gpu), create_result(gpu, SIZE));
}

static cl_int write_stale(const struct gpu *gpu)
{
	return give(gpu, create_written(gpu), create_stale(gpu));
}

static cl_int leak(const struct gpu *gpu)
{
	(void)create_written(gpu);
	return CL_SUCCESS;
}

static cl_int release_retained(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	CHECK(clRetainMemObject(buffer));
	CHECK(clReleaseMemObject(buffer));
	return clReleaseMemObject(buffer);
}

/* The buffer lives until its sub-buffer is released, too. */
static cl_int release_part_last(const struct gpu *gpu)
{
	cl_buffer_region half = {0, SIZE / 2};
	cl_int status;
	cl_mem buffer = create_written(gpu);
	cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &status);
	CHECK(status);
	CHECK(clReleaseMemObject(buffer));
	return clReleaseMemObject(part);
}

/* A command that is queued keeps what it uses. */
static cl_int release_while_read(const struct gpu *gpu)
{
	void *host = allocate(SIZE);
	cl_mem buffer = create_written(gpu);
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_FALSE, 0, SIZE, host, 0, NULL, NULL));
	cl_int answer = clReleaseMemObject(buffer);
	CHECK(clFinish(gpu->queue));
	free(host);
	return answer;
}

static cl_int use_in_each_context(const struct gpu *gpu)
{
	struct gpu other = gpu_open(0);
	cl_mem buffer = create_written(gpu), another = create_written(&other);
	cl_int answer = read_all(&other, another);
	CHECK(read_all(gpu, buffer));
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(another));
	gpu_close(&other);
	return answer;
}

/* The unmap need not have completed. */
static cl_int release_unmapped(const struct gpu *gpu)
{
	cl_mem buffer = create_written(gpu);
	cl_int status;
	void *pointer = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 0, SIZE, 0, NULL, NULL, &status);
	CHECK(status);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, pointer, 0, NULL, NULL));
	return clReleaseMemObject(buffer);
}

static cl_int read_fresh(const struct gpu *gpu)
{
	cl_mem buffer = create_stale(gpu);
	cl_int status;
	void *pointer = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, SIZE, 0, NULL, NULL, &status);
	CHECK(status);
	memset(pointer, 1, SIZE);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, pointer, 0, NULL, NULL));
	cl_int answer = read_all(gpu, buffer);
	CHECK(clReleaseMemObject(buffer));
	return answer;
}

static const struct {
	const char *name;
	cl_int (*make)(const struct gpu *gpu); /* returns what the wrong call answered */
} kinds[] = {
	{"double-release", release_twice},   {"unknown-release", release_unknown}, {"use-after-release", use_after_release},
	{"wrong-context", use_in_wrong_context}, {"still-mapped", release_mapped}, {"stale-read", read_stale},
	{"stale-argument", give_stale},      {"leak", leak}, {"use-after-fork", use_in_child},
	{"nearly-double-release", release_retained},     {"nearly-unknown-release", release_part_last},
	{"nearly-use-after-release", release_while_read}, {"nearly-wrong-context", use_in_each_context},
	{"nearly-still-mapped", release_unmapped},       {"nearly-stale-read", read_fresh},
	{"nearly-stale-argument", write_stale}, {"nearly-use-after-fork", end_in_child},
};

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "KIND [TIMES]", 2);
	size_t times = arguments_count(&arguments, 1, 1);
	for (size_t i = 0; arguments.count > 0 && i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(arguments.values[0], kinds[i].name) != 0)
			continue;
		struct gpu gpu = gpu_open(0);
		for (size_t n = 0; n < times; n++)
			printf("%s: answer %d\n", kinds[i].name, (int)kinds[i].make(&gpu));
		gpu_close(&gpu);
		return EXIT_SUCCESS;
	}
	fail("%s: want a kind of mistake: double-release, unknown-release, use-after-release, wrong-context, still-mapped, "
	     "stale-read, stale-argument, use-after-fork or leak, or one that nearly is",
	     arguments.program);
}
