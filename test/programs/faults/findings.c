/*
 * findings: does what a report finds fault with, or nearly so.
 *
 *	findings NAME|nearly-NAME
 *
 * NAME and what it does                                   nearly-NAME
 *	grow       each iteration leaves a buffer               keeps the last one only
 *	fifth      keeps every fifth buffer                     the first ten of them only
 *	most       keeps all results but one                    all of them
 *	keep       as grow, and releases them at the end        uses them again before that
 *	sizes      asks for another size each time              for the same
 *	loop       creates temporary buffers in a loop          before the loop
 *	copies     creates buffers as copies of host memory     writes into them
 *	late       waits before it releases                     waits before it uses, and the device works till then
 *	asked      as late, and learns the end by profiling     likewise, and waits before it uses
 *	waste      asks for a little more than a power of two   for a power of two
 *	pieces     leaves small blocks beside a large buffer    one large block
 *	larger     has three buffers, then a larger one         one as large
 *	parts      makes many sub-buffers of two buffers        few of many
 *	kept       uses its buffers 3,000 times                   creates in between
 *	origins    begins sub-buffers at 128 bytes              at 4 KiB
 *	hidden     creates through one function for all         for one caller
 *	hoard      keeps buffers of ever new sizes for reuse    rounds the sizes up
 *	vain       releases 8 MiB early and works on            and creates as much again and again
 *	small      has 50,000 buffers of 64 bytes at once       one after the other
 *	lost       leaks what one function creates for all      for one caller
 *	early      releases before it waits for commands        waits in each iteration
 *	piles      likewise, 480 MiB                            likewise
 *	own        has buffers in memory off a page             in whole pages
 *	devices    writes on one device, reads on another       reads on both what it wrote once; both need two devices
 *	fill       has 15 of 16 MiB in use                      8 MiB
 *	refuse     creates memory as no driver allows it        as the least that drivers allow
 *	denied     asks for no bytes through one function for all   for one caller
 *	build      builds a wrong program, runs what is not     a right one, and runs what is
 *	maps       maps a buffer 60 times without an unmap      some later, others tile by tile, one for good
 *	retains    retains a buffer 100 times without a release   releases it as often, late
 *	shares     retains and releases each buffer once        releases it twice
 *	owners     retains one buffer in each iteration         and releases it
 *	acquires   acquires a buffer of OpenGL and does not release it   releases it each time; both need preloaded/shares.c
 *	killed     as maps, and a signal ends it                likewise
 *	slow       waits for four bytes in each iteration, after a start of 2 s   works for longer between reads
 *	looks      likewise, through a map                      waits for the commands before it maps
 *	reads      reads back read-only buffers, unchanged      a kernel writes them, which is undefined
 */
#include "work.h"

#include <CL/cl_gl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20, TURNS = 40, MANY = 64 };

SITE(create_temporary)
SITE(create_result)

static cl_mem kept[MANY];

static void begin_fill(const struct gpu *gpu, cl_mem buffer, size_t size)
{
	const cl_uint pattern = 0x5a5a5a5a;
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
}

static void fill(const struct gpu *gpu, cl_mem buffer, size_t size)
{
	begin_fill(gpu, buffer, size);
	CHECK(clFinish(gpu->queue));
}

static void release(cl_mem buffer)
{
	CHECK(clReleaseMemObject(buffer));
}

static void release_kept(size_t count)
{
	for (size_t i = 0; i < count; i++)
		release(kept[i]);
}

/* Creates a temporary buffer and a result in each iteration, and keeps the last result or all but one. */
static void results(const struct gpu *gpu, bool only_last, size_t without)
{
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem temporary = create_temporary(gpu, 256 * KIB);
		fill(gpu, temporary, 256 * KIB);
		if (only_last && i > 0)
			release(kept[0]);
		size_t at = only_last ? 0 : i;
		kept[at] = create_result(gpu, 256 * KIB);
		fill(gpu, kept[at], 256 * KIB);
		if (i == without)
			release(kept[at]);
		release(temporary);
	}
}

static void grow(const struct gpu *gpu, bool nearly)
{
	results(gpu, nearly, TURNS);
	if (nearly)
		release(kept[0]);
}

static void most(const struct gpu *gpu, bool nearly)
{
	results(gpu, false, nearly ? TURNS : TURNS / 2);
}

