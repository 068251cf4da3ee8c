/*
 * callcost: measures what single calls cost: clSetKernelArg, an enqueue of one work item without and with an event, the
 * release of that, a pair of create and release, and writes and reads of 4 KiB and 1 MiB. The figures go to stderr, one
 * JSON object: the median of several batches, in ns; of the pair also what the quickest tenth of many small batches takes.
 *
 *	callcost [-t] [ITERATIONS] [SIZE]     ITERATIONS: calls in a batch, rounded up to hundreds, with below 1,000 fewer small batches,
 *	                                      and below 5,000 fewer buffers that live at once; SIZE: bytes of the buffers
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCHES = 15, SHORT_BATCHES = 1000, SHORT = 100, ENQUEUES_PER_FINISH = 100, SMALL = 4 << 10, LARGE = 1 << 20, LIVE = 200000, LIVE_SIZE = 64 };

static const char *const source = "__kernel void add(__global uint *value, uint more) { value[0] += more; }\n";

struct subject {
	struct gpu gpu;
	cl_kernel kernel;
	cl_mem buffer, target; /* target: of the transfers */
	size_t calls, size;
	char *host;
};

static __attribute__((noinline)) cl_mem create_measured(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

/* Each of these makes a batch of calls and returns the ns that they took. */
static uint64_t set_arguments(const struct subject *subject)
{
	uint64_t start = now_ns();
	for (size_t i = 0; i < subject->calls; i++)
		CHECK(clSetKernelArg(subject->kernel, 0, sizeof(cl_mem), &subject->buffer));
	return now_ns() - start;
}

/* One kernel after the other, for the time that passes until the last is enqueued. */
static uint64_t launch(const struct subject *subject, int count)
{
	uint64_t start = now_ns();
	for (int i = 0; i < count; i++)
		gpu_run(&subject->gpu, subject->kernel, 1);
	return now_ns() - start;
}

static cl_event events[ENQUEUES_PER_FINISH];

/* The same with an event for each. */
static uint64_t launch_with_event(const struct subject *subject, int count)
{
	const size_t items = 1;
	uint64_t start = now_ns();
	for (int i = 0; i < count; i++)
		CHECK(clEnqueueNDRangeKernel(subject->gpu.queue, subject->kernel, 1, NULL, &items, NULL, 0, NULL, &events[i]));
	return now_ns() - start;
}

static uint64_t release_events(int count)
{
	uint64_t start = now_ns();
	for (int i = 0; i < count; i++)
		CHECK(clReleaseEvent(events[i]));
	return now_ns() - start;
}

static uint64_t launch_and_release(const struct subject *subject, int count)
{
	uint64_t spent = launch_with_event(subject, count);
	release_events(count);
	return spent;
}

static uint64_t launch_to_release(const struct subject *subject, int count)
{
	launch_with_event(subject, count);
	return release_events(count);
}

/* The kernels wait behind a gate while they are enqueued, so that running them on the same processor costs nothing. */
static uint64_t behind_gate(const struct subject *subject, uint64_t (*launches)(const struct subject *, int))
{
	uint64_t spent = 0;
	for (size_t done = 0; done < subject->calls; done += ENQUEUES_PER_FINISH) {
		cl_int status;
		size_t items = 1;
		cl_event gate = clCreateUserEvent(subject->gpu.context, &status);
		CHECK(status);
		CHECK(clEnqueueNDRangeKernel(subject->gpu.queue, subject->kernel, 1, NULL, &items, NULL, 1, &gate, NULL));
		spent += launches(subject, ENQUEUES_PER_FINISH);
		CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
		CHECK(clFinish(subject->gpu.queue));
		CHECK(clReleaseEvent(gate));
	}
	return spent;
}

static uint64_t enqueue(const struct subject *subject)
{
	return behind_gate(subject, launch);
}

static uint64_t enqueue_with_event(const struct subject *subject)
{
	return behind_gate(subject, launch_and_release);
}

static uint64_t release_event(const struct subject *subject)
{
	return behind_gate(subject, launch_to_release);
}

static uint64_t create_and_release(const struct subject *subject)
{
	uint64_t start = now_ns();
	for (size_t i = 0; i < subject->calls; i++)
		CHECK(clReleaseMemObject(create_measured(&subject->gpu, subject->size)));
	return now_ns() - start;
}

static uint64_t write_behind_gate(const struct subject *subject, int count)
{
	uint64_t start = now_ns();
	for (int i = 0; i < count; i++)
		CHECK(clEnqueueWriteBuffer(subject->gpu.queue, subject->target, CL_FALSE, 0, SMALL, subject->host, 0, NULL, NULL));
	return now_ns() - start;
}

static uint64_t write_small(const struct subject *subject)
{
	return behind_gate(subject, write_behind_gate);
}

static uint64_t write_and_wait(const struct subject *subject, size_t size, size_t calls)
{
	uint64_t start = now_ns();
	for (size_t i = 0; i < calls; i++)
		CHECK(clEnqueueWriteBuffer(subject->gpu.queue, subject->target, CL_TRUE, 0, size, subject->host, 0, NULL, NULL));
	return (now_ns() - start) * subject->calls / calls;
}

static uint64_t read_and_wait(const struct subject *subject, size_t size, size_t calls)
{
	uint64_t start = now_ns();
	for (size_t i = 0; i < calls; i++)
		CHECK(clEnqueueReadBuffer(subject->gpu.queue, subject->target, CL_TRUE, 0, size, subject->host, 0, NULL, NULL));
	return (now_ns() - start) * subject->calls / calls;
}

static uint64_t write_small_and_wait(const struct subject *subject)
{
	return write_and_wait(subject, SMALL, subject->calls / 10);
}

static uint64_t write_large_and_wait(const struct subject *subject)
{
	return write_and_wait(subject, LARGE, subject->calls / 100);
}

static uint64_t read_small_and_wait(const struct subject *subject)
{
	return read_and_wait(subject, SMALL, subject->calls / 10);
}

static uint64_t read_large_and_wait(const struct subject *subject)
{
	return read_and_wait(subject, LARGE, subject->calls / 100);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

/* The ns per call of the batch that is slower than one in one_in of them; the first, which warms up, does not count. */
static double quantile(const struct subject *subject, uint64_t (*batch)(const struct subject *), size_t batches, size_t one_in)
{
	static double costs[SHORT_BATCHES];
	batch(subject);
	for (size_t i = 0; i < batches; i++) {
		costs[i] = (double)batch(subject) / (double)subject->calls;
	}
	qsort(costs, batches, sizeof *costs, compare);
	return costs[batches / one_in];
}

static double measure(const struct subject *subject, uint64_t (*batch)(const struct subject *))
{
	return quantile(subject, batch, BATCHES, 2);
}

/* Also where something else uses the machine, and the session takes longer for its part than the program for the calls. */
static double measure_quickest(const struct subject *subject, uint64_t (*batch)(const struct subject *))
{
	struct subject brief = *subject;
	brief.calls = SHORT;
	return quantile(&brief, batch, subject->calls < SHORT_BATCHES ? subject->calls : SHORT_BATCHES, 10);
}

/* Bytes of this process in memory. */
static double resident(void)
{
	unsigned long all, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lu %lu", &all, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* By how many bytes the process grows for each of many small buffers that live at once; the first half make tables grow. */
static double measure_live(const struct subject *subject)
{
	static cl_mem live[LIVE];
	size_t count = 40 * subject->calls < LIVE ? 40 * subject->calls : LIVE;
	double before = 0;
	for (size_t i = 0; i < count; i++) {
		if (i == count / 2)
			before = resident();
		live[i] = create_measured(&subject->gpu, LIVE_SIZE);
	}
	double grown = resident() - before;
	for (size_t i = 0; i < count; i++)
		CHECK(clReleaseMemObject(live[i]));
	return grown / (double)(count - count / 2);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	struct subject subject = {.calls = arguments_count(&arguments, 0, 5000)};
	subject.calls = (subject.calls + ENQUEUES_PER_FINISH - 1) / ENQUEUES_PER_FINISH * ENQUEUES_PER_FINISH;
	subject.size = arguments_size(&arguments, 1, 4096);
	subject.gpu = gpu_open(0);
	cl_program program = gpu_build(&subject.gpu, source);
	subject.kernel = gpu_kernel(program, "add");
	subject.buffer = create_measured(&subject.gpu, sizeof(cl_uint));
	cl_uint zero = 0, one = 1;
	CHECK(clEnqueueWriteBuffer(subject.gpu.queue, subject.buffer, CL_TRUE, 0, sizeof zero, &zero, 0, NULL, NULL));
	gpu_arguments(subject.kernel, sizeof(cl_mem), &subject.buffer, sizeof one, &one, (size_t)0);

	double argument = measure(&subject, set_arguments);
	double kernel = measure(&subject, enqueue);
	double kernel_with_event = measure(&subject, enqueue_with_event), event = measure(&subject, release_event);
	double pair = measure(&subject, create_and_release), quickest_pair = measure_quickest(&subject, create_and_release);
	subject.target = create_measured(&subject.gpu, LARGE);
	subject.host = calloc(1, LARGE);
	if (!subject.host)
		return EXIT_FAILURE;
	fprintf(stderr, "{\"set_argument_ns\":%.1f,\"enqueue_ns\":%.1f,\"enqueue_event_ns\":%.1f,\"release_event_ns\":%.1f", argument,
		kernel, kernel_with_event, event);
	fprintf(stderr, ",\"create_release_ns\":%.1f,\"create_release_quickest_ns\":%.1f", pair, quickest_pair);
	fprintf(stderr, ",\"write_ns\":%.1f,\"write_wait_ns\":%.1f,\"write_large_ns\":%.1f,\"read_wait_ns\":%.1f,\"read_large_ns\":%.1f",
		measure(&subject, write_small), measure(&subject, write_small_and_wait), measure(&subject, write_large_and_wait),
		measure(&subject, read_small_and_wait), measure(&subject, read_large_and_wait));
	CHECK(clReleaseMemObject(subject.target));
	free(subject.host);
	fprintf(stderr, ",\"live_bytes\":%.1f}\n", measure_live(&subject));
	uint64_t hash = checksum_buffer(CHECKSUM_START, &subject.gpu, subject.buffer, sizeof(cl_uint));
	CHECK(clReleaseMemObject(subject.buffer));
	CHECK(clReleaseKernel(subject.kernel));
	CHECK(clReleaseProgram(program));
	gpu_close(&subject.gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
