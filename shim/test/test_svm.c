/* test_svm.c: shared virtual memory and unified shared memory from the pool. */
#include "harness.h"

#include <pthread.h>

#define BYTES 4096
#define FINE (CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER)

static char *allocate(size_t size)
{
	char *pointer = clSVMAlloc(world.context, CL_MEM_READ_WRITE, size, 0);
	CHECK(pointer);
	CHECK(!fake_is_freed(pointer));
	EQUAL(fake_pending_at(pointer), 0); /* no earlier owner's commands */
	return pointer;
}

static enum gmtoutcome released(void)
{
	return (enum gmtoutcome)last_event(GMT_KIND_RELEASE).outcome;
}

static enum gmtoutcome freed(void *pointer)
{
	clSVMFree(world.context, pointer);
	return released();
}

static enum gmtoutcome created(void)
{
	return (enum gmtoutcome)last_event(GMT_KIND_CREATE).outcome;
}

static void fill_at(cl_command_queue queue, void *pointer)
{
	OK(clEnqueueSVMMemFill(queue, pointer, "z", 1, 16, 0, NULL, NULL));
}

static cl_kernel new_kernel(void)
{
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	CHECK(kernel);
	return kernel;
}

static void run(cl_command_queue queue, cl_kernel kernel)
{
	const size_t one = 1;
	OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
}

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

TEST(the_first_shared_memory_makes_room_on_a_device_without_a_free_byte)
{
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(512)));
	fake.cap = 512;
	freed(allocate(512));
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	end_clean();
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

TEST(shared_memory_cools_until_its_commands_are_over)
{
	begin((struct options){0});
	char *pointer = allocate(BYTES);
	fill_at(world.queue, pointer);
	EQUAL(freed(pointer), GMT_OUTCOME_COOLING); /* although all that comes on this queue runs behind it: the host need not */
	char *other = allocate(BYTES);
	CHECK(other != pointer);
	OK(clFinish(world.queue));
	CHECK(allocate(BYTES) == pointer);
	freed(pointer);
	freed(other);
	EQUAL(fake.hazards, 0);
	end_clean();
}

/* Of each: the address that the command gets lies in the middle. */
static void use_inside(int how, cl_command_queue queue, char *middle)
{
	static char host[16];
	cl_kernel kernel = new_kernel();
	switch (how) {
	case 0:
		OK(clEnqueueSVMMemcpy(queue, CL_FALSE, middle, host, 16, 0, NULL, NULL));
		break;
	case 1:
		OK(clEnqueueSVMMemcpy(queue, CL_FALSE, host, middle, 16, 0, NULL, NULL));
		break;
	case 2:
		OK(clEnqueueSVMMap(queue, CL_FALSE, CL_MAP_READ, middle, 16, 0, NULL, NULL));
		OK(clEnqueueSVMUnmap(queue, middle, 0, NULL, NULL));
		break;
	case 3:
		OK(clEnqueueSVMMigrateMem(queue, 1, (const void *[]){middle}, NULL, 0, 0, NULL, NULL));
		break;
	case 4:
		OK(clSetKernelArgSVMPointer(kernel, 1, middle));
		run(queue, kernel);
		break;
	default:
		fill_at(queue, middle);
	}
	OK(clReleaseKernel(kernel));
}

TEST(a_pointer_into_the_middle_is_a_use)
{
	static const size_t sizes[] = {1, 64, 65, 4096, 100000, 1 << 20, (1 << 20) + 1};
	begin((struct options){0});
	for (int how = 0; how < 6; how++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			size_t size = sizes[i] + 16;
			char *pointer = allocate(size);
			use_inside(how, world.queue, pointer + (i % 2 ? sizes[i] : sizes[i] / 2));
			EQUAL(freed(pointer), GMT_OUTCOME_COOLING);
			char *other = allocate(size);
			CHECK(other != pointer);
			OK(clFinish(world.queue));
			freed(other);
		}
	}
	end_clean();
}

TEST(what_lies_beside_shared_memory_is_not_it)
{
	begin((struct options){0});
	enum { MANY = 300 };
	char *all[MANY];
	for (int i = 0; i < MANY; i++)
		all[i] = allocate(100 + 37 * (size_t)i);
	size_t uses = events(GMT_KIND_USE);
	static char host[64];
	fill_at(world.queue, host);
	EQUAL(events(GMT_KIND_USE), uses);
	for (int i = 0; i < MANY; i++) {
		fill_at(world.queue, all[i] + 37 * i);
		EQUAL(last_event(GMT_KIND_USE).size, 16);
		EQUAL(last_event(GMT_KIND_USE).granted, 37 * i);
	}
	OK(clFinish(world.queue));
	for (int i = 0; i < MANY; i++)
		clSVMFree(world.context, all[i]);
	end_clean();
}

