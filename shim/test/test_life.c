/* test_life.c: references, parts, callbacks, maps, and the kinds of memory that are tracked only. */
#include "harness.h"

static cl_mem part_of(cl_mem buffer)
{
	cl_int err = 1;
	cl_buffer_region region = {0, 64};
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	return part;
}

static cl_mem image_of(cl_mem buffer)
{
	cl_int err = 1;
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16, .mem_object = buffer};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	return image;
}

TEST(retains_have_call_sites)
{
	begin((struct options){.tagmode = GMT_TAGS_CALLER});
	cl_mem buffer = new_buffer(100);
	OK(clRetainMemObject(buffer));
	struct gmtevent retain = last_event(GMT_KIND_RETAIN);
	CHECK(retain.tag && retain.cost && retain.cost != retain.tag);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(buffer));
}

TEST(retains_and_releases_are_counted)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	OK(clRetainMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RETAIN).granted, 2);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).granted, 1);
	cl_uint count = 0;
	OK(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
	EQUAL(count, 1);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_CACHED);
	CHECK(new_buffer(100) == buffer);
	OK(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
	EQUAL(count, 1);
	OK(clReleaseMemObject(buffer));
	EQUAL(events(GMT_KIND_RETAIN), 1);
	EQUAL(events(GMT_KIND_RELEASE), 3);
	end_clean();
}

static void pins(cl_mem (*make)(cl_mem), bool pooled)
{
	static char storage[100];
	cl_mem buffer = pooled ? new_buffer(100) : clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 100, storage, NULL);
	cl_mem first = make(buffer), second = make(buffer);
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_PINNED);
	uint64_t object = last_event(GMT_KIND_RELEASE).object;
	cl_mem another = new_buffer(100);
	CHECK(another != buffer);
	EQUAL(fake.livememory, 3);
	OK(clReleaseMemObject(second));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, pooled ? GMT_OUTCOME_CACHED : GMT_OUTCOME_DRIVER);
	EQUAL(last_event(GMT_KIND_RELEASE).object, object);
	EQUAL(fake.livememory, pooled ? 2 : 1);
	if (pooled) {
		cl_mem again = new_buffer(100);
		CHECK(again == buffer);
		OK(clReleaseMemObject(again));
	}
	OK(clReleaseMemObject(another));
}

TEST(parts_pin_a_pooled_buffer)
{
	begin((struct options){0});
	pins(part_of, true);
	end_clean();
}

TEST(parts_pin_an_unpooled_buffer)
{
	begin((struct options){0});
	pins(part_of, false);
	end_clean();
}

TEST(images_of_a_buffer_pin_it)
{
	begin((struct options){0});
	pins(image_of, true);
	OK(clFinish(world.queue));
	end_clean();
}

TEST(images_of_an_unpooled_buffer_pin_it)
{
	begin((struct options){0});
	pins(image_of, false);
	end_clean();
}

TEST(images_of_parts_pin_both)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100), part = part_of(buffer), image = image_of(part);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(part));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_PINNED), 2);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 0);
	OK(clReleaseMemObject(image));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 1);
	EQUAL(fake.livememory, 1);
	end_clean();
}

TEST(a_part_in_use_keeps_the_block_from_others)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100), part = part_of(buffer);
	use(second, part);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_COOLING);
	cl_mem other = new_buffer(100);
	CHECK(other != buffer);
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static int called;
static int order[4];

static void CL_CALLBACK destroyed(cl_mem memory, void *data)
{
	(void)memory;
	order[called++] = *(int *)data;
}

TEST(destructor_callbacks_fire_at_the_release)
{
	static int one = 1, two = 2;
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	OK(clSetMemObjectDestructorCallback(buffer, destroyed, &one));
	OK(clSetMemObjectDestructorCallback(buffer, destroyed, &two));
	EQUAL(called, 0);
	OK(clReleaseMemObject(buffer));
	EQUAL(called, 2);
	EQUAL(order[0], 2);
	EQUAL(order[1], 1);
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_REFUSED);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_STATE);
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(fake.creates, 2);
	EQUAL(called, 2);
	end_clean();
}

