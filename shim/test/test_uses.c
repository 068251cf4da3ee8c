/* test_uses.c: what USE events say of the bytes that a command touches, and who asked for it. */
#define _GNU_SOURCE
#include "../../internal/wire/event_access.h"
#include "harness.h"

#define READS GMT_FLAG_READS
#define WRITES GMT_FLAG_WRITES
#define SCATTERED GMT_FLAG_SCATTERED

/* The last event of all is a use of these bytes. */
static void touches(uint64_t offset, uint64_t bytes, uint8_t flags)
{
	struct gmtevent use = event_before(0);
	EQUAL(use.kind, GMT_KIND_USE);
	EQUAL(use.granted, offset);
	EQUAL(use.size, bytes);
	EQUAL(use.flags, flags);
	EQUAL(use.duration, 0);
}

/* The last two are a copy: of bytes at from to bytes at to; tags are of its call, and not of the memory. */
static void copies(uint64_t from, uint8_t readflags, uint64_t to, uint8_t writeflags, uint64_t bytes)
{
	struct gmtevent in = event_before(1), out = event_before(0);
	touches(to, bytes, WRITES | writeflags);
	EQUAL(in.kind, GMT_KIND_USE);
	EQUAL(in.op, GMT_COMMAND_COPY);
	EQUAL(out.op, GMT_COMMAND_COPY);
	EQUAL(in.granted, from);
	EQUAL(in.size, bytes);
	EQUAL(in.flags, READS | readflags);
	EQUAL(in.time, out.time);
	EQUAL(in.tag, out.tag);
}

static cl_mem new_image(size_t width, size_t height)
{
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, NULL);
	CHECK(image);
	return image;
}

TEST(commands_on_buffers_tell_their_bytes)
{
	begin((struct options){0});
	cl_mem a = new_buffer(4096), b = new_buffer(8192);
	char host[64];
	OK(clEnqueueReadBuffer(world.queue, a, CL_FALSE, 128, 64, host, 0, NULL, NULL));
	touches(128, 64, READS);
	OK(clEnqueueReadBuffer(world.queue, a, CL_TRUE, 0, 32, host, 0, NULL, NULL));
	touches(0, 32, READS);
	OK(clEnqueueWriteBuffer(world.queue, a, CL_FALSE, 256, 64, host, 0, NULL, NULL));
	touches(256, 64, WRITES);
	OK(clEnqueueFillBuffer(world.queue, a, "z", 1, 1024, 512, 0, NULL, NULL));
	touches(1024, 512, WRITES);
	OK(clEnqueueCopyBuffer(world.queue, a, b, 1000, 3000, 500, 0, NULL, NULL));
	copies(1000, 0, 3000, 0, 500);
	EQUAL(event_before(0).object, event_before(1).object + 1);
	OK(clEnqueueMigrateMemObjects(world.queue, 1, &b, 0, 0, NULL, NULL));
	touches(0, 8192, 0);
	cl_int err;
	void *pointer = clEnqueueMapBuffer(world.queue, b, CL_FALSE, CL_MAP_WRITE, 100, 200, 0, NULL, NULL, &err);
	OK(err);
	touches(100, 200, WRITES);
	OK(clEnqueueUnmapMemObject(world.queue, b, pointer, 0, NULL, NULL));
	touches(0, 0, SCATTERED);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

/* Offsets are those in the object that the program names, wherever the pool has put that. */
TEST(offsets_are_in_the_object)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(4096);
	cl_buffer_region region = {1024, 512};
	cl_int err;
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	struct gmtevent create = last_event(GMT_KIND_CREATE);
	EQUAL(create.granted, 1 + 1024);
	EQUAL(create.size, 512);
	OK(clEnqueueFillBuffer(world.queue, part, "z", 1, 16, 32, 0, NULL, NULL));
	touches(16, 32, WRITES);
	EQUAL(event_before(0).object, last_event(GMT_KIND_CREATE).object);
	size_t uses = events(GMT_KIND_USE);
	CHECK(clEnqueueFillBuffer(world.queue, buffer, "z", 1, 4090, 32, 0, NULL, NULL) != CL_SUCCESS);
	EQUAL(events(GMT_KIND_USE), uses); /* nothing new: it was refused */
	CHECK(!clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &err));
	EQUAL(last_event(GMT_KIND_CREATE).granted, 0);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* A rectangle is in one piece when its rows and slices are full. */
