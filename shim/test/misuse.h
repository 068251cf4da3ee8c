/* misuse.h: calls on one buffer, most of them to be made when it has been released, and what is reported of them. */
#ifndef MISUSE_H
#define MISUSE_H

#include "harness.h"

#define SIZE 100

/* What the last finding says. */
static inline void finding(enum gmtdiag code, const char *function, uint64_t object, uint64_t size, cl_int status)
{
	struct gmtevent event = last_event(GMT_KIND_DIAG);
	EQUAL(event.op, code);
	CHECK(strcmp(last_text(GMT_KIND_DIAG), function) == 0);
	EQUAL(event.object, object);
	EQUAL(event.granted, size);
	EQUAL(event.status, status);
	CHECK(event.time > 0);
}

static inline size_t findings(void)
{
	size_t count = 0;
	for (int code = GMT_DIAG_UNKNOWN_MEMORY; code <= GMT_DIAG_STALE_ARGUMENT; code++)
		count += diags((enum gmtdiag)code);
	return count;
}

static cl_mem idle; /* what the program has released and the pool has */
static cl_mem live; /* the other side of copies */
static cl_mem image;
static char host[4096];
static size_t zero[3], one[3] = {1, 1, 1};
static cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};

static inline cl_int do_retain(void)
{
	return clRetainMemObject(idle);
}

static inline cl_int do_info(void)
{
	size_t size;
	return clGetMemObjectInfo(idle, CL_MEM_SIZE, sizeof size, &size, NULL);
}

static inline void CL_CALLBACK never(cl_mem memory, void *data)
{
	(void)memory, (void)data;
	abort();
}

static inline cl_int do_callback(void)
{
	return clSetMemObjectDestructorCallback(idle, never, NULL);
}

static inline cl_int do_part(void)
{
	cl_int err = 1;
	cl_buffer_region region = {0, 32};
	CHECK(!clCreateSubBuffer(idle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
	return err;
}

static inline cl_int do_image(void)
{
	cl_int err = 1;
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 4, .mem_object = idle};
	CHECK(!clCreateImage(world.context, 0, &format, &desc, NULL, &err));
	return err;
}

static inline cl_int do_image_with_properties(void)
{
	cl_int err = 1;
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 4, .mem_object = idle};
	CHECK(!clCreateImageWithProperties(world.context, NULL, 0, &format, &desc, NULL, &err));
	return err;
}

static inline cl_int do_read(void)
{
	return clEnqueueReadBuffer(world.queue, idle, CL_TRUE, 0, 16, host, 0, NULL, NULL);
}

static inline cl_int do_write(void)
{
	return clEnqueueWriteBuffer(world.queue, idle, CL_TRUE, 0, 16, host, 0, NULL, NULL);
}

static inline cl_int do_read_rect(void)
{
	return clEnqueueReadBufferRect(world.queue, idle, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host, 0, NULL, NULL);
}

static inline cl_int do_write_rect(void)
{
	return clEnqueueWriteBufferRect(world.queue, idle, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host, 0, NULL, NULL);
}

static inline cl_int do_copy_from(void)
{
	return clEnqueueCopyBuffer(world.queue, idle, live, 0, 0, 16, 0, NULL, NULL);
}

static inline cl_int do_copy_to(void)
{
	return clEnqueueCopyBuffer(world.queue, live, idle, 0, 0, 16, 0, NULL, NULL);
}

static inline cl_int do_copy_rect(void)
{
	return clEnqueueCopyBufferRect(world.queue, live, idle, zero, zero, one, 0, 0, 0, 0, 0, NULL, NULL);
}

static inline cl_int do_fill(void)
{
	return clEnqueueFillBuffer(world.queue, idle, "x", 1, 0, 16, 0, NULL, NULL);
}

static inline cl_int do_from_image(void)
{
	return clEnqueueCopyImageToBuffer(world.queue, image, idle, zero, one, 0, 0, NULL, NULL);
}

static inline cl_int do_to_image(void)
{
	return clEnqueueCopyBufferToImage(world.queue, idle, image, 0, zero, one, 0, NULL, NULL);
}

static inline cl_int do_map(void)
{
	cl_int err = 1;
	CHECK(!clEnqueueMapBuffer(world.queue, idle, CL_TRUE, CL_MAP_READ, 0, 16, 0, NULL, NULL, &err));
	return err;
}

static inline cl_int do_unmap(void)
{
	return clEnqueueUnmapMemObject(world.queue, idle, host, 0, NULL, NULL);
}

static inline cl_int do_migrate(void)
{
	return clEnqueueMigrateMemObjects(world.queue, 1, &idle, 0, 0, NULL, NULL);
}

static inline void CL_CALLBACK native(void *unused)
{
	(void)unused;
	abort();
}

static inline cl_int do_native(void)
{
	return clEnqueueNativeKernel(world.queue, native, NULL, 0, 1, &idle, NULL, 0, NULL, NULL);
}

static inline cl_int do_acquire(void)
{
	return clEnqueueAcquireGLObjects(world.queue, 1, &idle, 0, NULL, NULL);
}

static inline cl_int do_return(void)
{
	return clEnqueueReleaseGLObjects(world.queue, 1, &idle, 0, NULL, NULL);
}

static inline cl_int do_argument(void)
{
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	cl_int err = clSetKernelArg(kernel, 0, sizeof idle, &idle);
	OK(clReleaseKernel(kernel));
	return err;
}

struct misuse {
	const char *function;
	cl_int (*run)(void);
};

static inline void prepare(struct options options)
{
	fake.arginfo = 1;
	for (int i = 0; i < 3; i++)
		fake.argaddress[i] = CL_KERNEL_ARG_ADDRESS_GLOBAL;
	fake.argaddress[3] = CL_KERNEL_ARG_ADDRESS_PRIVATE;
	begin(options);
	live = new_buffer(4096);
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	image = clCreateImage(world.context, 0, &format, &desc, NULL, NULL);
	CHECK(image);
}

static inline void finish(void)
{
	OK(clReleaseMemObject(live));
	OK(clReleaseMemObject(image));
	end_clean();
}

#endif
