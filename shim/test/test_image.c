/* test_image.c: images from the pool, from the second of a shape on. */
#include "harness.h"

#define SIDE 16
#define BYTES (SIDE * SIDE * 4)

static const cl_image_format rgba = {CL_RGBA, CL_UNSIGNED_INT8};
static const cl_image_desc square = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
static const size_t origin[3] = {0, 0, 0}, region[3] = {SIDE, SIDE, 1};

static cl_mem image_of(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc, void *host)
{
	cl_int err = 1;
	cl_mem image = clCreateImage(context, flags, format, desc, host, &err);
	OK(err);
	CHECK(image);
	fake_hand_out(image);
	return image;
}

static cl_mem new_image(void)
{
	return image_of(world.context, CL_MEM_READ_WRITE, &rgba, &square, NULL);
}

/* The pool has a class for the usual image from here on, and no block of it. */
static void begin_imaging(struct options options)
{
	begin(options);
	EQUAL(release(new_image()), GMT_OUTCOME_DRIVER);
}

static enum gmtoutcome created(void)
{
	return (enum gmtoutcome)last_event(GMT_KIND_CREATE).outcome;
}

static void fill_image(cl_command_queue queue, cl_mem image)
{
	const cl_uint colour[4] = {1, 2, 3, 4};
	OK(clEnqueueFillImage(queue, image, colour, origin, region, 0, NULL, NULL));
}

TEST(images_come_from_the_pool)
{
	begin_imaging((struct options){0});
	cl_mem first = new_image();
	EQUAL(created(), GMT_OUTCOME_MISS);
	EQUAL(last_event(GMT_KIND_CREATE).status, 1); /* the shape */
	EQUAL(last_event(GMT_KIND_CREATE).granted, BYTES);
	EQUAL(release(first), GMT_OUTCOME_CACHED);
	CHECK(new_image() == first);
	EQUAL(created(), GMT_OUTCOME_HIT);
	EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_IMAGE);
	EQUAL(last_event(GMT_KIND_CREATE).size, BYTES);
	EQUAL(fake.creates, 2);
	OK(clReleaseMemObject(first));
	CHECK(clCreateImageWithProperties(world.context, NULL, CL_MEM_READ_WRITE, &rgba, &square, NULL, NULL) == first);
	OK(clReleaseMemObject(first));
	CHECK(clCreateImage2D(world.context, CL_MEM_READ_WRITE, &rgba, SIDE, SIDE, 0, NULL, NULL) == first);
	OK(clReleaseMemObject(first));
	end_clean();
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_CONTEXT);
}

TEST(images_of_three_dimensions_come_from_the_pool)
{
	begin((struct options){0});
	for (int i = 0; i < 4; i++) {
		OK(clReleaseMemObject(clCreateImage3D(world.context, 0, &rgba, 8, 4, 2, 0, 0, NULL, NULL)));
		EQUAL(created(), i == 0 ? GMT_OUTCOME_DRIVER : i == 1 ? GMT_OUTCOME_MISS : GMT_OUTCOME_HIT);
	}
	end_clean();
}

TEST(shapes_do_not_mix)
{
	static const cl_image_format formats[] = {{CL_RGBA, CL_UNSIGNED_INT8}, {CL_RGBA, CL_UNORM_INT8}, {CL_BGRA, CL_UNORM_INT8}};
	static const cl_image_desc descs[] = {
		{.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE},
		{.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 2 * SIDE, .image_height = SIDE / 2},
		{.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY, .image_width = SIDE, .image_height = SIDE, .image_array_size = 1},
	};
	static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR};
	begin((struct options){0});
	cl_context second = new_context();
	cl_mem all[54];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 54; i++)
			all[i] = image_of(i < 27 ? world.context : second, flags[i % 3], &formats[i / 3 % 3], &descs[i / 9 % 3], NULL);
		for (int i = 0; i < 54; i++)
			OK(clReleaseMemObject(all[i]));
	}
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_DRIVER), 54);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 54);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 54);
	EQUAL(last_event(GMT_KIND_CREATE).status, 27); /* shapes count in each context */
	cl_mem buffer = new_buffer(BYTES); /* free images are no buffers */
	EQUAL(created(), GMT_OUTCOME_MISS);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseContext(second));
	end_clean();
}

static void never_pooled(cl_mem_flags flags, const cl_image_desc *desc, void *host)
{
	for (int i = 0; i < 3; i++) {
		cl_mem image = image_of(world.context, flags, &rgba, desc, host);
		EQUAL(created(), GMT_OUTCOME_DRIVER);
		EQUAL(release(image), GMT_OUTCOME_DRIVER);
	}
}

