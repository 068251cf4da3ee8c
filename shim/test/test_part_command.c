/* test_part_command.c: commands on parts of one slab: they work as on buffers, and never reach a neighbour. */
#include "carved.h"

#ifdef __SANITIZE_THREAD__ /* slow over each byte, and there is one thread */
enum { BUFFERS = 24, STEPS = 50 };
#else
enum { BUFFERS = 24, STEPS = 300 };
#endif

static struct guarded {
	cl_mem buffer;
	size_t size;
	unsigned char pattern;
} guarded[BUFFERS];

static uint32_t random_state = 2463534242u;

static uint32_t dice(uint32_t sides)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % sides;
}

static void fill_all(struct guarded *g)
{
	g->pattern = (unsigned char)(1 + dice(255));
	OK(clEnqueueFillBuffer(world.queue, g->buffer, &g->pattern, 1, 0, g->size, 0, NULL, NULL));
}

static void check_all(void)
{
	OK(clFinish(world.queue));
	for (int i = 0; i < BUFFERS; i++)
		for (size_t at = 0; guarded[i].buffer && at < guarded[i].size; at++)
			EQUAL(fake_contents(guarded[i].buffer)[at], guarded[i].pattern);
}

static void renew(struct guarded *g)
{
	if (g->buffer)
		OK(clReleaseMemObject(g->buffer));
	g->size = 1 + dice(3000);
	g->buffer = new_buffer(g->size);
	fill_all(g);
}

static void copy(const struct guarded *from, struct guarded *to)
{
	static const size_t zero[3];
	size_t size = from->size < to->size ? from->size : to->size, lines[3] = {to->size, 1, 1};
	cl_int want = from == to ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
	EQUAL(clEnqueueCopyBuffer(world.queue, from->buffer, to->buffer, 0, 0, size, 0, NULL, NULL), want);
	if (from->size < to->size) {
		OK(clEnqueueFillBuffer(world.queue, to->buffer, &from->pattern, 1, from->size, to->size - from->size, 0, NULL, NULL));
	} else if (from != to) {
		OK(clEnqueueCopyBufferRect(world.queue, from->buffer, to->buffer, zero, zero, lines, 0, 0, 0, 0, 0, NULL, NULL));
	}
	to->pattern = from->pattern;
}

TEST(neighbours_never_overlap)
{
	fake.fragile = 1;
	begin_carved((struct options){.nouses = true});
	for (int i = 0; i < BUFFERS; i++)
		renew(&guarded[i]);
	for (int step = 0; step < STEPS; step++) {
		struct guarded *g = &guarded[dice(BUFFERS)];
		switch (dice(3)) {
		case 0:
			renew(g);
			break;
		case 1:
			fill_all(g);
			break;
		default:
			copy(&guarded[dice(BUFFERS)], g);
		}
		check_all();
		session_read();
	}
	for (int i = 0; i < BUFFERS; i++)
		OK(clReleaseMemObject(guarded[i].buffer));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_DRIVER), 0);
	end_clean();
}

static cl_mem filled(size_t size)
{
	unsigned char bytes[4096];
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 7 + 1);
	cl_mem buffer = new_buffer(size);
	OK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
	return buffer;
}

static void blank(cl_mem buffer, size_t size)
{
	OK(clEnqueueFillBuffer(world.queue, buffer, "", 1, 0, size, 0, NULL, NULL));
}

/* Copies a rectangle and looks at every byte of the destination. */
static void rectangle(cl_mem from, cl_mem to, const size_t *origin, const size_t *toorigin, const size_t *region, size_t row, size_t torow)
{
	unsigned char want[3000] = {0};
	for (size_t y = 0; y < region[1]; y++)
		for (size_t x = 0; x < region[0]; x++)
			want[(toorigin[1] + y) * torow + toorigin[0] + x] =
				(unsigned char)(((origin[1] + y) * row + origin[0] + x) * 7 + 1);
	blank(to, 3000);
	cl_event event;
	OK(clEnqueueCopyBufferRect(world.queue, from, to, origin, toorigin, region, row, 0, torow, 0, 0, NULL, &event));
	OK(clWaitForEvents(1, &event));
	OK(clReleaseEvent(event));
	CHECK(memcmp(fake_contents(to), want, sizeof want) == 0);
}

TEST(rectangles_between_parts)
{
	static const size_t zero[3], region[3] = {50, 10, 1}, inner[3] = {7, 3, 0};
	fake.fragile = 1;
	begin_carved((struct options){0});
	cl_mem from = filled(3000), to = new_buffer(3000);
	rectangle(from, to, zero, zero, region, 100, 100);
	rectangle(from, to, inner, zero, region, 100, 100);
	rectangle(from, to, zero, inner, region, 64, 200); /* which one buffer would refuse */
	rectangle(from, to, inner, inner, region, 0 + 50, 120);
	cl_mem other = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 3000, NULL, NULL);
	fake_hand_out(other);
	rectangle(from, other, inner, inner, region, 60, 70); /* another slab */
	cl_mem all[] = {from, to, other};
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(all[i]));
	end_clean();
}

