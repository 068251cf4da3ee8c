/* test_svm_use.c: commands that use shared virtual memory, and frees that are commands. */
#include "svm.h"

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

TEST(shared_memory_is_found_when_what_lay_beside_it_is_gone)
{
	begin((struct options){.observe = true});
	enum { MANY = 300 };
	char *all[MANY];
	for (int i = 0; i < MANY; i++)
		all[i] = allocate(100 + 37 * (size_t)i);
	for (int i = 0; i < MANY; i += 2)
		clSVMFree(world.context, all[i]);
	cl_kernel kernel = new_kernel();
	size_t before = events(GMT_KIND_USE), empty = 0;
	run(world.queue, kernel);
	empty = events(GMT_KIND_USE) - before;
	for (int i = 0; i < 2 * MANY; i++) {
		size_t last = i % 2 ? 99 + 37 * (size_t)(i / 2) : 0;
		OK(clSetKernelArgSVMPointer(kernel, 1, all[i / 2] + last));
		before = events(GMT_KIND_USE);
		run(world.queue, kernel);
		EQUAL(events(GMT_KIND_USE), before + empty + (i / 2 % 2 != 0));
	}
	OK(clReleaseKernel(kernel));
	for (int i = 1; i < MANY; i += 2) {
		for (int end = 0; end < 2; end++) {
			int at = end ? 84 + 37 * i : 0;
			size_t uses = events(GMT_KIND_USE);
			fill_at(world.queue, all[i] + at);
			EQUAL(events(GMT_KIND_USE), uses + 1);
			EQUAL(last_event(GMT_KIND_USE).granted, at);
		}
	}
	OK(clFinish(world.queue));
	for (int i = 1; i < MANY; i += 2)
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

TEST(a_kernel_that_follows_pointers_may_end_before_what_came_first)
{
	begin((struct options){0});
	cl_command_queue queue = new_queue(world.context, UNORDERED);
	cl_mem first = new_used(queue);
	cl_kernel kernel = new_kernel();
	const cl_bool yes = CL_TRUE;
	OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof yes, &yes));
	char *pointer = allocate(BYTES);
	cl_event event;
	OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, &event));
	OK(clWaitForEvents(1, &event));
	EQUAL(freed(pointer), GMT_OUTCOME_CACHED);
	EQUAL(release(first), GMT_OUTCOME_COOLING);
	OK(clReleaseEvent(event));
	OK(clReleaseKernel(kernel));
	OK(clReleaseCommandQueue(queue));
	end_clean();
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