static void fifth(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0, count = 0; i < 300; i++) {
		cl_mem buffer = create_result(gpu, 256 * KIB);
		fill(gpu, buffer, 256 * KIB);
		if (i % 5 == 0 && (!nearly || count < 10))
			kept[count++] = buffer;
		else
			release(buffer);
	}
}

static void keep(const struct gpu *gpu, bool nearly)
{
	results(gpu, false, TURNS);
	for (size_t i = 0; nearly && i < 10 * TURNS; i++)
		fill(gpu, kept[i % TURNS], 256 * KIB);
	release_kept(TURNS);
}

static void sizes(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 1; i <= 15000; i++)
		release(create_temporary(gpu, (nearly ? 15000 : i) * KIB / 4));
}

static __attribute__((noinline)) cl_mem create_copy(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | flags, size, host, &status);
	CHECK(status);
	return buffer;
}

static void loop(const struct gpu *gpu, bool nearly)
{
	cl_mem outside = create_result(gpu, 4 * MIB);
	for (size_t i = 0; i < (nearly ? 500 : 40000); i++) {
		cl_mem buffer = nearly ? outside : create_result(gpu, 4 * MIB);
		if (nearly)
			fill(gpu, buffer, 4 * KIB);
		else
			release(buffer);
	}
	release(outside);
}

static void copies(const struct gpu *gpu, bool nearly)
{
	unsigned char *host = allocate(MIB);
	fill_random(host, MIB, 1);
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem buffer = create_copy(gpu, nearly ? 0 : CL_MEM_COPY_HOST_PTR, MIB, nearly ? NULL : host);
		if (nearly)
			CHECK(clEnqueueWriteBuffer(gpu->queue, buffer, CL_TRUE, 0, MIB, host, 0, NULL, NULL));
		release(buffer);
	}
	free(host);
}

static void late(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem buffer = create_temporary(gpu, MIB);
		if (!nearly)
			fill(gpu, buffer, MIB);
		pause_us(4000);
		for (size_t k = 0; nearly && k < 64; k++)
			begin_fill(gpu, buffer, MIB);
		if (nearly)
			fill(gpu, buffer, MIB);
		release(buffer);
	}
	cl_mem last = create_result(gpu, 4 * KIB);
	fill(gpu, last, 4 * KIB);
	release(last);
}

/* Asks the event of a fill for its times until they are known. */
static void fill_and_ask(cl_command_queue queue, cl_mem buffer)
{
	const cl_uint pattern = 0x5a5a5a5a;
	cl_ulong end = 0;
	cl_event event;
	CHECK(clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, MIB, 0, NULL, &event));
	CHECK(clFlush(queue));
	while (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != CL_SUCCESS)
		pause_us(100);
	CHECK(clReleaseEvent(event));
}

/* As late, by profiling: no call waits for a command. */
static void asked(const struct gpu *gpu, bool nearly)
{
	cl_int status;
	cl_command_queue queue = clCreateCommandQueue(gpu->context, gpu->device, CL_QUEUE_PROFILING_ENABLE, &status);
	CHECK(status);
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem buffer = create_temporary(gpu, MIB);
		if (nearly)
			pause_us(4000);
		fill_and_ask(queue, buffer);
		if (!nearly)
			pause_us(4000);
		release(buffer);
	}
	release(create_result(gpu, 4 * KIB));
	CHECK(clReleaseCommandQueue(queue));
}

static void waste(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < 8; i++) {
		kept[i] = create_result(gpu, nearly ? MIB : MIB + 4);
		fill(gpu, kept[i], MIB);
	}
	release_kept(8);
}

static void pieces(const struct gpu *gpu, bool nearly)
{
	size_t count = nearly ? 1 : MANY;
	for (size_t i = 0; i < count; i++)
		kept[i] = create_temporary(gpu, MANY / count * 64 * KIB);
	release_kept(count);
	cl_mem large = create_result(gpu, 8 * MIB);
	fill(gpu, large, 8 * MIB);
	release(large);
}

/* What the later buffer needs is not what is free by then. */
static void larger(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < 3; i++) {
		kept[i] = create_temporary(gpu, 4 * MIB);
		fill(gpu, kept[i], 4 * MIB);
	}
	release_kept(3);
	cl_mem later = create_result(gpu, (nearly ? 4 : 10) * MIB);
	fill(gpu, later, 4 * MIB);
	release(later);
}