TEST(some_images_are_never_pooled)
{
	static char host[BYTES];
	begin((struct options){0});
	cl_mem buffer = new_buffer(BYTES), base = image_of(world.context, 0, &rgba, &square, NULL);
	cl_image_desc of = square, mipped = square;
	never_pooled(CL_MEM_USE_HOST_PTR, &square, host);
	never_pooled(CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_NO_ACCESS, &square, host);
	never_pooled(1 << 14, &square, NULL);
	of.mem_object = buffer;
	never_pooled(CL_MEM_READ_WRITE, &of, NULL);
	of.mem_object = base;
	never_pooled(CL_MEM_READ_WRITE, &of, NULL);
	mipped.num_mip_levels = 2;
	never_pooled(CL_MEM_READ_WRITE, &mipped, NULL);
	const cl_mem_properties none[] = {0};
	for (int i = 0; i < 3; i++) {
		cl_mem image = clCreateImageWithProperties(world.context, none, 0, &rgba, &square, NULL, NULL);
		EQUAL(created(), GMT_OUTCOME_DRIVER);
		OK(clReleaseMemObject(image));
	}
	OK(clReleaseMemObject(base));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(a_refused_image_makes_no_shape)
{
	begin((struct options){0});
	const cl_image_desc none = {.image_type = CL_MEM_OBJECT_IMAGE2D};
	for (int i = 0; i < 3; i++) {
		cl_int err = 0;
		CHECK(!clCreateImage(world.context, 0, &rgba, &none, NULL, &err));
		EQUAL(err, CL_INVALID_IMAGE_DESCRIPTOR);
		CHECK(!clCreateImage(world.context, 0, NULL, &square, NULL, &err));
		EQUAL(err, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
		EQUAL(created(), GMT_OUTCOME_FAILED);
		EQUAL(last_event(GMT_KIND_CREATE).status, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
	}
	end_clean();
	EQUAL(events(GMT_KIND_ORDER), 0); /* the policy was not asked */
}

static cl_uint number(cl_mem image, cl_mem_info what)
{
	cl_uint value = 77;
	OK(clGetMemObjectInfo(image, what, sizeof value, &value, NULL));
	return value;
}

TEST(a_recycled_image_answers_as_a_new_one)
{
	begin_imaging((struct options){0});
	cl_mem image = new_image();
	OK(clRetainMemObject(image));
	OK(clReleaseMemObject(image));
	fill_image(world.queue, image);
	OK(clReleaseMemObject(image));
	size_t element = 0;
	EQUAL(clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clGetMemObjectInfo(image, CL_MEM_SIZE, sizeof element, &element, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clRetainMemObject(image), CL_INVALID_MEM_OBJECT);
	EQUAL(clReleaseMemObject(image), CL_INVALID_MEM_OBJECT);
	cl_int err = 0;
	cl_image_desc of = square;
	of.mem_object = image;
	CHECK(!clCreateImage(world.context, 0, &rgba, &of, NULL, &err));
	EQUAL(err, CL_INVALID_MEM_OBJECT);
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE), 4);
	EQUAL(diags(GMT_DIAG_DOUBLE_RELEASE), 1);
	fake.countcommands = 1; /* the former owner's command is pending */
	CHECK(new_image() == image);
	EQUAL(number(image, CL_MEM_REFERENCE_COUNT), 1);
	EQUAL(number(image, CL_MEM_MAP_COUNT), 0);
	OK(clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL));
	EQUAL(element, 4);
	OK(clReleaseMemObject(image));
	end_clean();
}

static void CL_CALLBACK note_end(cl_mem memory, void *data)
{
	*(cl_mem *)data = memory;
}

TEST(an_image_with_a_destructor_is_not_recycled)
{
	begin_imaging((struct options){0});
	cl_mem image = new_image(), ended = NULL;
	OK(clSetMemObjectDestructorCallback(image, note_end, &ended));
	EQUAL(release(image), GMT_OUTCOME_REFUSED);
	CHECK(ended == image);
	end_clean();
}

TEST(an_image_released_while_mapped_is_not_recycled)
{
	begin_imaging((struct options){0});
	cl_mem image = new_image();
	size_t row = 0;
	cl_int err = 1;
	void *pointer = clEnqueueMapImage(world.queue, image, CL_TRUE, CL_MAP_WRITE, origin, region, &row, NULL, 0, NULL, NULL, &err);
	OK(err);
	CHECK(pointer);
	EQUAL(release(image), GMT_OUTCOME_REFUSED);
	EQUAL(diags(GMT_DIAG_STILL_MAPPED), 1);
	OK(clFinish(world.queue));
	end_clean();
}

TEST(an_image_cools_until_its_commands_are_over)
{
	begin_imaging((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem image = new_image();
	fill_image(second, image);
	EQUAL(release(image), GMT_OUTCOME_COOLING);
	cl_mem other = new_image();
	CHECK(other != image);
	fill_image(world.queue, other);
	OK(clFinish(second));
	OK(clFinish(world.queue));
	CHECK(new_image() == image);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(other));
	EQUAL(fake.hazards, 0);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(kernels_use_images)
{
	begin_imaging((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_int err = 1;
	cl_kernel kernel = clCreateKernel(fake_program(), "k", &err);
	OK(err);
	cl_mem image = new_image();
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &image));
	OK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, region, NULL, 0, NULL, NULL));
	EQUAL(release(image), GMT_OUTCOME_COOLING); /* the argument keeps nothing alive, the command does */
	OK(clFinish(second));
	CHECK(new_image() == image);
	OK(clReleaseMemObject(image));
	fake.arginfo = 1;
	fake.argaddress[1] = CL_KERNEL_ARG_ADDRESS_GLOBAL;
	EQUAL(clSetKernelArg(kernel, 1, sizeof(cl_mem), &image), CL_INVALID_MEM_OBJECT);
	OK(clReleaseKernel(kernel));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(an_image_of_a_pooled_image_pins_it)
{
	begin_imaging((struct options){0});
	cl_mem base = new_image();
	cl_image_desc of = square;
	of.mem_object = base;
	cl_mem view = image_of(world.context, 0, &rgba, &of, NULL);
	EQUAL(release(base), GMT_OUTCOME_PINNED);
	cl_mem other = new_image();
	CHECK(other != base);
	OK(clReleaseMemObject(view));
	CHECK(new_image() == base);
	OK(clReleaseMemObject(base));
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(contents_are_copied_into_recycled_images)
{
	enum { PITCH = SIDE * 4 + 12 };
	static unsigned char host[SIDE * PITCH];
	begin((struct options){0});
	cl_image_desc padded = square;
	padded.image_row_pitch = PITCH;
	for (unsigned round = 0; round < 4; round++) {
		for (size_t i = 0; i < sizeof host; i++)
			host[i] = (unsigned char)(i * 3 + round);
		cl_mem image = image_of(world.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &rgba, &padded, host);
		EQUAL(created(), round == 0 ? GMT_OUTCOME_DRIVER : round == 1 ? GMT_OUTCOME_MISS : GMT_OUTCOME_HIT);
		for (size_t y = 0; y < SIDE; y++)
			CHECK(memcmp(fake_contents(image) + y * SIDE * 4, host + y * PITCH, SIDE * 4) == 0);
		OK(clReleaseMemObject(image));
	}
	end_clean();
}

TEST(an_image_in_use_is_not_written_over)
{
	static unsigned char host[BYTES];
	begin((struct options){0});
	const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
	OK(clReleaseMemObject(image_of(world.context, flags, &rgba, &square, host)));
	cl_mem image = image_of(world.context, flags, &rgba, &square, host);
	fill_image(world.queue, image);
	EQUAL(release(image), GMT_OUTCOME_CACHED); /* in order, which our queue is not */
	cl_mem other = image_of(world.context, flags, &rgba, &square, host);
	CHECK(other != image);
	EQUAL(created(), GMT_OUTCOME_DRIVER);
	EQUAL(fake.pending, 1);
	OK(clReleaseMemObject(other));
	end_clean();
}

static void scrubbed(enum gmtscrub how, unsigned char byte)
{
	begin_imaging((struct options){.scrub = how});
	cl_mem image = new_image();
	static unsigned char host[BYTES] = {1, 2, 3};
	OK(clEnqueueWriteImage(world.queue, image, CL_TRUE, origin, region, 0, 0, host, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(image));
	CHECK(new_image() == image);
	for (size_t i = 0; i < BYTES; i++)
		EQUAL(fake_contents(image)[i], byte);
	OK(clReleaseMemObject(image));
	end_clean();
}

TEST(recycled_images_are_zeroed)
{
	scrubbed(GMT_SCRUB_ZERO, 0);
}

TEST(recycled_images_are_poisoned)
{
	scrubbed(GMT_SCRUB_POISON, GMT_POISON);
}

TEST(images_make_room_and_ask_for_it)
{
	begin_imaging((struct options){0});
	cl_mem image = new_image();
	OK(clReleaseMemObject(image));
	fake.cap = BYTES + 100;
	cl_mem buffer = new_buffer(512); /* for which the cached image goes */
	CHECK(buffer);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	OK(clReleaseMemObject(buffer));
	image = new_image(); /* for which the cached buffer goes */
	EQUAL(created(), GMT_OUTCOME_MISS);
	cl_int err = 0;
	CHECK(!clCreateImage(world.context, CL_MEM_READ_WRITE, &rgba, &square, NULL, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(created(), GMT_OUTCOME_FAILED);
	EQUAL(last_event(GMT_KIND_CREATE).status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clReleaseMemObject(image));
	end_clean();
}

TEST(images_go_back_when_the_core_fails)
{
	setenv("FAKE_CORE_FAIL_AT", "5", 1); /* plan, commit, free, plan, free */
	begin_imaging((struct options){0});
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(new_image()));
	EQUAL(fake.livememory, 0);
	end_clean();
	EQUAL(diags(GMT_DIAG_PANIC), 1);
}

TEST(more_shapes_than_there_is_room_for)
{
	begin((struct options){0});
	cl_image_desc desc = square;
	for (desc.image_width = 1; desc.image_width <= 5000; desc.image_width++) {
		for (int i = 0; i < 2; i++)
			OK(clReleaseMemObject(image_of(world.context, 0, &rgba, &desc, NULL)));
		if (desc.image_width % 1000 == 0)
			CHECK(session_read());
	}
	EQUAL(created(), GMT_OUTCOME_DRIVER);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 4096);
	end_clean();
}
