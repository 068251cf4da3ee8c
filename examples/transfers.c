/*
 * transfers: moves bytes between host and device in a way that gpumemtop finds fault with, or nearly so.
 *
 *	transfers [-t] [ITERATIONS] [SIZE] [MODE]     SIZE: bytes of the buffers
 *
 * MODE (by default clean) says what each iteration does besides running a kernel:
 *
 *	rewrite    writes the same bytes again                nearly-rewrite    other bytes
 *	readback   reads back what it has just written        nearly-readback   what the kernel made of it
 *	unchanged  reads what the device has not changed      nearly-unchanged  what it has
 *	unified    writes and reads                           nearly-unified    maps; so does clean
 *	copyhost   uses a copy of host memory (only once)     nearly-copyhost   host memory itself
 *	cold       reads into new memory                      nearly-cold       into memory that it keeps
 *	small      writes in many small parts                 nearly-small      that do not follow each other
 *	blocking   waits for four bytes of the result         nearly-blocking   reads them, and waits at the end
 *	profiled   writes without waiting, through a queue that measures how long it takes
 */
#define _GNU_SOURCE
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PART = 4096 };

static const char *const source =
	"__kernel void work(__global const uint *in, __global uint *out, uint words, uint by) {\n"
	"	uint i = get_global_id(0);\n"
	"	if (i < words) out[i] = (in[i] ^ by) * 2654435761u + i;\n"
	"}\n";

struct job {
	struct gpu gpu;
	cl_kernel kernel;
	cl_mem in, out;
	size_t size;
	unsigned char *host, *back; /* of that size */
	uint64_t hash;
};

SITE(create_result)

static __attribute__((noinline)) cl_mem create_input(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_ONLY | flags, size, host, &status);
	CHECK(status);
	return buffer;
}

static void run(struct job *job, size_t iteration)
{
	cl_uint words = (cl_uint)(job->size / sizeof(cl_uint)), by = (cl_uint)iteration;
	gpu_arguments(job->kernel, sizeof job->in, &job->in, sizeof job->out, &job->out, sizeof words, &words, sizeof by, &by, (size_t)0);
	gpu_run(&job->gpu, job->kernel, words);
}

static __attribute__((noinline)) void write_part(struct job *job, size_t at, size_t bytes)
{
	CHECK(clEnqueueWriteBuffer(job->gpu.queue, job->in, CL_TRUE, at, bytes, job->host + at, 0, NULL, NULL));
}

static __attribute__((noinline)) void read_from(struct job *job, cl_mem buffer, void *to)
{
	CHECK(clEnqueueReadBuffer(job->gpu.queue, buffer, CL_TRUE, 0, job->size, to, 0, NULL, NULL));
	job->hash = checksum(job->hash, to, job->size);
}

static void write_all(struct job *job, size_t seed)
{
	fill_random(job->host, job->size, seed);
	write_part(job, 0, job->size);
}

static void *map(struct job *job, cl_mem buffer, cl_map_flags flags)
{
	cl_int status;
	void *pointer = clEnqueueMapBuffer(job->gpu.queue, buffer, CL_TRUE, flags, 0, job->size, 0, NULL, NULL, &status);
	CHECK(status);
	return pointer;
}

static void unmap(struct job *job, cl_mem buffer, void *pointer)
{
	CHECK(clEnqueueUnmapMemObject(job->gpu.queue, buffer, pointer, 0, NULL, NULL));
}

static void map_result(struct job *job)
{
	void *pointer = map(job, job->out, CL_MAP_READ);
	job->hash = checksum(job->hash, pointer, job->size);
	unmap(job, job->out, pointer);
}

static void clean(struct job *job, size_t i)
{
	void *pointer = map(job, job->in, CL_MAP_WRITE_INVALIDATE_REGION);
	fill_random(pointer, job->size, i);
	unmap(job, job->in, pointer);
	run(job, i);
}

static void rewrite(struct job *job, size_t i)
{
	write_all(job, 1);
	run(job, i);
}

static void nearly_rewrite(struct job *job, size_t i)
{
	write_all(job, i);
	run(job, i);
}

static void readback(struct job *job, size_t i)
{
	write_all(job, i);
	run(job, i);
	read_from(job, job->in, job->back);
}

static void nearly_readback(struct job *job, size_t i)
{
	write_all(job, i);
	run(job, i);
	read_from(job, job->out, job->back);
}

static void unchanged(struct job *job, size_t i)
{
	if (i == 0)
		run(job, i);
	read_from(job, job->out, job->back);
}

