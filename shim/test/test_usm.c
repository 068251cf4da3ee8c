/* test_usm.c: unified shared memory from the pool. */
#include "svm.h"

static cl_uint type_at(clGetMemAllocInfoINTEL_fn ask, const void *pointer)
{
	cl_uint type = 0;
	OK(ask(world.context, pointer, CL_MEM_ALLOC_TYPE_INTEL, sizeof type, &type, NULL));
	return type;
}

TEST(unified_shared_memory_comes_from_the_pool)
{
	begin((struct options){0});
	EXTENSION(clHostMemAllocINTEL);
	EXTENSION(clDeviceMemAllocINTEL);
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	EXTENSION(clGetMemAllocInfoINTEL);
	static const cl_mem_properties_intel none[] = {0}, some[] = {CL_MEM_ALLOC_FLAGS_INTEL, CL_MEM_ALLOC_WRITE_COMBINED_INTEL, 0};
	for (int i = 0; i < 2; i++) {
		char *host = clHostMemAllocINTEL(world.context, none, BYTES, 0, NULL);
		EQUAL(created(), i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		EQUAL(last_event(GMT_KIND_CREATE).access, CL_MEM_ALLOC_HOST_PTR);
		char *device = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL);
		EQUAL(created(), i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		char *shared = clSharedMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL);
		EQUAL(created(), i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		char *anywhere = clSharedMemAllocINTEL(world.context, NULL, NULL, BYTES, 0, NULL);
		EQUAL(created(), i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		char *special = clHostMemAllocINTEL(world.context, some, BYTES, 0, NULL);
		EQUAL(created(), GMT_OUTCOME_DRIVER); /* what properties do, only the driver knows */
		EQUAL(type_at(clGetMemAllocInfoINTEL, host), CL_MEM_TYPE_HOST_INTEL);
		EQUAL(type_at(clGetMemAllocInfoINTEL, device), CL_MEM_TYPE_DEVICE_INTEL);
		EQUAL(type_at(clGetMemAllocInfoINTEL, shared), CL_MEM_TYPE_SHARED_INTEL);
		char *all[] = {host, device, shared, anywhere, special};
		for (int j = 0; j < 5; j++)
			OK(clMemFreeINTEL(world.context, all[j]));
		EQUAL(type_at(clGetMemAllocInfoINTEL, device), CL_MEM_TYPE_UNKNOWN_INTEL);
	}
	end_clean();
	EQUAL(fake.livepointers, 0);
}

TEST(unified_shared_memory_answers_as_new)
{
	begin((struct options){0});
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	EXTENSION(clGetMemAllocInfoINTEL);
	OK(clMemFreeINTEL(world.context, clSharedMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL)));
	char *pointer = clSharedMemAllocINTEL(world.context, fake_device(), NULL, BYTES - 1000, 0, NULL), *base = NULL;
	EQUAL(last_event(GMT_KIND_CREATE).granted, BYTES);
	size_t size = 0, needed = 0;
	cl_device_id device = NULL;
	OK(clGetMemAllocInfoINTEL(world.context, pointer + 100, CL_MEM_ALLOC_SIZE_INTEL, sizeof size, &size, &needed));
	EQUAL(size, BYTES - 1000);
	EQUAL(needed, sizeof size);
	OK(clGetMemAllocInfoINTEL(world.context, pointer + 100, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof(void *), &base, NULL));
	CHECK(base == pointer);
	OK(clGetMemAllocInfoINTEL(world.context, pointer, CL_MEM_ALLOC_DEVICE_INTEL, sizeof device, &device, NULL));
	CHECK(device == fake_device());
	OK(clGetMemAllocInfoINTEL(world.context, pointer + BYTES - 1000, CL_MEM_ALLOC_SIZE_INTEL, sizeof size, &size, NULL));
	EQUAL(size, 0); /* beyond what was asked for */
	OK(clGetMemAllocInfoINTEL(world.context, pointer, CL_MEM_ALLOC_SIZE_INTEL, 0, NULL, &needed));
	EQUAL(needed, sizeof size);
	CHECK(clGetMemAllocInfoINTEL(world.context, pointer, 0, sizeof size, &size, NULL) != CL_SUCCESS);
	OK(clMemFreeINTEL(world.context, pointer));
	end_clean();
}

TEST(a_free_that_waits)
{
	begin((struct options){0});
	EXTENSION(clDeviceMemAllocINTEL);
	EXTENSION(clMemBlockingFreeINTEL);
	EXTENSION(clEnqueueMemFillINTEL);
	char *pointer = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL);
	OK(clEnqueueMemFillINTEL(world.queue, pointer + 16, "z", 1, 16, 0, NULL, NULL));
	OK(clMemBlockingFreeINTEL(world.context, pointer)); /* only the driver can wait */
	EQUAL(released(), GMT_OUTCOME_REFUSED);
	EQUAL(fake.pending, 0);
	EQUAL(fake.waits, 1);
	pointer = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL);
	OK(clEnqueueMemFillINTEL(world.queue, pointer, "z", 1, 16, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clMemBlockingFreeINTEL(world.context, pointer));
	EQUAL(released(), GMT_OUTCOME_CACHED);
	EQUAL(fake.waits, 1);
	CHECK(clDeviceMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL) == pointer);
	OK(clMemBlockingFreeINTEL(world.context, pointer));
	end_clean();
}

TEST(commands_on_unified_shared_memory_are_followed)
{
	begin((struct options){0});
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	EXTENSION(clEnqueueMemcpyINTEL);
	EXTENSION(clEnqueueMemsetINTEL);
	EXTENSION(clEnqueueMigrateMemINTEL);
	EXTENSION(clEnqueueMemAdviseINTEL);
	EXTENSION(clSetKernelArgMemPointerINTEL);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 0);
	cl_kernel kernel = new_kernel();
	for (int i = 0; i < 5; i++) {
		char *pointer = clSharedMemAllocINTEL(world.context, NULL, NULL, BYTES, 0, NULL), host[8];
		EQUAL(fake_pending_at(pointer), 0);
		if (i == 0)
			OK(clEnqueueMemcpyINTEL(world.queue, CL_FALSE, host, pointer + 9, 8, 0, NULL, NULL));
		if (i == 1)
			OK(clEnqueueMemsetINTEL(world.queue, pointer + 9, 1, 8, 0, NULL, NULL));
		if (i == 2)
			OK(clEnqueueMigrateMemINTEL(world.queue, pointer, BYTES, 0, 0, NULL, NULL));
		if (i == 3) {
			OK(clSetKernelArgMemPointerINTEL(kernel, 0, pointer + 9));
			run(world.queue, kernel);
		}
		if (i == 4)
			OK(clEnqueueMemAdviseINTEL(world.queue, pointer, BYTES, 0, 0, NULL, NULL));
		if (i == 4)
			OK(clFinish(world.queue));
		OK(clMemFreeINTEL(world.context, pointer));
		EQUAL(released(), i == 4 ? GMT_OUTCOME_REFUSED : GMT_OUTCOME_COOLING); /* advice may stay with it */
		OK(clFinish(world.queue));
	}
	OK(clReleaseKernel(kernel));
	end_clean();
}

TEST(more_classes_of_shared_memory_than_there_is_room_for)
{
	begin((struct options){0});
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	for (uintptr_t device = 1; device <= 600; device++) /* the fake takes any */
		for (int i = 0; i < 2; i++)
			OK(clMemFreeINTEL(world.context, clSharedMemAllocINTEL(world.context, (cl_device_id)device, NULL, 16, 0, NULL)));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 512);
	EQUAL(created(), GMT_OUTCOME_DRIVER);
	end_clean();
}