static cl_int copies(cl_mem from, cl_mem to, size_t x, size_t tox, size_t toy, size_t width, size_t row, size_t torow)
{
	const size_t origin[3] = {x, 0, 0}, toorigin[3] = {tox, toy, 0}, region[3] = {width, 10, 1};
	cl_int err = clEnqueueCopyBufferRect(world.queue, from, to, origin, toorigin, region, row, 0, torow, 0, 0, NULL, NULL);
	OK(clFinish(world.queue));
	return err;
}

TEST(rectangles_in_one_part)
{
	fake.fragile = 1;
	begin_carved((struct options){0});
	cl_mem before = new_buffer(3000);
	cl_mem part = filled(3000), behind = filled(3000);
	EQUAL(copies(part, part, 0, 0, 0, 50, 100, 100), CL_MEM_COPY_OVERLAP);
	EQUAL(copies(part, part, 0, 49, 0, 50, 100, 100), CL_MEM_COPY_OVERLAP);
	EQUAL(copies(part, part, 0, 0, 9, 50, 100, 100), CL_MEM_COPY_OVERLAP);
	EQUAL(copies(part, part, 0, 60, 0, 50, 100, 100), CL_MEM_COPY_OVERLAP); /* around the end of a line */
	EQUAL(copies(part, part, 0, 50, 0, 50, 100, 200), CL_INVALID_VALUE);
	EQUAL(copies(part, part, 0, 49, 0, 50, 0, 50), CL_MEM_COPY_OVERLAP); /* a pitch of 0 is one of 50 */
	EQUAL(copies(part, part, 0, 0, 9, 50, 50, 0), CL_MEM_COPY_OVERLAP);
	OK(copies(part, part, 0, 50, 0, 50, 100, 100)); /* side by side */
	for (size_t i = 0; i < 1000; i++)
		EQUAL(fake_contents(part)[i], (unsigned char)((i % 100 < 50 ? i : i - 50) * 7 + 1));
	OK(copies(part, part, 0, 0, 10, 100, 100, 100));
	EQUAL(copies(part, behind, 0, 0, 20, 101, 100, 100), CL_INVALID_VALUE);
	EQUAL(copies(part, behind, 0, 1, 20, 100, 100, 100), CL_INVALID_VALUE); /* one byte beyond */
	EQUAL(copies(part, behind, SIZE_MAX - 3, 0, 0, 50, 100, 100), CL_INVALID_VALUE);
	EQUAL(copies(part, before, 2101, 0, 0, 50, 100, 100), CL_INVALID_VALUE);
	for (size_t i = 0; i < 3000; i++)
		EQUAL(fake_contents(behind)[i], (unsigned char)(i * 7 + 1));
	cl_mem all[] = {before, part, behind};
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(all[i]));
	end_clean();
}

TEST(an_empty_rectangle_is_the_drivers_to_refuse)
{
	static const size_t zero[3], region[3] = {0, 10, 1};
	begin_carved((struct options){0});
	cl_mem from = new_buffer(3000), to = new_buffer(3000);
	EQUAL(clEnqueueCopyBufferRect(world.queue, from, to, zero, zero, region, 64, 0, 200, 0, 0, NULL, NULL), CL_INVALID_VALUE);
	OK(clReleaseMemObject(from));
	OK(clReleaseMemObject(to));
	end_clean();
}

TEST(memory_between_two_rectangles_may_be_short)
{
	static const size_t zero[3], region[3] = {50, 10, 1};
	fake.fragile = 1;
	begin_carved((struct options){0});
	cl_mem from = filled(3000), to = new_buffer(3000);
	fake.failcreates = 1;
	EQUAL(clEnqueueCopyBufferRect(world.queue, from, to, zero, zero, region, 64, 0, 200, 0, 0, NULL, NULL),
	      CL_MEM_OBJECT_ALLOCATION_FAILURE); /* when nothing can be given back */
	rectangle(from, to, zero, zero, region, 64, 200);
	OK(clReleaseMemObject(from));
	OK(clReleaseMemObject(to));
	end_clean();
}