static cl_mem part_of(cl_mem parent, size_t origin)
{
	cl_buffer_region region = {origin, 128};
	cl_int status;
	cl_mem part = clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	CHECK(status);
	return part;
}

static void divide(const struct gpu *gpu, size_t parents, size_t each, size_t step)
{
	for (size_t i = 0; i < parents; i++) {
		cl_mem parent = create_result(gpu, MIB);
		for (size_t k = 0; k < each; k++)
			release(part_of(parent, k * step));
		release(parent);
	}
}

static void parts(const struct gpu *gpu, bool nearly)
{
	divide(gpu, nearly ? 10 : 2, nearly ? 3 : 15, 4 * KIB);
}

static void origins(const struct gpu *gpu, bool nearly)
{
	divide(gpu, 1, 3, nearly ? 4 * KIB : 128);
}

static void uses(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < 4; i++)
		kept[i] = create_result(gpu, 64 * KIB);
	for (size_t i = 0; i < 3000; i++) {
		fill(gpu, kept[i % 4], 4 * KIB);
		if (nearly && i % 32 == 0)
			release(create_temporary(gpu, 64 * KIB));
	}
	release_kept(4);
}

static __attribute__((noinline)) void first_caller(const struct gpu *gpu, size_t at)
{
	kept[at] = create_worked(gpu, 64 * KIB);
}

static __attribute__((noinline)) void second_caller(const struct gpu *gpu, size_t at)
{
	kept[at] = create_worked(gpu, 128 * KIB);
}

static void hidden(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < 8; i++)
		(nearly || i % 2 ? first_caller : second_caller)(gpu, i);
	release_kept(8);
}

/* Gets a buffer from a pool of its own, which looks for the exact size. The sizes in it are those of the buffers. */
static size_t hoarded(const struct gpu *gpu, size_t *sizes, size_t *count, size_t size)
{
	size_t at = 0;
	while (at < *count && sizes[at] != size)
		at++;
	if (at == *count) {
		kept[at] = create_result(gpu, size);
		sizes[(*count)++] = size;
	}
	return at;
}

static void hoard(const struct gpu *gpu, bool nearly)
{
	size_t sizes[MANY], count = 0;
	for (size_t i = 0; i < MANY; i++) {
		size_t size = (nearly ? 64 : 32 + i % 32) * 4 * KIB + (nearly ? 0 : i / 32 * 64);
		fill(gpu, kept[hoarded(gpu, sizes, &count, size)], size);
		pause_us(5000);
	}
	release_kept(count);
}

static void vain(const struct gpu *gpu, bool nearly)
{
	release(create_temporary(gpu, 8 * MIB));
	cl_mem small = create_result(gpu, 64 * KIB);
	for (size_t i = 0; i < 300; i++) {
		fill(gpu, small, 64 * KIB);
		if (nearly && i % 10 == 0)
			release(create_temporary(gpu, 8 * MIB));
		pause_us(8000);
	}
	release(small);
}

static void small(const struct gpu *gpu, bool nearly)
{
	enum { COUNT = 50000 };
	cl_mem *all = allocate(COUNT * sizeof *all);
	pause_us(1000000); /* what the process has at first is looked at */
	for (size_t i = 0; i < COUNT; i++) {
		all[i] = create_result(gpu, 64);
		if (nearly)
			release(all[i]);
	}
	pause_us(1000000);
	for (size_t i = 0; !nearly && i < COUNT; i++)
		release(all[i]);
	free(all);
}

static void lost(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < MANY; i++) {
		cl_mem buffer = create_result(gpu, MIB);
		fill(gpu, buffer, MIB);
		release(buffer);
	}
	for (size_t i = 0; i < 4; i++)
		(nearly || i % 2 ? first_caller : second_caller)(gpu, i);
}