TEST(a_buffer_released_while_mapped_is_not_recycled)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	for (int i = 0; i < 2; i++) { /* mapped and unmapped again is as good as new */
		void *pointer = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, NULL, NULL, NULL);
		CHECK(pointer);
		OK(clEnqueueUnmapMemObject(world.queue, buffer, pointer, 0, NULL, NULL));
	}
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer);
	CHECK(clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, NULL, NULL, NULL));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_STATE);
	OK(clFinish(world.queue));
	EQUAL(fake.livememory, 0);
	end_clean();
}

TEST(images_and_pipes_are_tracked)
{
	begin((struct options){0});
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	cl_mem all[] = {
		clCreateImage(world.context, 0, &format, &desc, NULL, NULL),
		clCreateImageWithProperties(world.context, NULL, 0, &format, &desc, NULL, NULL),
		clCreateImage2D(world.context, 0, &format, 16, 16, 0, NULL, NULL),
		clCreateImage3D(world.context, 0, &format, 16, 4, 4, 0, 0, NULL, NULL),
		clCreatePipe(world.context, 0, 4, 256, NULL, NULL),
	};
	EQUAL(events(GMT_KIND_CREATE), 5);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_PIPE);
	for (int i = 0; i < 5; i++) {
		size_t size = 0;
		OK(clGetMemObjectInfo(all[i], CL_MEM_SIZE, sizeof size, &size, NULL));
		EQUAL(size, 1024);
		EQUAL(last_event(GMT_KIND_CREATE).size, 1024);
		OK(clEnqueueFillImage(world.queue, all[i], NULL, NULL, NULL, 0, NULL, NULL));
		OK(clReleaseMemObject(all[i]));
		bool second = i == 1 || i == 2; /* of its shape */
		EQUAL(last_event(GMT_KIND_RELEASE).outcome, second ? GMT_OUTCOME_CACHED : GMT_OUTCOME_DRIVER);
	}
	EQUAL(events(GMT_KIND_USE), 5);
	end_clean();
}

TEST(shared_virtual_memory_is_tracked)
{
	begin((struct options){.observe = true});
	void *first = clSVMAlloc(world.context, 0, 100, 0), *second = clSVMAlloc(world.context, 0, 200, 0);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_SVM);
	EQUAL(last_event(GMT_KIND_CREATE).size, 200);
	clSVMFree(world.context, first);
	EQUAL(last_event(GMT_KIND_RELEASE).size, 100);
	OK(clEnqueueSVMFree(world.queue, 1, &second, NULL, NULL, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_RELEASE).size, 200);
	CHECK(!clSVMAlloc(world.context, 0, (size_t)fake.largest + 1, 0));
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_FAILED);
	EQUAL(events(GMT_KIND_RELEASE), 2);
	OK(clFinish(world.queue));
	EQUAL(fake.livepointers, 0);
	end_clean();
}

TEST(unified_shared_memory_is_tracked)
{
	begin((struct options){.observe = true});
	EXTENSION(clHostMemAllocINTEL);
	EXTENSION(clDeviceMemAllocINTEL);
	EXTENSION(clSharedMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	EXTENSION(clMemBlockingFreeINTEL);
	cl_platform_id platform;
	OK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clMemFreeINTEL") == clGetExtensionFunctionAddress("clMemFreeINTEL"));
	cl_int err = 1;
	void *host = clHostMemAllocINTEL(world.context, NULL, 10, 0, &err);
	OK(err);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_USM_HOST);
	void *device = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, 20, 0, NULL);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_USM_DEVICE);
	void *shared = clSharedMemAllocINTEL(world.context, fake_device(), NULL, 30, 0, NULL);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_USM_SHARED);
	CHECK(!clDeviceMemAllocINTEL(world.context, fake_device(), NULL, 0, 0, &err));
	EQUAL(err, CL_INVALID_BUFFER_SIZE);
	EQUAL(last_event(GMT_KIND_CREATE).status, CL_INVALID_BUFFER_SIZE);
	OK(clMemFreeINTEL(world.context, host));
	OK(clMemBlockingFreeINTEL(world.context, device));
	OK(clMemFreeINTEL(world.context, shared));
	OK(clMemFreeINTEL(world.context, NULL));
	EQUAL(events(GMT_KIND_RELEASE), 3);
	EQUAL(fake.livepointers, 0);
	end_clean();
}