TEST(rectangles_tell_whether_they_have_gaps)
{
	begin((struct options){0});
	cl_mem a = new_buffer(4096), b = new_buffer(4096);
	char host[1024];
	const size_t zero[3] = {0}, at[3] = {4, 2, 1}, corner[3] = {0, 2, 1};
	const size_t rows[3] = {16, 4, 1}, row[3] = {16, 1, 1}, box[3] = {16, 8, 2};
#define READ(origin, region, pitch, slice)                                                                             \
	OK(clEnqueueReadBufferRect(world.queue, a, CL_FALSE, origin, zero, region, pitch, slice, 0, 0, host, 0, NULL, NULL))
	READ(zero, rows, 0, 0);
	touches(0, 64, READS);
	READ(corner, rows, 16, 256);
	touches(256 + 2 * 16, 64, READS);
	READ(at, rows, 32, 512);
	touches(512 + 2 * 32 + 4, 64, READS | SCATTERED);
	READ(at, row, 32, 512);
	touches(512 + 2 * 32 + 4, 16, READS);
	READ(zero, box, 0, 0);
	touches(0, 256, READS);
	READ(zero, box, 16, 512);
	touches(0, 256, READS | SCATTERED);
	OK(clEnqueueWriteBufferRect(world.queue, a, CL_FALSE, at, zero, rows, 32, 512, 0, 0, host, 0, NULL, NULL));
	touches(580, 64, WRITES | SCATTERED);
	OK(clEnqueueCopyBufferRect(world.queue, a, b, zero, at, rows, 0, 0, 32, 512, 0, NULL, NULL));
	copies(0, 0, 580, SCATTERED, 64);
	CHECK(clEnqueueReadBufferRect(world.queue, a, CL_FALSE, NULL, zero, rows, 0, 0, 0, 0, host, 0, NULL, NULL) != CL_SUCCESS);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

/* How an image lies in memory is not known; all of it is. */
TEST(commands_on_images_tell_how_much)
{
	begin((struct options){0});
	cl_mem a = new_image(16, 16), b = new_image(16, 16), buffer = new_buffer(4096); /* 1024 bytes an image */
	char host[1024];
	const size_t zero[3] = {0}, all[3] = {16, 16, 1}, some[3] = {4, 2, 1};
	OK(clEnqueueReadImage(world.queue, a, CL_FALSE, zero, all, 0, 0, host, 0, NULL, NULL));
	touches(0, 1024, READS);
	OK(clEnqueueWriteImage(world.queue, a, CL_FALSE, zero, some, 0, 0, host, 0, NULL, NULL));
	touches(0, 32, WRITES | SCATTERED);
	OK(clEnqueueFillImage(world.queue, a, host, zero, some, 0, NULL, NULL));
	touches(0, 32, WRITES | SCATTERED);
	OK(clEnqueueCopyImage(world.queue, a, b, zero, zero, all, 0, NULL, NULL));
	copies(0, 0, 0, 0, 1024);
	OK(clEnqueueCopyImageToBuffer(world.queue, a, buffer, zero, some, 640, 0, NULL, NULL));
	copies(0, SCATTERED, 640, 0, 32);
	OK(clEnqueueCopyBufferToImage(world.queue, buffer, a, 128, zero, all, 0, NULL, NULL));
	copies(128, 0, 0, 0, 1024);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(commands_on_shared_memory_tell_their_bytes)
{
	begin((struct options){0});
	char *a = clSVMAlloc(world.context, 0, 64, 0), *b = clSVMAlloc(world.context, 0, 128, 0);
	OK(clEnqueueSVMMemFill(world.queue, a, "z", 1, 48, 0, NULL, NULL));
	touches(0, 48, WRITES);
	OK(clEnqueueSVMMemcpy(world.queue, CL_FALSE, b, a, 32, 0, NULL, NULL));
	copies(0, 0, 0, 0, 32);
	OK(clEnqueueSVMMap(world.queue, CL_FALSE, CL_MAP_READ, b, 16, 0, NULL, NULL));
	touches(0, 16, READS);
	OK(clEnqueueSVMUnmap(world.queue, b, 0, NULL, NULL));
	touches(0, 0, SCATTERED);
	OK(clEnqueueSVMMigrateMem(world.queue, 1, (const void *[]){b}, NULL, 0, 0, NULL, NULL));
	touches(0, 128, 0);
	OK(clEnqueueSVMMigrateMem(world.queue, 1, (const void *[]){b}, (const size_t[]){8}, 0, 0, NULL, NULL));
	touches(0, 8, 0);
	char host[16];
	OK(clEnqueueSVMMemcpy(world.queue, CL_FALSE, host, a, 16, 0, NULL, NULL)); /* one side of it is the host's */
	touches(0, 16, READS);
	EQUAL(last_event(GMT_KIND_USE).op, GMT_COMMAND_READ);
	OK(clEnqueueSVMMemcpy(world.queue, CL_FALSE, a, host, 16, 0, NULL, NULL));
	touches(0, 16, WRITES);
	EQUAL(last_event(GMT_KIND_USE).op, GMT_COMMAND_WRITE);
	OK(clFinish(world.queue));
	clSVMFree(world.context, a);
	clSVMFree(world.context, b);
	end_clean();
}

static cl_mem with_flags(cl_mem_flags flags)
{
	cl_mem buffer = clCreateBuffer(world.context, flags, 64, NULL, NULL);
	CHECK(buffer);
	return buffer;
}

/* The kernel's uses of its arguments, in their order. */
static void runs(cl_kernel kernel, unsigned count, const uint8_t *flags)
{
	const size_t one = 1;
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	for (unsigned i = 0; i < count; i++) {
		struct gmtevent use = event_before(count - 1 - i);
		EQUAL(use.kind, GMT_KIND_USE);
		EQUAL(use.duration, 1 + i);
		EQUAL(use.flags, flags[i]);
		EQUAL(use.granted, last_event(GMT_KIND_KERNEL).object);
		EQUAL(use.size, 0);
	}
}

TEST(kernels_tell_arguments_and_what_they_do_to_them)
{
	begin((struct options){0});
	fake.arginfo = 1;
	fake.argaddress[0] = fake.argaddress[1] = CL_KERNEL_ARG_ADDRESS_GLOBAL;
	fake.argaddress[2] = CL_KERNEL_ARG_ADDRESS_CONSTANT;
	fake.argtype[0] = CL_KERNEL_ARG_TYPE_CONST;
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	cl_mem a = new_buffer(64), reads = with_flags(CL_MEM_READ_ONLY), writes = with_flags(CL_MEM_WRITE_ONLY);
	for (cl_uint i = 0; i < 3; i++)
		OK(clSetKernelArg(kernel, i, sizeof a, &a));
	EQUAL(fake.arginfos, 0); /* setting asks nothing */
	runs(kernel, 3, (uint8_t[]){READS, 0, READS});
	uint64_t asked = fake.arginfos;
	CHECK(asked > 0);
	OK(clSetKernelArg(kernel, 1, sizeof writes, &writes));
	runs(kernel, 3, (uint8_t[]){READS, WRITES, READS});
	OK(clSetKernelArg(kernel, 1, sizeof reads, &reads));
	runs(kernel, 3, (uint8_t[]){READS, 0, READS}); /* some programs write it */
	EQUAL(fake.arginfos, asked); /* once for each argument */
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(reads));
	OK(clReleaseMemObject(writes));
	end_clean();
}

TEST(memory_tells_where_the_driver_does_not)
{
	begin((struct options){0});
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	cl_mem buffer = with_flags(CL_MEM_WRITE_ONLY);
	cl_buffer_region region = {0, 16};
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	CHECK(part);
	OK(clSetKernelArg(kernel, 0, sizeof part, &part));
	runs(kernel, 1, (uint8_t[]){WRITES});
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(drivers_are_not_asked_when_uses_are_off)
{
	begin((struct options){.nouses = true});
	fake.arginfo = 1;
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	cl_mem a = new_buffer(64);
	const size_t one = 1;
	OK(clSetKernelArg(kernel, 0, sizeof a, &a));
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	EQUAL(fake.arginfos, 0);
	EQUAL(events(GMT_KIND_USE), 0);
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(a));
	end_clean();
}

/* Native kernels get pointers, and may do anything. */
static void CL_CALLBACK nothing(void *arguments)
{
	(void)arguments;
}

TEST(native_kernels_tell_nothing)
{
	begin((struct options){0});
	cl_mem a = new_buffer(64);
	struct {
		void *pointer;
	} arguments = {0};
	const void *places[] = {&arguments.pointer};
	OK(clEnqueueNativeKernel(world.queue, nothing, &arguments, sizeof arguments, 1, &a, places, 0, NULL, NULL));
	touches(0, 0, 0);
	OK(clReleaseMemObject(a));
	end_clean();
}

static void __attribute__((noinline)) copy_here(cl_mem a, cl_mem b)
{
	OK(clEnqueueCopyBuffer(world.queue, a, b, 0, 0, 16, 0, NULL, NULL));
	__asm__ volatile(""); /* no tail call, which would leave our caller as the caller */
}

static void __attribute__((noinline)) copy_there(cl_mem a, cl_mem b)
{
	OK(clEnqueueCopyBuffer(world.queue, a, b, 0, 0, 16, 0, NULL, NULL));
	__asm__ volatile("");
}

static void copies_have_sites(uint32_t mode)
{
	begin((struct options){.tagmode = mode});
	cl_mem a = new_buffer(64), b = new_buffer(64);
	uint32_t created = last_event(GMT_KIND_CREATE).tag;
	uint32_t here[2];
	for (int i = 0; i < 2; i++) {
		copy_here(a, b);
		copies(0, 0, 0, 0, 16);
		here[i] = event_before(0).tag;
	}
	struct gmtevent defined = last_event(GMT_KIND_TAG);
	EQUAL(defined.tag, here[0]);
	CHECK(defined.time <= event_before(0).time);
	copy_there(a, b);
	CHECK(here[0] && here[0] != created && event_before(0).tag != here[0]);
	if (mode == GMT_TAGS_CALLER) /* a stack tells the turns of a loop apart where the compiler has unrolled it */
		EQUAL(here[0], here[1]);
	OK(clEnqueueFillBuffer(world.queue, b, "z", 1, 0, 16, 0, NULL, NULL));
	EQUAL(event_before(0).tag, created); /* all other commands have the memory's */
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

TEST(copies_have_call_sites)
{
	copies_have_sites(GMT_TAGS_CALLER);
}

TEST(copies_have_stacks)
{
	copies_have_sites(GMT_TAGS_STACK);
}

TEST(copies_have_sizes)
{
	begin((struct options){.tagmode = GMT_TAGS_SIZE});
	cl_mem a = new_buffer(4096), b = new_buffer(4096);
	OK(clEnqueueCopyBuffer(world.queue, a, b, 0, 0, 100, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_TAG).link, 128);
	EQUAL(event_before(0).tag, last_event(GMT_KIND_TAG).tag);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

TEST(copies_define_no_sites_when_uses_are_off)
{
	begin((struct options){.nouses = true, .tagmode = GMT_TAGS_CALLER});
	cl_mem a = new_buffer(64), b = new_buffer(64);
	size_t sites = events(GMT_KIND_TAG);
	copy_here(a, b);
	EQUAL(events(GMT_KIND_TAG), sites);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

/* A finding about the second side does not come between both. */
TEST(both_sides_of_a_copy_stand_together)
{
	begin((struct options){0});
	fake.anycontext = 1;
	cl_context other = new_context();
	cl_mem a = new_buffer(64), b = clCreateBuffer(other, 0, 64, NULL, NULL);
	CHECK(b);
	OK(clEnqueueCopyBuffer(world.queue, a, b, 0, 0, 16, 0, NULL, NULL));
	EQUAL(diags(GMT_DIAG_WRONG_CONTEXT), 1);
	copies(0, 0, 0, 0, 16);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseContext(other));
	end_clean();
}

/* What a replay of a command buffer uses, or a kernel beyond what is counted, no event can name: one says that. */
TEST(what_cannot_be_told_is_said)
{
	begin((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &world.queue, NULL, NULL);
	CHECK(recording);
	OK(clEnqueueCommandBufferKHR(0, NULL, recording, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 1);
	touches(0, 0, SCATTERED);
	EQUAL(event_before(0).object, 0);
	CHECK(event_before(0).link);
	OK(clReleaseCommandBufferKHR(recording));
	cl_mem buffers[70];
	for (int i = 0; i < 70; i++)
		buffers[i] = new_buffer(64);
	OK(clEnqueueMigrateMemObjects(world.queue, 64, buffers, 0, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 65);
	CHECK(event_before(0).object);
	EQUAL(event_before(0).size, 64);
	OK(clEnqueueMigrateMemObjects(world.queue, 1, buffers, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL));
	CHECK(event_before(0).object);
	EQUAL(event_before(0).size, 0); /* no bytes move */
	OK(clEnqueueMigrateMemObjects(world.queue, 70, buffers, 0, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 131);
	EQUAL(event_before(0).object, 0);
	EQUAL(event_before(0).op, GMT_COMMAND_MIGRATE);
	for (int i = 0; i < 70; i++)
		OK(clReleaseMemObject(buffers[i]));
	end_clean();
}

/* What the program learns of a command by asking or by a callback is in recordings as a wait that took no time, once. */
static void learned(cl_event event, const struct gmtevent *use)
{
	struct gmtevent await = event_before(1), sync = event_before(0);
	EQUAL(await.kind, GMT_KIND_AWAIT);
	EQUAL(gmtawait_awaited_queue(&await), gmtuse_queue(use));
	EQUAL(gmtawait_awaited_time(&await), use->time);
	EQUAL(gmtawait_queue(&await), 0);
	EQUAL(sync.kind, GMT_KIND_SYNC);
	EQUAL(sync.op, GMT_SYNC_WAIT);
	EQUAL(sync.duration, 0);
	EQUAL(sync.time, await.time);
	cl_int status = 99;
	size_t before = events(GMT_KIND_SYNC);
	OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	EQUAL(status, CL_COMPLETE);
	EQUAL(events(GMT_KIND_SYNC), before);
	OK(clReleaseEvent(event));
}

static void CL_CALLBACK ended(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
}

TEST(what_the_program_learns_of_a_command_is_a_wait)
{
	begin((struct options){.observe = true});
	cl_mem buffer = new_buffer(4096);
	cl_event event[3];
	struct gmtevent use[3];
	for (int i = 0; i < 3; i++) {
		OK(clEnqueueFillBuffer(world.queue, buffer, "z", 1, 0, 16, 0, NULL, &event[i]));
		use[i] = last_event(GMT_KIND_USE);
	}
	cl_int status = 99;
	OK(clGetEventInfo(event[0], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	CHECK(status != CL_COMPLETE);
	EQUAL(events(GMT_KIND_SYNC), 0);
	CHECK(fake_complete_event(event[0]));
	OK(clGetEventInfo(event[0], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	learned(event[0], &use[0]);
	CHECK(fake_complete_event(event[1]));
	cl_ulong time;
	OK(clGetEventProfilingInfo(event[1], CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
	learned(event[1], &use[1]);
	OK(clSetEventCallback(event[2], CL_COMPLETE, ended, NULL));
	CHECK(fake_complete_event(event[2]));
	learned(event[2], &use[2]);
	OK(clReleaseMemObject(buffer));
	end_clean();
}
