/* test_svm.c: shared virtual memory from the pool. */
#include "svm.h"

#include <pthread.h>

#define FINE (CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER)

TEST(shared_memory_comes_from_the_pool)
{
	begin((struct options){0});
	char *first = allocate(BYTES);
	EQUAL(created(), GMT_OUTCOME_MISS);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_SVM);
	EQUAL(last_event(GMT_KIND_CREATE).status, -1); /* the class */
	EQUAL(last_event(GMT_KIND_CREATE).access, CL_MEM_READ_WRITE);
	EQUAL(freed(first), GMT_OUTCOME_CACHED);
	CHECK(!fake_is_freed(first));
	CHECK(allocate(BYTES) == first);
	EQUAL(created(), GMT_OUTCOME_HIT);
	EQUAL(last_event(GMT_KIND_CREATE).size, BYTES);
	EQUAL(fake.creates, 1);
	EQUAL(freed(first), GMT_OUTCOME_CACHED);
	end_clean();
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_CONTEXT);
	EQUAL(fake.livepointers, 0);
}

TEST(classes_of_shared_memory_do_not_mix)
{
	begin((struct options){0});
	cl_context second = new_context();
	static const cl_svm_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, FINE, FINE | CL_MEM_SVM_ATOMICS};
	static const cl_uint alignments[] = {0, 64, 4096};
	char *all[24];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 24; i++)
			all[i] = clSVMAlloc(i < 12 ? world.context : second, flags[i % 4], BYTES, alignments[i / 4 % 3]);
		for (int i = 0; i < 24; i++) {
			EQUAL((uintptr_t)all[i] % (alignments[i / 4 % 3] ? alignments[i / 4 % 3] : 128), 0);
			clSVMFree(i < 12 ? world.context : second, all[i]);
		}
	}
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 24);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 24);
	EQUAL(last_event(GMT_KIND_CREATE).status, -12); /* classes count in each context */
	cl_mem buffer = new_buffer(BYTES); /* free shared memory is no buffer */
	EQUAL(created(), GMT_OUTCOME_MISS);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseContext(second));
	end_clean();
}

TEST(shared_memory_that_cannot_be_had_leaves_the_pool_alone)
{
	begin((struct options){0});
	freed(allocate(BYTES));
	fake.nofinegrain = 1;
	CHECK(!clSVMAlloc(world.context, FINE, BYTES, 0));
	CHECK(!clSVMAlloc(world.context, 0, BYTES, 1 << 20));
	CHECK(!clSVMAlloc(world.context, 0, BYTES, 3));
	CHECK(!clSVMAlloc(world.context, 1 << 14, (size_t)fake.largest + 1, 0));
	CHECK(!clSVMAlloc(world.context, 0, 0, 0));
	CHECK(!clSVMAlloc(world.context, 0, (size_t)fake.largest + 1, 0));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_FAILED), 6);
	EQUAL(last_event(GMT_KIND_CREATE).status, CL_INVALID_VALUE);
	EQUAL(events(GMT_KIND_EVICT), 0);
	end_clean();
}

TEST(shared_memory_makes_room_and_asks_for_it)
{
	begin((struct options){0});
	fake.cap = BYTES + 100;
	freed(allocate(BYTES));
	cl_mem buffer = new_buffer(512); /* for which the shared memory goes */
	CHECK(buffer);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	EQUAL(fake.livepointers, 0);
	OK(clReleaseMemObject(buffer));
	char *pointer = allocate(BYTES); /* for which the buffer goes */
	CHECK(!clSVMAlloc(world.context, CL_MEM_READ_WRITE, BYTES, 0));
	EQUAL(created(), GMT_OUTCOME_FAILED);
	EQUAL(last_event(GMT_KIND_CREATE).status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	freed(pointer);
	end_clean();
}

static void makes_room_first(uint32_t nofinegrain)
{
	begin((struct options){0});
	fake.nofinegrain = nofinegrain;
	OK(clReleaseMemObject(new_buffer(512)));
	fake.cap = 512;
	freed(allocate(512));
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	end_clean();
}

TEST(the_first_shared_memory_makes_room_on_a_device_without_a_free_byte)
{
	makes_room_first(0);
}

TEST(the_first_shared_memory_makes_room_on_a_device_without_fine_grains)
{
	makes_room_first(1);
}

/* As of the driver's own allocation of that size, where the driver looks. Nothing is larger than the block. */
TEST(what_lies_beyond_shared_memory_is_refused)
{
	begin((struct options){0});
	EXTENSION(clEnqueueMigrateMemINTEL);
	freed(allocate(BYTES));
	char *pointer = allocate(BYTES - 512), host[16] = "beyond";
	EQUAL(last_event(GMT_KIND_CREATE).granted, BYTES);
	const void *list[] = {pointer, pointer + 16};
	for (size_t more = 0; more < 2; more++) {
		cl_int want = more ? CL_INVALID_VALUE : CL_SUCCESS;
		const size_t sizes[] = {16, BYTES - 512 - 16 + more};
		EQUAL(clEnqueueSVMMap(world.queue, CL_TRUE, CL_MAP_WRITE, pointer + 100, BYTES - 512 - 100 + more, 0, NULL, NULL), want);
		EQUAL(clEnqueueSVMMigrateMem(world.queue, 2, list, sizes, 0, 0, NULL, NULL), want);
		EQUAL(clEnqueueMigrateMemINTEL(world.queue, pointer, BYTES - 512 + more, 0, 0, NULL, NULL), want);
	}
	OK(clEnqueueSVMUnmap(world.queue, pointer + 100, 0, NULL, NULL));
	OK(clEnqueueSVMMemcpy(world.queue, CL_TRUE, pointer + BYTES - 520, host, 16, 0, NULL, NULL)); /* no driver looks */
	EQUAL(memcmp(pointer + BYTES - 520, host, 16), 0);
	freed(pointer);
	OK(clFinish(world.queue));
	end_clean();
}

/* All that the pool holds goes, then what was asked for is tried without rounding. */
TEST(rounding_fails_no_shared_memory)
{
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(100)));
	fake.cap = 1000;
	char *pointer = allocate(1000);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 1000);
	EQUAL(fake.livebytes, 1000);
	CHECK(!clSVMAlloc(world.context, CL_MEM_READ_WRITE, 1, 0));
	EQUAL(freed(pointer), GMT_OUTCOME_DRIVER); /* not the policy's */
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	freed(allocate(512));
	pointer = clSharedMemAllocINTEL(world.context, NULL, NULL, 1000, 0, NULL);
	CHECK(pointer);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 1000);
	OK(clMemFreeINTEL(world.context, pointer));
	end_clean();
}