TEST(copies_between_parts_and_images)
{
	static const size_t zero[3], all[3] = {8, 8, 1};
	fake.fragile = 1;
	begin_carved((struct options){0});
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, NULL);
	cl_mem before = new_buffer(256), part = new_buffer(256), behind = new_buffer(256);
	OK(clEnqueueCopyImageToBuffer(world.queue, image, part, zero, all, 0, 0, NULL, NULL));
	OK(clEnqueueCopyBufferToImage(world.queue, part, image, 0, zero, all, 0, NULL, NULL));
	EQUAL(clEnqueueCopyImageToBuffer(world.queue, image, part, zero, all, 4, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueCopyBufferToImage(world.queue, part, image, 4, zero, all, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueCopyBufferToImage(world.queue, part, image, SIZE_MAX, zero, all, 0, NULL, NULL), CL_INVALID_VALUE);
	OK(clFinish(world.queue));
	cl_mem list[] = {image, before, part, behind};
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

struct arguments {
	char before;
	unsigned char *first;
	char between[3];
	unsigned char *second;
	char behind;
};

static void CL_CALLBACK native(void *data)
{
	const struct arguments *a = data;
	EQUAL(a->before + a->behind, 3);
	memset(a->first, 'a', 100);
	memset(a->second, 'b', 100);
}

TEST(native_kernels_on_parts)
{
	fake.fragile = fake.runnative = 1;
	begin_carved((struct options){0});
	cl_mem keep = filled(100), both[] = {new_buffer(100), new_buffer(100)};
	struct arguments a = {.before = 1, .behind = 2};
	const void *places[] = {&a.first, &a.second};
	cl_int err = clEnqueueNativeKernel(world.queue, native, &a, sizeof a, 2, both, places, 0, NULL, NULL);
	OK(err);
	OK(clFinish(world.queue));
	for (int i = 0; i < 100; i++) {
		EQUAL(fake_contents(keep)[i], (unsigned char)(i * 7 + 1));
		EQUAL(fake_contents(both[0])[i], 'a');
		EQUAL(fake_contents(both[1])[i], 'b');
	}
	CHECK(clEnqueueNativeKernel(world.queue, NULL, &a, sizeof a, 2, both, places, 0, NULL, NULL) == CL_INVALID_VALUE);
	OK(clReleaseMemObject(keep));
	OK(clReleaseMemObject(both[0]));
	OK(clReleaseMemObject(both[1]));
	end_clean();
}

/* Drivers forget where sub-buffers begin, so the slab's pointer is moved on. */
TEST(native_kernels_on_sub_buffers_of_parts)
{
	static const cl_buffer_region region = {2 * ALIGNMENT, 100};
	fake.fragile = fake.runnative = 1;
	begin_carved((struct options){0});
	cl_mem keep = filled(100), part = filled(1000), other = new_buffer(100), both[] = {NULL, other};
	both[0] = clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	CHECK(both[0]);
	struct arguments a = {.before = 1, .behind = 2};
	const void *places[] = {&a.first, &a.second};
	OK(clEnqueueNativeKernel(world.queue, native, &a, sizeof a, 2, both, places, 0, NULL, NULL));
	a.second = (unsigned char[100]){0};
	OK(clEnqueueNativeKernel(world.queue, native, &a, sizeof a, 1, both, places, 0, NULL, NULL)); /* alone */
	OK(clFinish(world.queue));
	for (size_t i = 0; i < 1000; i++)
		EQUAL(fake_contents(part)[i], i - region.origin < 100 ? 'a' : (unsigned char)(i * 7 + 1));
	EQUAL(fake_contents(keep)[0], 1);
	EQUAL(fake_contents(other)[99], 'b');
	cl_mem all[] = {keep, both[0], part, other};
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(all[i]));
	end_clean();
}

TEST(parts_do_not_move)
{
	begin_carved((struct options){0});
	cl_mem part = new_buffer(1000), other = clCreateBuffer(world.context, CL_MEM_READ_ONLY, SLAB_BYTES + 1, NULL, NULL);
	cl_mem both[] = {part, other};
	uint64_t creates = fake.creates, commands = fake.commands;
	OK(clEnqueueMigrateMemObjects(world.queue, 2, both, 0, 0, NULL, NULL));
	EQUAL(fake.creates, creates + 1);
	EQUAL(fake.commands, commands + 1);
	OK(clEnqueueMigrateMemObjects(world.queue, 1, &other, 0, 0, NULL, NULL));
	EQUAL(fake.creates, creates + 1);
	const cl_buffer_region region = {0, 100};
	cl_mem inner = clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 25, .mem_object = part};
	cl_mem of_it[] = {inner, clCreateImage(world.context, 0, &format, &desc, NULL, NULL)};
	creates = fake.creates;
	for (int i = 0; i < 2; i++) { /* nor does what lies in them */
		OK(clEnqueueMigrateMemObjects(world.queue, 1, &of_it[i], CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
		EQUAL(fake.creates, creates + 1 + (uint64_t)i);
		OK(clReleaseMemObject(of_it[i]));
	}
	EQUAL(clEnqueueMigrateMemObjects(world.queue, 0, &part, 0, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(release(part), GMT_OUTCOME_CACHED);
	CHECK(last_event(GMT_KIND_RELEASE).flags & GMT_FLAG_ORDERED); /* it counts as used all the same */
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(other));
	end_clean();
}

static void refused_beyond(bool fragile)
{
	static char host[SLAB_BYTES];
	static const size_t offsets[] = {0, 1, 999, 1000, 1001, 1024, 2000, SIZE_MAX}, zero[3];
	fake.fragile = fragile;
	begin_carved((struct options){0});
	cl_mem before = new_buffer(1000), part = new_buffer(1000), behind = new_buffer(1000);
	for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
		cl_int want = offsets[i] == 0 ? CL_SUCCESS : CL_INVALID_VALUE, err = 1;
		const size_t origin[3] = {offsets[i], 0, 0}, region[3] = {100, 10, 1};
		EQUAL(clEnqueueReadBuffer(world.queue, part, CL_TRUE, offsets[i], 1000, host, 0, NULL, NULL), want);
		EQUAL(clEnqueueWriteBuffer(world.queue, part, CL_TRUE, offsets[i], 1000, host, 0, NULL, NULL), want);
		EQUAL(clEnqueueFillBuffer(world.queue, part, "x", 1, offsets[i], 1000, 0, NULL, NULL), want);
		EQUAL(clEnqueueCopyBuffer(world.queue, part, behind, offsets[i], 0, 1000, 0, NULL, NULL), want);
		EQUAL(clEnqueueCopyBuffer(world.queue, before, part, 0, offsets[i], 1000, 0, NULL, NULL), want);
		EQUAL(clEnqueueReadBufferRect(world.queue, part, CL_TRUE, origin, zero, region, 0, 0, 0, 0, host, 0, NULL, NULL), want);
		EQUAL(clEnqueueWriteBufferRect(world.queue, part, CL_TRUE, origin, zero, region, 0, 0, 0, 0, host, 0, NULL, NULL), want);
		void *mapped = clEnqueueMapBuffer(world.queue, part, CL_TRUE, CL_MAP_READ, offsets[i], 1000, 0, NULL, NULL, &err);
		EQUAL(err, want);
		if (mapped)
			OK(clEnqueueUnmapMemObject(world.queue, part, mapped, 0, NULL, NULL));
		const size_t huge = SIZE_MAX - SLAB_BYTES, high[3] = {100, huge / 100, 1};
		EQUAL(clEnqueueReadBuffer(world.queue, part, CL_TRUE, offsets[i], huge, host, 0, NULL, NULL), CL_INVALID_VALUE);
		EQUAL(clEnqueueWriteBuffer(world.queue, part, CL_TRUE, offsets[i], huge, host, 0, NULL, NULL), CL_INVALID_VALUE);
		EQUAL(clEnqueueFillBuffer(world.queue, part, "x", 1, offsets[i], huge, 0, NULL, NULL), CL_INVALID_VALUE);
		EQUAL(clEnqueueCopyBuffer(world.queue, part, behind, offsets[i], 0, huge, 0, NULL, NULL), CL_INVALID_VALUE);
		EQUAL(clEnqueueReadBufferRect(world.queue, part, CL_TRUE, origin, zero, high, 0, 0, 0, 0, host, 0, NULL, NULL), CL_INVALID_VALUE);
		EQUAL(clEnqueueCopyBufferRect(world.queue, before, part, zero, origin, high, 0, 0, 0, 0, 0, NULL, NULL), CL_INVALID_VALUE);
		CHECK(!clEnqueueMapBuffer(world.queue, part, CL_TRUE, CL_MAP_READ, offsets[i], huge, 0, NULL, NULL, &err));
		EQUAL(err, CL_INVALID_VALUE);
	}
	cl_mem all[] = {before, part, behind};
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(all[i]));
	OK(clFinish(world.queue));
	end_clean();
}

/* Where drivers add an origin and a size without a look at the sum. */
TEST(sub_buffers_beyond_a_part_are_refused)
{
	fake.fragile = 1;
	begin_carved((struct options){0});
	cl_mem before = new_buffer(1000), part = new_buffer(1000);
	for (size_t size = 128; size < 40000; size += 128) {
		cl_buffer_region region = {256, 0 - size}, far = {3 * SLAB_BYTES, 0 - size};
		cl_int err = 1;
		CHECK(!clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
		EQUAL(err, CL_INVALID_VALUE);
		CHECK(!clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &far, &err));
		EQUAL(err, CL_INVALID_VALUE);
	}
	OK(clReleaseMemObject(before));
	OK(clReleaseMemObject(part));
	end_clean();
}

TEST(commands_beyond_a_part_are_refused)
{
	refused_beyond(false);
}

TEST(commands_beyond_a_part_are_refused_where_drivers_look_at_the_slab)
{
	refused_beyond(true);
}