/* The commands wait until the buffers have been released for a while: then what the process has grown by is seen. */
static void release_early(const struct gpu *gpu, bool nearly, size_t count)
{
	unsigned char *host = allocate(4 * MIB);
	fill_random(host, 4 * MIB, 1);
	cl_int status;
	cl_event gate = clCreateUserEvent(gpu->context, &status);
	CHECK(status);
	for (size_t i = 0; i < count; i++) {
		cl_mem buffer = create_copy(gpu, CL_MEM_COPY_HOST_PTR, 4 * MIB, host);
		CHECK(clEnqueueFillBuffer(gpu->queue, buffer, host, 4, 0, MIB, !nearly, nearly ? NULL : &gate, NULL));
		release(buffer);
		if (nearly)
			CHECK(clFinish(gpu->queue));
	}
	CHECK(clFlush(gpu->queue));
	for (size_t i = 0; i < 4 && !nearly; i++)
		pause_us(400000);
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseEvent(gate));
	free(host);
}

static void early(const struct gpu *gpu, bool nearly) { release_early(gpu, nearly, 16); }

/* What the process had before is seen first. */
static void piles(const struct gpu *gpu, bool nearly)
{
	pause_us(400000);
	release_early(gpu, nearly, 120);
}

/* In a context of all devices of the platform. */
static void devices(const struct gpu *gpu, bool nearly)
{
	cl_platform_id platform;
	cl_device_id device[2];
	cl_uint count;
	cl_int status;
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, device, &count));
	if (count < 2)
		fail("needs two devices");
	struct gpu both[2];
	both[0].context = both[1].context = clCreateContext(NULL, 2, device, NULL, NULL, &status);
	CHECK(status);
	for (size_t i = 0; i < 2; i++) {
		both[i].queue = clCreateCommandQueue(both[i].context, device[i], 0, &status);
		CHECK(status);
	}
	cl_mem shared = create_result(&both[0], MIB), own = create_temporary(&both[0], MIB);
	for (size_t i = 0; i < TURNS; i++) {
		if (!nearly || i == 0)
			fill(&both[0], shared, MIB);
		CHECK(clEnqueueCopyBuffer(both[i % 2].queue, shared, own, 0, 0, MIB, 0, NULL, NULL));
		CHECK(clFinish(both[i % 2].queue));
	}
	release(shared);
	release(own);
	for (size_t i = 0; i < 2; i++)
		CHECK(clReleaseCommandQueue(both[i].queue));
	CHECK(clReleaseContext(both[0].context));
}

static void own(const struct gpu *gpu, bool nearly)
{
	unsigned char *host = aligned_alloc(4 * KIB, 2 * MIB);
	if (!host)
		fail("out of memory");
	fill_random(host, 2 * MIB, 1);
	cl_mem buffer = create_copy(gpu, CL_MEM_USE_HOST_PTR, nearly ? MIB : MIB - 4, nearly ? host : host + 16);
	fill(gpu, buffer, KIB);
	release(buffer);
	free(host);
}

static void full(const struct gpu *gpu, bool nearly)
{
	size_t count = nearly ? 8 : 15;
	for (size_t i = 0; i < count; i++)
		kept[i] = create_result(gpu, MIB);
	release_kept(count);
}

static void try_to(cl_mem made, cl_int status, bool refused)
{
	if (refused != (status != CL_SUCCESS))
		fail("a create: %d", status);
	if (made)
		release(made);
}

/* Buffers of an empty selection, then one with a pointer that no flag asks for, and a part of no bytes. */
static void refuse(const struct gpu *gpu, bool nearly)
{
	cl_int status;
	unsigned char host[64] = {0};
	for (int i = 0; i < 3; i++) {
		cl_mem made = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, nearly, NULL, &status);
		try_to(made, status, !nearly);
	}
	cl_mem made = clCreateBuffer(gpu->context, nearly ? CL_MEM_COPY_HOST_PTR : 0, sizeof host, host, &status);
	try_to(made, status, !nearly);
	cl_mem whole = create_result(gpu, 64 * KIB);
	cl_buffer_region region = {0, nearly};
	made = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	try_to(made, status, !nearly);
	release(whole);
}

static __attribute__((noinline)) void ask_for(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem made = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	try_to(made, status, size == 0);
}

/* The two return, for a call at their end would take their place on the stack, and differently, for equal functions are made one. */
static __attribute__((noinline)) int first_to_ask(const struct gpu *gpu) { return ask_for(gpu, 0), 1; }
static __attribute__((noinline)) int second_to_ask(const struct gpu *gpu) { return ask_for(gpu, 0), 2; }

static void denied(const struct gpu *gpu, bool nearly)
{
	int asked = 0;
	for (int i = 0; i < 8; i++)
		asked += (nearly || i % 2 ? first_to_ask : second_to_ask)(gpu);
	kept[0] = create_worked(gpu, (size_t)asked * KIB);
	release_kept(1);
}