TEST(mapped_shared_memory_is_not_recycled)
{
	begin((struct options){0});
	char *pointer = allocate(BYTES);
	OK(clEnqueueSVMMap(world.queue, CL_TRUE, CL_MAP_WRITE, pointer, BYTES, 0, NULL, NULL));
	EQUAL(freed(pointer), GMT_OUTCOME_REFUSED);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_STATE);
	CHECK(fake_is_freed(pointer));
	pointer = allocate(BYTES);
	OK(clEnqueueSVMMap(world.queue, CL_TRUE, CL_MAP_WRITE, pointer + 8, 8, 0, NULL, NULL));
	OK(clEnqueueSVMUnmap(world.queue, pointer + 8, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(freed(pointer), GMT_OUTCOME_CACHED);
	end_clean();
}

TEST(a_buffer_in_shared_memory_keeps_it_from_the_pool)
{
	begin((struct options){0});
	char *pointer = allocate(BYTES);
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, BYTES / 2, pointer + BYTES / 2, &err);
	OK(err);
	OK(clReleaseMemObject(buffer));
	EQUAL(freed(pointer), GMT_OUTCOME_REFUSED);
	freed(allocate(2 * BYTES));
	pointer = allocate(BYTES + 512);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 2 * BYTES); /* a larger block */
	CHECK(!clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 2 * BYTES, pointer, &err));
	EQUAL(err, CL_INVALID_BUFFER_SIZE);
	freed(pointer);
	end_clean();
}

/* A mistake: the buffer outlives the memory that it is in. The pool does not hand that memory out. */
TEST(shared_memory_freed_under_a_buffer_is_not_handed_out)
{
	begin((struct options){0});
	freed(allocate(BYTES)); /* the block is recycled when the buffer is made in it */
	char *pointer = allocate(BYTES);
	EQUAL(created(), GMT_OUTCOME_HIT);
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, BYTES, pointer, &err);
	OK(err);
	use(world.queue, buffer);
	EQUAL(freed(pointer), GMT_OUTCOME_REFUSED);
	CHECK(fake_is_freed(pointer));
	char *other = allocate(BYTES);
	EQUAL(created(), GMT_OUTCOME_MISS);
	freed(other);
	OK(clReleaseMemObject(buffer));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 2);
	OK(clFinish(world.queue));
	end_clean();
}

