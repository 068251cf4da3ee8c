/*
 * multiqueue: buffers released while commands still wait to use them. An in-order queue is held back by a user event;
 * meanwhile an out-of-order queue runs ahead and writes to a new buffer of the same size. A pool that hands out the
 * memory of the released buffer too early destroys data that the held-back kernel has yet to read, and the checksum
 * shows it.
 *
 *	multiqueue [-t] [ITERATIONS] [SIZE]     SIZE: bytes of each buffer
 */
#include "common.h"

#include <stdlib.h>

static const char *const source =
	"__kernel void scramble(__global const uint *in, __global uint *out, uint salt) {\n"
	"	uint i = get_global_id(0);\n"
	"	out[i] = (in[i] ^ salt) * 2654435761u + i;\n"
	"}\n";

/* Two queues on one context; queue of gpu is the one in order. */
struct queues {
	struct gpu gpu;
	cl_command_queue ahead; /* out of order if the device supports that */
	cl_program program;
	cl_kernel scramble;
};

SITE(create_source)
SITE(create_result)
SITE(create_intruder)

static struct queues queues_open(void)
{
	struct queues queues = {.gpu = gpu_open(0)};
	cl_command_queue_properties can;
	cl_int status;
	CHECK(clGetDeviceInfo(queues.gpu.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof can, &can, NULL));
	queues.ahead = clCreateCommandQueue(queues.gpu.context, queues.gpu.device,
					    can & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
	CHECK(status);
	queues.program = gpu_build(&queues.gpu, source);
	queues.scramble = gpu_kernel(queues.program, "scramble");
	return queues;
}

static void queues_close(struct queues *queues)
{
	CHECK(clReleaseKernel(queues->scramble));
	CHECK(clReleaseProgram(queues->program));
	CHECK(clFinish(queues->ahead));
	CHECK(clReleaseCommandQueue(queues->ahead));
	gpu_close(&queues->gpu);
}

/* Fills a buffer on the queue that runs ahead, and waits only for this command. */
static void overtake(const struct queues *queues, cl_mem buffer, size_t size)
{
	const cl_uint garbage = 0xdeadbeefu;
	cl_event done;
	CHECK(clEnqueueFillBuffer(queues->ahead, buffer, &garbage, sizeof garbage, 0, size, 0, NULL, &done));
	CHECK(clWaitForEvents(1, &done));
	CHECK(clReleaseEvent(done));
}

/* Enqueues the kernel on the in-order queue, to wait for gate, and flushes. */
static void enqueue_held_back(const struct queues *queues, cl_mem in, cl_mem out, size_t size, cl_uint salt,
			      cl_event gate)
{
	size_t items = size / sizeof(cl_uint);
	gpu_arguments(queues->scramble, sizeof in, &in, sizeof out, &out, sizeof salt, &salt, (size_t)0);
	CHECK(clEnqueueNDRangeKernel(queues->gpu.queue, queues->scramble, 1, NULL, &items, NULL, 1, &gate, NULL));
	CHECK(clFlush(queues->gpu.queue));
}

static uint64_t round_trip(const struct queues *queues, const void *data, size_t size, cl_uint salt, uint64_t hash)
{
	const struct gpu *gpu = &queues->gpu;
	cl_int status;
	cl_mem in = create_source(gpu, size), out = create_result(gpu, size);
	CHECK(clEnqueueWriteBuffer(gpu->queue, in, CL_TRUE, 0, size, data, 0, NULL, NULL));
	cl_event gate = clCreateUserEvent(gpu->context, &status);
	CHECK(status);
	enqueue_held_back(queues, in, out, size, salt, gate);
	CHECK(clReleaseMemObject(in)); /* in flight: the kernel has not begun */
	cl_mem intruder = create_intruder(gpu, size);
	overtake(queues, intruder, size);
	CHECK(clReleaseMemObject(intruder));
	CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK(clReleaseEvent(gate));
	hash = checksum_buffer(hash, gpu, out, size);
	CHECK(clReleaseMemObject(out));
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	size_t iterations = arguments_count(&arguments, 0, 200);
	size_t size = arguments_size(&arguments, 1, 1u << 20);
	struct queues queues = queues_open();
	void *data = allocate(size);
	fill_random(data, size, 7);

	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < iterations; i++)
		hash = round_trip(&queues, data, size, (cl_uint)i, hash);
	report_time(&arguments, start);

	free(data);
	queues_close(&queues);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