static void indirect(cl_kernel_exec_info what, size_t size, const void *value)
{
	begin((struct options){0});
	cl_kernel kernel = new_kernel();
	OK(clSetKernelExecInfo(kernel, what, size, value));
	cl_kernel clone = clCloneKernel(kernel, NULL);
	char *pointer = allocate(BYTES);
	run(world.queue, clone);
	EQUAL(freed(pointer), GMT_OUTCOME_COOLING);
	cl_mem buffer = new_buffer(100);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED); /* which no pointer leads to */
	char *other = allocate(BYTES);
	CHECK(other != pointer);
	OK(clFinish(world.queue));
	CHECK(allocate(BYTES) == pointer);
	freed(other);
	freed(pointer);
	OK(clReleaseKernel(kernel));
	OK(clReleaseKernel(clone));
	end_clean();
}

TEST(a_list_of_pointers_stands_for_all)
{
	static char some[16];
	const void *list[] = {some};
	indirect(CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof list, list);
}

TEST(fine_grain_system_access_stands_for_all)
{
	const cl_bool yes = CL_TRUE;
	indirect(CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes);
}

TEST(indirect_access_stands_for_all)
{
	const cl_bool yes = CL_TRUE;
	indirect(CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL, sizeof yes, &yes);
}

TEST(a_kernel_that_follows_no_pointers_any_more)
{
	begin((struct options){0});
	cl_kernel kernel = new_kernel();
	const cl_bool yes = CL_TRUE, no = CL_FALSE;
	OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof yes, &yes));
	OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof no, &no));
	char *pointer = allocate(BYTES);
	run(world.queue, kernel);
	EQUAL(freed(pointer), GMT_OUTCOME_CACHED);
	OK(clReleaseKernel(kernel));
	end_clean();
}

TEST(a_handle_in_place_of_an_address_and_back)
{
	begin((struct options){0});
	cl_kernel kernel = new_kernel();
	char *pointer = allocate(BYTES);
	OK(clSetKernelArgSVMPointer(kernel, 0, pointer + 8));
	cl_mem buffer = new_buffer(100);
	OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	run(world.queue, kernel);
	EQUAL(last_event(GMT_KIND_USE).size, 0);
	EQUAL(freed(pointer), GMT_OUTCOME_CACHED);
	CHECK(allocate(BYTES) == pointer);
	OK(clSetKernelArgSVMPointer(kernel, 0, pointer + 8));
	run(world.queue, kernel);
	EQUAL(freed(pointer), GMT_OUTCOME_COOLING);
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseKernel(kernel));
	end_clean();
}

TEST(an_enqueued_free_happens_in_its_turn)
{
	begin((struct options){0});
	char *both[2] = {allocate(BYTES), allocate(2 * BYTES)}, *first = both[0];
	fill_at(world.queue, first);
	cl_event done = NULL;
	cl_command_type type = 0;
	OK(clEnqueueSVMFree(world.queue, 2, (void **)both, NULL, NULL, 0, NULL, &done));
	memset(both, 0, sizeof both);
	EQUAL(events(GMT_KIND_RELEASE), 0); /* until then it is the program's */
	char *other = allocate(BYTES);
	CHECK(other != first);
	OK(clGetEventInfo(done, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
	OK(clWaitForEvents(1, &done));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED) + outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_COOLING), 2);
	OK(clFinish(world.queue));
	EQUAL(fake.livepointers, 3); /* the driver has freed none */
	CHECK(allocate(BYTES) == first);
	OK(clReleaseEvent(done));
	freed(first);
	freed(other);
	end_clean();
	EQUAL(fake.livepointers, 0);
}

/* Were the driver to free it, another thread could get the address as a block's, and our account of the free would be of that. */
TEST(an_enqueued_free_of_the_drivers_own_is_seen_before_it_happens)
{
	begin((struct options){0});
	void *pointer = clSVMAlloc(world.context, (cl_svm_mem_flags)1 << 20, BYTES, 0), *list = pointer;
	EQUAL(created(), GMT_OUTCOME_DRIVER);
	OK(clEnqueueSVMFree(world.queue, 1, &list, NULL, NULL, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_RELEASE), 0);
	CHECK(!fake_is_freed(pointer));
	OK(clFinish(world.queue));
	EQUAL(released(), GMT_OUTCOME_DRIVER);
	CHECK(fake_is_freed(pointer));
	EQUAL(fake.livepointers, 0);
	end_clean();
}

/* Legal: the free waits for an event that the program sets when it is done. */
TEST(shared_memory_is_used_until_its_enqueued_free_runs)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	char *pointer = allocate(BYTES);
	cl_event gate = clCreateUserEvent(world.context, NULL);
	void *list = pointer;
	OK(clEnqueueSVMFree(world.queue, 1, &list, NULL, NULL, 1, &gate, NULL));
	fill_at(second, pointer);
	OK(clFinish(second));
	EQUAL(pointer[0], 'z');
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE), 0);
	CHECK(allocate(BYTES) != pointer);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clFinish(world.queue));
	CHECK(allocate(BYTES) == pointer);
	OK(clReleaseEvent(gate));
	OK(clReleaseCommandQueue(second));
}

TEST(an_enqueued_free_that_is_refused_frees_nothing)
{
	begin((struct options){0});
	char *pointer = allocate(BYTES);
	void *list = pointer;
	EQUAL(clEnqueueSVMFree(NULL, 1, &list, NULL, NULL, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EQUAL(events(GMT_KIND_RELEASE), 0);
	EQUAL(freed(pointer), GMT_OUTCOME_CACHED);
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