TEST(a_recorded_command_buffer_keeps_shared_memory_from_the_pool)
{
	begin((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	cl_command_buffer_khr buffer = clCreateCommandBufferKHR(1, &world.queue, NULL, NULL);
	EQUAL(freed(allocate(BYTES)), GMT_OUTCOME_REFUSED);
	OK(clReleaseCommandBufferKHR(buffer));
	EQUAL(freed(allocate(BYTES)), GMT_OUTCOME_CACHED);
	end_clean();
}

TEST(what_is_freed_twice_or_used_then_is_found)
{
	begin((struct options){0});
	char *pointer = allocate(BYTES);
	freed(pointer);
	clSVMFree(world.context, pointer);
	EQUAL(diags(GMT_DIAG_DOUBLE_RELEASE), 1);
	void *list = pointer;
	OK(clEnqueueSVMFree(world.queue, 1, &list, NULL, NULL, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(diags(GMT_DIAG_DOUBLE_RELEASE), 2);
	EQUAL(clEnqueueSVMMemFill(world.queue, pointer + 8, "z", 1, 8, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE), 1);
	cl_kernel kernel = new_kernel();
	OK(clSetKernelArgSVMPointer(kernel, 0, pointer));
	run(world.queue, kernel);
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE), 2);
	OK(clFinish(world.queue));
	CHECK(allocate(BYTES) == pointer);
	freed(pointer);
	OK(clReleaseKernel(kernel));
	end_clean();
}

static void scrubbed(enum gmtscrub how, unsigned char byte)
{
	begin((struct options){.scrub = how});
	char *pointer = allocate(BYTES);
	memset(pointer, 1, BYTES);
	freed(pointer);
	CHECK(allocate(BYTES) == pointer);
	for (size_t i = 0; i < BYTES; i++)
		EQUAL((unsigned char)pointer[i], byte);
	freed(pointer);
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clDeviceMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	for (int i = 0; i < 2; i++) {
		unsigned char *shared = clSharedMemAllocINTEL(world.context, NULL, NULL, BYTES, 0, NULL);
		EQUAL(shared[BYTES - 1], i ? byte : FAKE_FRESH);
		memset(shared, 1, BYTES);
		OK(clMemFreeINTEL(world.context, shared));
		void *device = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, BYTES, 0, NULL);
		EQUAL(created(), GMT_OUTCOME_DRIVER);
		OK(clMemFreeINTEL(world.context, device));
	}
	end_clean();
}

TEST(recycled_shared_memory_is_zeroed)
{
	scrubbed(GMT_SCRUB_ZERO, 0);
}

TEST(recycled_shared_memory_is_poisoned)
{
	scrubbed(GMT_SCRUB_POISON, GMT_POISON);
}

TEST(contexts_do_not_count_pooled_shared_memory)
{
	begin((struct options){0});
	fake.countobjects = 1;
	cl_uint before = 0, after = 0;
	char *pointer = allocate(BYTES);
	freed(pointer);
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL));
	EQUAL(before, 2); /* the queue is the program's */
	CHECK(allocate(BYTES) == pointer);
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof after, &after, NULL));
	EQUAL(after, 3);
	freed(pointer);
	end_clean();
}

TEST(shared_memory_goes_back_when_the_core_fails)
{
	setenv("FAKE_CORE_FAIL_AT", "5", 1); /* plan, commit, free, plan, free */
	begin((struct options){0});
	for (int i = 0; i < 4; i++)
		clSVMFree(world.context, clSVMAlloc(world.context, 0, BYTES, 0));
	EQUAL(fake.livepointers, 0);
	end_clean();
	EQUAL(diags(GMT_DIAG_PANIC), 1);
}

TEST(functions_that_free_unseen_end_the_pool_of_shared_memory)
{
	begin((struct options){0});
	EQUAL(freed(allocate(BYTES)), GMT_OUTCOME_CACHED);
	CHECK(clGetExtensionFunctionAddress("clSVMFreeWithPropertiesKHR"));
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 0); /* buffers still come from it */
	char *pointer = allocate(BYTES);
	EQUAL(created(), GMT_OUTCOME_DRIVER);
	EQUAL(freed(pointer), GMT_OUTCOME_DRIVER);
	end_clean();
}

/* Addresses come and go on all threads, and each thread's commands must find its own. */
static void *hammer(void *data)
{
	cl_command_queue queue = data;
	for (unsigned i = 0; i < 400; i++) {
		size_t size = 64 + (size_t)(i * 7919 % 5000);
		char *pointer = clSVMAlloc(world.context, 0, size, i % 2 ? 0 : 256);
		CHECK(pointer);
		OK(clEnqueueSVMMemFill(queue, pointer + size / 2, "z", 1, size / 4, 0, NULL, NULL));
		if (i % 3)
			OK(clFinish(queue));
		void *list = pointer;
		if (i % 5 == 0)
			OK(clEnqueueSVMFree(queue, 1, &list, NULL, NULL, 0, NULL, NULL));
		else
			clSVMFree(world.context, pointer);
	}
	OK(clFinish(queue));
	return NULL;
}

TEST(threads_allocate_and_free_shared_memory)
{
	begin((struct options){0});
	session_start();
	pthread_t threads[3];
	cl_command_queue queues[3];
	for (int i = 0; i < 3; i++) {
		queues[i] = new_queue(world.context, i == 2 ? UNORDERED : 0);
		CHECK(pthread_create(&threads[i], NULL, hammer, queues[i]) == 0);
	}
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		OK(clReleaseCommandQueue(queues[i]));
	}
	session_stop();
	CHECK(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT) > 100);
	end_clean();
	EQUAL(fake.livepointers, 0);
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE) + diags(GMT_DIAG_DOUBLE_RELEASE), 0);
}