static void nearly_unchanged(struct job *job, size_t i)
{
	run(job, i);
	read_from(job, job->out, job->back);
}

static void copyhost(struct job *job, size_t i)
{
	run(job, i);
}

static void cold(struct job *job, size_t i)
{
	run(job, i);
	void *pages = mmap(NULL, job->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		fail("no memory");
	read_from(job, job->out, pages);
	munmap(pages, job->size);
}

static void write_parts(struct job *job, size_t i, size_t apart)
{
	fill_random(job->host, job->size, i);
	for (size_t at = 0; at < job->size; at += PART * apart)
		write_part(job, at, job->size - at < PART ? job->size - at : PART);
	run(job, i);
}

static void small(struct job *job, size_t i)
{
	write_parts(job, i, 1);
}

static void nearly_small(struct job *job, size_t i)
{
	write_parts(job, i, 2);
}

static void read_word(struct job *job, size_t i, cl_bool blocking)
{
	run(job, i);
	CHECK(clEnqueueReadBuffer(job->gpu.queue, job->out, blocking, 0, sizeof(cl_uint), job->back, 0, NULL, NULL));
}

static void blocking(struct job *job, size_t i)
{
	read_word(job, i, CL_TRUE);
}

static void nearly_blocking(struct job *job, size_t i)
{
	read_word(job, i, CL_FALSE);
}

static void profiled(struct job *job, size_t i)
{
	cl_event written;
	fill_random(job->host, job->size, i);
	CHECK(clEnqueueWriteBuffer(job->gpu.queue, job->in, CL_FALSE, 0, job->size, job->host, 0, NULL, &written));
	run(job, i);
	CHECK(clFinish(job->gpu.queue));
	CHECK(clReleaseEvent(written));
}

static const struct mode {
	const char *name;
	void (*iteration)(struct job *, size_t);
	cl_mem_flags flags; /* of the input */
} modes[] = {
	{"clean", clean, CL_MEM_ALLOC_HOST_PTR},
	{"rewrite", rewrite, 0},
	{"nearly-rewrite", nearly_rewrite, 0},
	{"readback", readback, 0},
	{"nearly-readback", nearly_readback, 0},
	{"unchanged", unchanged, 0},
	{"nearly-unchanged", nearly_unchanged, 0},
	{"unified", nearly_readback, 0},
	{"nearly-unified", clean, CL_MEM_ALLOC_HOST_PTR},
	{"copyhost", copyhost, CL_MEM_COPY_HOST_PTR},
	{"nearly-copyhost", copyhost, CL_MEM_USE_HOST_PTR},
	{"cold", cold, 0},
	{"nearly-cold", nearly_unchanged, 0},
	{"small", small, 0},
	{"nearly-small", nearly_small, 0},
	{"blocking", blocking, 0},
	{"nearly-blocking", nearly_blocking, 0},
	{"profiled", profiled, 0},
};

static const struct mode *mode_named(const char *name)
{
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	fail("no mode %s: see examples/transfers.c", name);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE] [MODE]", 3);
	size_t iterations = arguments_count(&arguments, 0, 20);
	struct job job = {.size = arguments_size(&arguments, 1, 4u << 20), .hash = CHECKSUM_START};
	const struct mode *mode = mode_named(arguments.count > 2 ? arguments.values[2] : "clean");

	job.gpu = gpu_open(mode->iteration == profiled ? CL_QUEUE_PROFILING_ENABLE : 0);
	cl_program program = gpu_build(&job.gpu, source);
	job.kernel = gpu_kernel(program, "work");
	job.host = aligned_alloc(PART, (job.size + PART - 1) / PART * PART);
	job.back = allocate(job.size);
	if (!job.host)
		fail("no memory");
	fill_random(job.host, job.size, 0);
	memset(job.back, 0, job.size);
	bool with_host = mode->flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
	job.in = create_input(&job.gpu, mode->flags, job.size, with_host ? job.host : NULL);
	job.out = create_result(&job.gpu, job.size);
	if (!mode->flags)
		write_part(&job, 0, job.size);

	uint64_t start = now_ns();
	for (size_t i = 0; i < iterations; i++)
		mode->iteration(&job, i);
	map_result(&job);
	report_time(&arguments, start);

	CHECK(clReleaseMemObject(job.in));
	CHECK(clReleaseMemObject(job.out));
	CHECK(clReleaseKernel(job.kernel));
	CHECK(clReleaseProgram(program));
	gpu_close(&job.gpu);
	free(job.host);
	free(job.back);
	print_checksum(&arguments, job.hash);
	return EXIT_SUCCESS;
}