static void build(const struct gpu *gpu, bool nearly)
{
	const char *source = nearly ? "kernel void f(global int *a) { *a = 1; }" : "kernel void f(global int *a) { *a = b; }";
	cl_int status, expected = nearly ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
	cl_program program = clCreateProgramWithSource(gpu->context, 1, &source, NULL, &status);
	CHECK(status);
	if (clBuildProgram(program, 1, &gpu->device, "", NULL, NULL) != expected)
		fail("the build");
	cl_kernel kernel = clCreateKernel(program, "f", &status);
	if ((kernel != NULL) != nearly)
		fail("the kernel: %d", status);
	if (kernel)
		CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
}

enum { MAPS = 60, RETAINS = 100 };

static __attribute__((noinline)) void *map(const struct gpu *gpu, cl_mem buffer, size_t offset, size_t size)
{
	cl_int status;
	void *pointer = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, offset, size, 0, NULL, NULL, &status);
	CHECK(status);
	return pointer;
}

static void unmap(const struct gpu *gpu, cl_mem buffer, void *pointer)
{
	CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, pointer, 0, NULL, NULL));
}

/* Maps four frames before it unmaps the first, then all tiles before any unmap, and keeps the last mapping to the end. */
static void map_and_unmap(const struct gpu *gpu, cl_mem buffer)
{
	void *mapped[MAPS];
	for (size_t i = 0; i < MAPS; i++) {
		mapped[i] = map(gpu, buffer, 0, 256 * KIB);
		if (i >= 4)
			unmap(gpu, buffer, mapped[i - 4]);
	}
	for (size_t i = MAPS - 4; i < MAPS; i++)
		unmap(gpu, buffer, mapped[i]);
	for (size_t i = 0; i < MAPS; i++)
		mapped[i] = map(gpu, buffer, i * 4 * KIB, 4 * KIB);
	CHECK(clFinish(gpu->queue));
	for (size_t i = 1; i < MAPS; i++)
		unmap(gpu, buffer, mapped[i]);
}

static void maps(const struct gpu *gpu, bool nearly)
{
	cl_mem buffer = create_result(gpu, 256 * KIB);
	fill(gpu, buffer, 256 * KIB);
	if (nearly)
		map_and_unmap(gpu, buffer);
	for (size_t i = 0; !nearly && i < MAPS; i++)
		map(gpu, buffer, 0, 256 * KIB);
	CHECK(clFinish(gpu->queue));
}

static void retains(const struct gpu *gpu, bool nearly)
{
	cl_mem buffer = create_result(gpu, 64 * KIB);
	fill(gpu, buffer, 64 * KIB);
	for (size_t i = 0; i < RETAINS; i++)
		CHECK(clRetainMemObject(buffer));
	for (size_t i = 0; nearly && i < RETAINS; i++)
		release(buffer);
	release(buffer);
}

static __attribute__((noinline)) void share(cl_mem buffer)
{
	CHECK(clRetainMemObject(buffer));
}

/* Each buffer has a second owner, who may forget it. */
static void shares(const struct gpu *gpu, bool nearly)
{
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem buffer = create_result(gpu, 64 * KIB);
		fill(gpu, buffer, 64 * KIB);
		share(buffer);
		release(buffer);
		if (nearly)
			release(buffer);
	}
}

/* One buffer gets a further owner in each iteration. */
static void owners(const struct gpu *gpu, bool nearly)
{
	cl_mem buffer = create_result(gpu, 64 * KIB);
	for (size_t i = 0; i < TURNS; i++) {
		cl_mem temporary = create_temporary(gpu, 256 * KIB);
		fill(gpu, temporary, 256 * KIB);
		share(buffer);
		release(temporary);
		if (nearly)
			release(buffer);
	}
	release(buffer);
}

static void acquires(const struct gpu *gpu, bool nearly)
{
	cl_int status;
	cl_mem buffer = clCreateFromGLBuffer(gpu->context, CL_MEM_READ_WRITE, 64 * KIB, &status);
	CHECK(status);
	for (size_t i = 0; i < TURNS; i++) {
		CHECK(clEnqueueAcquireGLObjects(gpu->queue, 1, &buffer, 0, NULL, NULL));
		fill(gpu, buffer, 64 * KIB);
		if (nearly)
			CHECK(clEnqueueReleaseGLObjects(gpu->queue, 1, &buffer, 0, NULL, NULL));
	}
	release(buffer);
}