TEST(buffers_by_extension_are_served_like_others)
{
	begin((struct options){0});
	EXTENSION(clCreateBufferWithPropertiesINTEL);
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(clCreateBufferWithPropertiesINTEL(world.context, NULL, 0, 100, NULL, NULL)));
	EQUAL(fake.creates, 1);
	static const cl_mem_properties_intel none[] = {0};
	OK(clReleaseMemObject(clCreateBufferWithPropertiesINTEL(world.context, none, 0, 100, NULL, NULL)));
	EQUAL(fake.creates, 2);
	end_clean();
}

TEST(extensions_that_defeat_tracking_end_pooling)
{
	begin((struct options){0});
	cl_platform_id platform;
	OK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(!clGetExtensionFunctionAddress("clNoSuchFunction"));
	CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clGetKernelSubGroupInfoKHR"));
	cl_mem buffer = new_buffer(100);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 0);
	CHECK(clGetExtensionFunctionAddress("clEnqueueSomethingVENDOR"));
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	CHECK(strcmp(last_text(GMT_KIND_DIAG), "clEnqueueSomethingVENDOR") == 0);
	OK(clReleaseMemObject(buffer));
	EQUAL(fake.livememory, 0);
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(fake.creates, 2);
	end_clean();
}

/* What stands after the name and the driver's version. */
static const char *identity(void)
{
	const char *text = last_text(GMT_KIND_DEVICE);
	text += strlen(text) + 1;
	return text + strlen(text) + 1;
}

TEST(devices_are_told_apart)
{
	begin((struct options){0});
	CHECK(strcmp(identity(), "local 1") == 0);
	fake.uuid = 1;
	cl_context other = new_context();
	CHECK(strcmp(identity(), "pci 0000:65:02.0 uuid 30313233343536373839616263646566") == 0);
	OK(clReleaseContext(other));
	fake.uuid = 0;
	end_clean();
}

TEST(contexts_and_queues_are_followed)
{
	begin((struct options){0});
	EQUAL(events(GMT_KIND_DEVICE), 1);
	EQUAL(last_event(GMT_KIND_DEVICE).link, fake.largest);
	CHECK(strcmp(last_text(GMT_KIND_DEVICE), "fake") == 0);
	OK(clRetainContext(world.context));
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_RETAIN);
	OK(clReleaseContext(world.context));
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_RELEASE);
	OK(clRetainCommandQueue(world.queue));
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(last_event(GMT_KIND_QUEUE).op, GMT_LIFE_RELEASE);
	EQUAL(last_event(GMT_KIND_QUEUE).link, 1); /* the first device */
	cl_command_queue unordered = new_queue(world.context, UNORDERED);
	EQUAL(last_event(GMT_KIND_QUEUE).flags, GMT_FLAG_OUT_OF_ORDER);
	OK(clReleaseCommandQueue(unordered));
	EQUAL(last_event(GMT_KIND_QUEUE).op, GMT_LIFE_END);
	end_clean();
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_END);
}

TEST(creates_say_whether_the_memory_of_the_program_begins_at_a_page)
{
	static _Alignas(4096) char host[8192];
	begin((struct options){0});
	for (size_t at = 0; at < 32; at += 16) {
		cl_int err;
		cl_mem buffer = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 4096, host + at, &err);
		OK(err);
		EQUAL(last_event(GMT_KIND_CREATE).flags & GMT_FLAG_OFF_PAGE, at ? GMT_FLAG_OFF_PAGE : 0);
		OK(clReleaseMemObject(buffer));
	}
	end_clean();
}
