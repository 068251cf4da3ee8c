/* test_scarce.c: the host has no memory left for what the shim notes. */
#define _GNU_SOURCE
#include "carved.h"

/* Sanitizers have a malloc of their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <dlfcn.h>
#include <errno.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_memalign(size_t align, size_t size);
GMT_HOOK void *malloc(size_t size);
GMT_HOOK void *calloc(size_t count, size_t size);
GMT_HOOK int posix_memalign(void **out, size_t align, size_t size);

static long left = -1; /* allocations of the shim that succeed, of this thread; -1: all */
static const void *shim;
static unsigned refused;

static bool refuses(const void *caller)
{
	Dl_info in;
	if (left < 0 || !dladdr(caller, &in) || in.dli_fbase != shim)
		return false;
	refused += left == 0;
	return left == 0 || left-- == 0;
}

void *malloc(size_t size)
{
	return refuses(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return refuses(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	*out = refuses(__builtin_return_address(0)) ? NULL : __libc_memalign(align, size);
	return *out ? 0 : ENOMEM;
}

static int destroyed, wanted;

static void CL_CALLBACK on_end(cl_mem memory, void *data)
{
	(void)memory, (void)data;
	destroyed++;
}

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
}

/* A buffer on many queues, parts and images of it, mappings, callbacks. */
static void use_buffers(cl_context context, cl_command_queue *queues, size_t count)
{
	const cl_buffer_region region = {ALIGNMENT, ALIGNMENT};
	cl_int err = 1;
	char host[4096] = "x", back[4096];
	for (size_t size = 1000; size <= 2 * SLAB_BYTES; size *= 130) {
		cl_mem buffer = clCreateBuffer(context, 0, size, NULL, &err);
		OK(err);
		cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
		OK(err);
		for (size_t i = 0; i < count; i++) {
			use(queues[i], buffer);
			OK(clReleaseEvent(fill(queues[i], child, 0, NULL)));
		}
		void *mapped = clEnqueueMapBuffer(queues[0], buffer, CL_TRUE, CL_MAP_WRITE, 0, 64, 0, NULL, NULL, &err);
		OK(err);
		OK(clEnqueueUnmapMemObject(queues[0], buffer, mapped, 0, NULL, NULL));
		err = clSetMemObjectDestructorCallback(buffer, on_end, NULL);
		CHECK(err == CL_SUCCESS || err == CL_OUT_OF_HOST_MEMORY);
		wanted += err == CL_SUCCESS;
		OK(clReleaseMemObject(child));
		OK(clReleaseMemObject(buffer));
		for (size_t i = 0; i < count; i++)
			OK(clFinish(queues[i]));
	}
	cl_mem copy = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof host, host, &err);
	OK(err);
	OK(clEnqueueReadBuffer(queues[0], copy, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
	EQUAL(memcmp(host, back, sizeof host), 0);
	cl_event event = fill(queues[0], copy, 0, NULL);
	err = clSetEventCallback(event, CL_COMPLETE, on_event, NULL);
	CHECK(err == CL_SUCCESS || err == CL_OUT_OF_HOST_MEMORY);
	OK(clWaitForEvents(1, &event));
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(copy));
}

/* Objects of the other kinds; images and shared memory twice, as the pool wants them. */
static void use_others(cl_context context, cl_command_queue queue)
{
	const size_t one = 1;
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	for (int i = 0; i < 3; i++) {
		cl_int err = 1;
		cl_mem image = clCreateImage(context, 0, &format, &desc, NULL, &err);
		OK(err);
		char *pointer = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0);
		CHECK(pointer);
		cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
		OK(clSetKernelArg(kernel, 0, sizeof image, &image));
		OK(clSetKernelArgSVMPointer(kernel, 1, pointer + 64));
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
		OK(clEnqueueSVMMemFill(queue, pointer + 64, "z", 1, 16, 0, NULL, NULL));
		cl_event gate = clCreateUserEvent(context, &err);
		OK(err);
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
		OK(clFinish(queue));
		cl_uint references = 0;
		OK(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL));
		CHECK(references > 0);
		OK(clReleaseEvent(gate));
		OK(clReleaseKernel(kernel));
		clSVMFree(context, pointer);
		OK(clReleaseMemObject(image));
	}
}

/* early: memory is short already when the context and its queues are made, so that the shim knows neither. */
static void work(long some, bool early)
{
	enum { QUEUES = 3 };
	left = early ? some : -1;
	cl_context context = new_context();
	cl_command_queue queues[QUEUES];
	for (int i = 0; i < QUEUES; i++)
		queues[i] = new_queue(context, 0);
	left = early ? left : some;
	use_buffers(context, queues, 1);
	use_buffers(context, queues, QUEUES);
	use_others(context, queues[0]);
	left = -1;
	for (int i = 0; i < QUEUES; i++)
		OK(clReleaseCommandQueue(queues[i]));
	OK(clReleaseContext(context));
	EQUAL(fake.hazards, 0);
	EQUAL(destroyed, wanted);
}

/* The n-th allocation of the shim fails, and all after it, for each n. What the shim cannot note goes to the driver as it is. */
static void goes_short(struct options options, bool early)
{
	Dl_info in;
	begin_carved(options);
	cl_event gate = clCreateUserEvent(world.context, NULL);
	OK(clReleaseMemObject(new_used(world.queue))); /* what is tried first has been, and the list of what cools is there */
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(gate));
	CHECK(dladdr(dlsym(RTLD_DEFAULT, "clCreateBuffer"), &in));
	shim = in.dli_fbase;
	long some = 0;
	do {
		refused = 0;
		work(some++, early);
	} while (refused);
	work(-1, early);
	if (!early && !options.observe)
		CHECK(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT) > 10);
	end_clean();
}

TEST(a_program_that_is_pooled_goes_on_when_memory_is_short)
{
	goes_short((struct options){0}, false);
}

TEST(a_program_that_is_pooled_begins_when_memory_is_short)
{
	goes_short((struct options){0}, true);
}

TEST(a_program_that_is_watched_goes_on_when_memory_is_short)
{
	goes_short((struct options){.observe = true}, true);
}

#endif
