/* svm.h: tests of shared virtual memory. */
#ifndef SVM_H
#define SVM_H

#include "harness.h"

#define BYTES 4096

static inline char *allocate(size_t size)
{
	char *pointer = clSVMAlloc(world.context, CL_MEM_READ_WRITE, size, 0);
	CHECK(pointer);
	CHECK(!fake_is_freed(pointer));
	EQUAL(fake_pending_at(pointer), 0); /* no earlier owner's commands */
	return pointer;
}

static inline enum gmtoutcome released(void)
{
	return (enum gmtoutcome)last_event(GMT_KIND_RELEASE).outcome;
}

static inline enum gmtoutcome freed(void *pointer)
{
	clSVMFree(world.context, pointer);
	return released();
}

static inline enum gmtoutcome created(void)
{
	return (enum gmtoutcome)last_event(GMT_KIND_CREATE).outcome;
}

static inline void fill_at(cl_command_queue queue, void *pointer)
{
	OK(clEnqueueSVMMemFill(queue, pointer, "z", 1, 16, 0, NULL, NULL));
}

static inline cl_kernel new_kernel(void)
{
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	CHECK(kernel);
	return kernel;
}

static inline void run(cl_command_queue queue, cl_kernel kernel)
{
	const size_t one = 1;
	OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
}

#endif
