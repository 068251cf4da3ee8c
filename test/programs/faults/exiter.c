/*
 * exiter: runs a kernel on two queues and forks a child that only exits, through the exit handlers of the driver, whose
 * threads the child has not.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] = "kernel void count(global int *numbers) { numbers[get_global_id(0)] += 1; }";

static void run_on_two(const struct gpu *gpu, cl_mem buffer, size_t items)
{
	cl_program program = gpu_build(gpu, source);
	cl_kernel kernel = gpu_kernel(program, "count");
	cl_int status;
	cl_command_queue queues[] = {gpu->queue, clCreateCommandQueue(gpu->context, gpu->device, 0, &status)};
	CHECK(status);
	CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	for (int i = 0; i < 40; i++)
		CHECK(clEnqueueNDRangeKernel(queues[i % 2], kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	CHECK(clFinish(queues[0]));
	CHECK(clFinish(queues[1]));
}

int main(int argc, char **argv)
{
	arguments_read(argc, argv, "", 0);
	struct gpu gpu = gpu_open(0);
	cl_mem buffer = create_worked(&gpu, 4096);
	run_on_two(&gpu, buffer, 1024);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		exit(EXIT_SUCCESS);
	int status = -1;
	if (waitpid(child, &status, 0) != child)
		return EXIT_FAILURE;
	printf("the child ended with wait status %d\n", status);
	CHECK(clReleaseMemObject(buffer));
	return EXIT_SUCCESS;
}
