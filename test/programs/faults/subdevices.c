/*
 * subdevices: makes sub-devices of the device, runs kernels on them, waits for them in one of three ways, and releases all that it
 * made, several times over. A driver frees a sub-device with its last reference, so what still runs there, or is still held there
 * by others, is seen.
 *
 *	subdevices [-t] [ROUNDS] [RUNS]
 */
#include "common.h"

#include <stdlib.h>

enum { PARTS = 2, ITEMS = 4096 };

static const char *const source = "kernel void add(global uint *data, uint value) { data[get_global_id(0)] += value; }\n";

SITE(create_data)

/* What a sub-device has of its own. */
struct part {
	struct gpu gpu;
	cl_program program;
	cl_kernel kernel;
	cl_mem data;
};

static void open_part(struct part *part, cl_context context, cl_device_id device, size_t runs)
{
	const cl_uint one = 1;
	cl_int status;
	part->gpu = (struct gpu){.device = device, .context = context};
	part->gpu.queue = clCreateCommandQueue(context, device, 0, &status);
	CHECK(status);
	part->data = create_data(&part->gpu, ITEMS * sizeof one);
	CHECK(clEnqueueFillBuffer(part->gpu.queue, part->data, &(cl_uint){0}, sizeof one, 0, ITEMS * sizeof one, 0, NULL, NULL));
	part->kernel = gpu_kernel(part->program, "add");
	gpu_arguments(part->kernel, sizeof part->data, &part->data, sizeof one, &one, (size_t)0);
	for (size_t i = 0; i < runs; i++)
		gpu_run(&part->gpu, part->kernel, ITEMS);
}

static void wait_for_event(const struct part *part)
{
	const size_t items = ITEMS;
	cl_event event;
	CHECK(clEnqueueNDRangeKernel(part->gpu.queue, part->kernel, 1, NULL, &items, NULL, 0, NULL, &event));
	CHECK(clWaitForEvents(1, &event));
	CHECK(clReleaseEvent(event));
}

enum way { FINISH, READ, EVENT, WAYS };

static uint64_t close_part(struct part *part, uint64_t hash, enum way way)
{
	hash = checksum_buffer(hash, &part->gpu, part->data, ITEMS * sizeof(cl_uint));
	if (way == FINISH) {
		gpu_run(&part->gpu, part->kernel, ITEMS);
		CHECK(clFinish(part->gpu.queue));
	}
	if (way == EVENT)
		wait_for_event(part);
	CHECK(clReleaseMemObject(part->data));
	CHECK(clReleaseKernel(part->kernel));
	CHECK(clReleaseCommandQueue(part->gpu.queue));
	return hash;
}

static uint64_t one_round(uint64_t hash, cl_device_id device, size_t runs, enum way way)
{
	const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
	cl_device_id devices[PARTS];
	struct part parts[PARTS];
	cl_int status;
	CHECK(clCreateSubDevices(device, counts, PARTS, devices, NULL));
	cl_context context = clCreateContext(NULL, PARTS, devices, NULL, NULL, &status);
	CHECK(status);
	cl_program program = clCreateProgramWithSource(context, 1, (const char *[]){source}, NULL, &status);
	CHECK(status);
	CHECK(clBuildProgram(program, PARTS, devices, NULL, NULL, NULL));
	for (int i = 0; i < PARTS; i++) {
		parts[i].program = program;
		open_part(&parts[i], context, devices[i], runs);
	}
	for (int i = 0; i < PARTS; i++)
		hash = close_part(&parts[i], hash, way);
	CHECK(clReleaseProgram(program));
	CHECK(clReleaseContext(context));
	for (int i = 0; i < PARTS; i++)
		CHECK(clReleaseDevice(devices[i]));
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [RUNS]", 2);
	size_t rounds = arguments_count(&arguments, 0, 8), runs = arguments_count(&arguments, 1, 4);
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	cl_device_id device = gpu_device();
	for (size_t i = 0; i < rounds; i++)
		hash = one_round(hash, device, runs, (enum way)(i % WAYS));
	report_time(&arguments, start);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