static void killed(const struct gpu *gpu, bool nearly)
{
	maps(gpu, nearly);
	raise(SIGTERM);
}

/* Has the device work in each iteration, waits for it to look at a word of the result, and pauses some times as long. */
static void look(const struct gpu *gpu, bool maps, bool waits, long pause)
{
	cl_mem buffer = create_result(gpu, 16 * MIB);
	pause_us(2000000);
	for (size_t i = 0; i < (pause ? 12 : TURNS); i++) {
		cl_uint word;
		begin_fill(gpu, buffer, 16 * MIB);
		if (waits)
			CHECK(clFinish(gpu->queue));
		uint64_t start = now_ns();
		if (maps)
			unmap(gpu, buffer, map(gpu, buffer, 0, sizeof word));
		else
			CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, sizeof word, &word, 0, NULL, NULL));
		pause_us((long)((now_ns() - start) / 1000) * pause);
	}
	CHECK(clFinish(gpu->queue));
	release(buffer);
}

static void slow(const struct gpu *gpu, bool nearly) { look(gpu, false, false, nearly ? 20 : 0); }

static void looks(const struct gpu *gpu, bool nearly) { look(gpu, true, nearly, 0); }

static void reads(const struct gpu *gpu, bool nearly)
{
	static cl_uint words[64 * KIB / sizeof(cl_uint)];
	cl_program program = gpu_build(gpu, "__kernel void look(__global const uint *in) {}\n"
					    "__kernel void add(__global uint *in) { in[get_global_id(0)]++; }\n");
	cl_kernel kernel = gpu_kernel(program, nearly ? "add" : "look");
	cl_int status;
	for (size_t i = 0; i < 4; i++) {
		kept[i] = clCreateBuffer(gpu->context, CL_MEM_READ_ONLY, sizeof words, NULL, &status);
		CHECK(status);
		CHECK(clEnqueueWriteBuffer(gpu->queue, kept[i], CL_TRUE, 0, sizeof words, words, 0, NULL, NULL));
	}
	for (cl_uint turn = 1; turn <= TURNS; turn++) {
		for (size_t i = 0; i < 4; i++) {
			gpu_arguments(kernel, sizeof kept[i], &kept[i], (size_t)0);
			gpu_run(gpu, kernel, sizeof words / sizeof *words);
		}
		for (size_t i = 0; i < 4; i++) {
			CHECK(clEnqueueReadBuffer(gpu->queue, kept[i], CL_TRUE, 0, sizeof words, words, 0, NULL, NULL));
			if (words[i] != (nearly ? turn : 0))
				fail("%u after %u turns", words[i], turn);
		}
	}
	release_kept(4);
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
}

static const struct {
	const char *name;
	void (*commit)(const struct gpu *gpu, bool nearly);
} deeds[] = {
	{"grow", grow}, {"most", most}, {"fifth", fifth}, {"keep", keep}, {"sizes", sizes}, {"loop", loop}, {"copies", copies}, {"late", late}, {"asked", asked},
	{"waste", waste}, {"pieces", pieces}, {"larger", larger}, {"parts", parts}, {"kept", uses}, {"origins", origins},
	{"hidden", hidden}, {"lost", lost}, {"hoard", hoard}, {"small", small}, {"vain", vain}, {"fill", full}, {"maps", maps},
	{"retains", retains}, {"shares", shares}, {"owners", owners}, {"acquires", acquires},
	{"killed", killed}, {"early", early}, {"piles", piles}, {"devices", devices}, {"own", own},
	{"refuse", refuse}, {"denied", denied}, {"build", build}, {"slow", slow}, {"looks", looks}, {"reads", reads},
};

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";
	bool nearly = strncmp(name, "nearly-", 7) == 0;
	for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
		if (strcmp(deeds[i].name, name + (nearly ? 7 : 0)) != 0)
			continue;
		struct gpu gpu = gpu_open(0);
		deeds[i].commit(&gpu, nearly);
		gpu_close(&gpu);
		return EXIT_SUCCESS;
	}
	fail("usage: findings NAME|nearly-NAME: see test/programs/faults/findings.c");
}
