/* test_spill.c: --spill: contents that go to the host and come back. */
#define _GNU_SOURCE
#include "../../internal/wire/event_access.h"
#include "spilling.h"

TEST(spill_creates_cost_nothing_until_the_first_use)
{
	begin_spill();
	cl_mem list[10];
	list[0] = make(CL_MEM_READ_WRITE, NULL);
	for (int i = 1; i < 10; i++)
		list[i] = make(CL_MEM_READ_WRITE, NULL);
	EQUAL(fake.livebytes, 0);
	EQUAL(fake.creates, 1); /* which asked the driver about the flags */
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_FAILED), 0);
	EQUAL(events(GMT_KIND_CREATE), 10);
	use(world.queue, list[3]);
	EQUAL(fake.livebytes, BYTES);
	for (int i = 0; i < 10; i++)
		OK(clReleaseMemObject(list[i]));
	EQUAL(events(GMT_KIND_RELEASE), 10);
	end_clean();
}

TEST(spill_contents_go_and_come_back)
{
	begin_spill();
	cl_mem list[6];
	for (int i = 0; i < 6; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		write_all(world.queue, list[i], (char)('a' + i));
		CHECK(fake.livebytes <= CARD);
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 6; i++) {
			check_all(world.queue, list[i], (char)('a' + i + round));
			write_all(world.queue, list[i], (char)('a' + i + round + 1));
			CHECK(fake.livebytes <= CARD);
		}
	for (int i = 0; i < 6; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

TEST(spill_does_not_save_what_the_host_still_has)
{
	static char from[BYTES] = "x";
	begin_spill();
	cl_mem list[4];
	for (int i = 0; i < 4; i++)
		list[i] = make(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, from);
	char bytes[BYTES];
	uint64_t rounds = 0;
	for (int round = 0; round < 4; round++) {
		rounds += round > 1;
		uint64_t before = fake.commands;
		for (int i = 0; i < 4; i++) {
			OK(clEnqueueReadBuffer(world.queue, list[i], CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
			EQUAL(memcmp(bytes, from, BYTES), 0);
		}
		if (round > 1) /* every one has been saved once */
			CHECK(fake.commands - before <= 4 + fake.markers);
	}
	EQUAL(rounds, 2);
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

/* Commands that a write takes when what a kernel has used since it came back must go for it. */
static uint64_t commands_after_kernel(cl_mem_flags flags, cl_uint qualifiers)
{
	begin_spill();
	fake.arginfo = 1;
	fake.argtype[0] = qualifiers;
	cl_int err;
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	cl_mem list[3];
	for (int i = 0; i < 3; i++) {
		list[i] = make(flags, NULL);
		write_all(world.queue, list[i], (char)('a' + i));
	}
	size_t items = 1;
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list[0])); /* it went, and comes back */
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	write_all(world.queue, list[2], 'z');
	uint64_t before = fake.commands - fake.markers;
	write_all(world.queue, list[1], 'y');
	uint64_t commands = fake.commands - fake.markers - before;
	check_all(world.queue, list[0], 'a');
	fake.arginfo = fake.argtype[0] = 0;
	OK(clReleaseKernel(kernel));
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
	return commands;
}

TEST(spill_saves_what_a_kernel_may_have_written_after_a_cast)
{
	EQUAL(commands_after_kernel(CL_MEM_READ_WRITE, CL_KERNEL_ARG_TYPE_CONST), 3);
}

TEST(spill_saves_what_a_kernel_may_have_written_though_it_is_read_only)
{
	EQUAL(commands_after_kernel(CL_MEM_READ_ONLY, 0), 3);
}

TEST(spill_does_not_save_what_restrict_keeps_from_kernels)
{
	EQUAL(commands_after_kernel(CL_MEM_READ_WRITE, CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT), 2);
}

TEST(spill_leaves_what_is_mapped)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	char *mapped = clEnqueueMapBuffer(world.queue, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &err);
	OK(err);
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, b, 'b');
	EQUAL(mapped[7], 'a');
	cl_uint maps = 0;
	OK(clGetMemObjectInfo(a, CL_MEM_MAP_COUNT, sizeof maps, &maps, NULL));
	EQUAL(maps, 1);
	mapped[7] = 'm';
	OK(clReleaseMemObject(a)); /* while it is mapped */
	OK(clEnqueueUnmapMemObject(world.queue, a, mapped, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(clRetainMemObject(a), CL_INVALID_MEM_OBJECT);
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

TEST(spill_moves_a_buffer_with_its_parts)
{
	begin_spill();
	fake.alignbits = 64;
	cl_int err;
	cl_mem whole = make(CL_MEM_READ_WRITE, NULL), other = make(CL_MEM_READ_WRITE, NULL), third = make(CL_MEM_READ_WRITE, NULL);
	cl_buffer_region region = {80, 40}, beyond = {BYTES - 8, 16};
	cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	CHECK(!clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond, &err));
	EQUAL(err, CL_INVALID_VALUE);
	write_all(world.queue, whole, 'w');
	OK(clEnqueueFillBuffer(world.queue, part, "p", 1, 0, 40, 0, NULL, NULL));
	write_all(world.queue, other, 'o');
	write_all(world.queue, third, 't'); /* whole has gone */
	char bytes[BYTES];
	OK(clEnqueueReadBuffer(world.queue, part, CL_TRUE, 8, 8, bytes, 0, NULL, NULL));
	EQUAL(bytes[0], 'p');
	OK(clEnqueueReadBuffer(world.queue, whole, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
	EQUAL(bytes[79], 'w');
	EQUAL(bytes[80], 'p');
	EQUAL(bytes[120], 'w');
	cl_mem parent = NULL;
	size_t offset = 0;
	OK(clReleaseMemObject(whole));
	OK(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
	OK(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof offset, &offset, NULL));
	CHECK(parent == whole);
	EQUAL(offset, 80);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(third));
	end_clean();
}

TEST(spill_says_when_one_command_needs_too_much)
{
	begin_spill();
	cl_int err;
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	cl_mem list[3];
	for (cl_uint i = 0; i < 3; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		OK(clSetKernelArg(kernel, i, sizeof(cl_mem), &list[i]));
	}
	size_t items = 1;
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	CHECK(strstr(first_text(GMT_KIND_DIAG), "clEnqueueNDRangeKernel of kernel needs"));
	OK(clReleaseKernel(kernel));
	for (int i = 0; i < 3; i++) {
		write_all(world.queue, list[i], 'z'); /* the others go on */
		OK(clReleaseMemObject(list[i]));
	}
	end_clean();
}

TEST(spill_copies_from_the_host_what_does_not_fit_beside_its_target)
{
	begin_spill();
	cl_int err;
	cl_mem small = make(CL_MEM_READ_WRITE, NULL);
	cl_mem large = clCreateBuffer(world.context, CL_MEM_READ_WRITE, CARD - 100, NULL, &err);
	OK(err);
	write_all(world.queue, small, 's');
	OK(clEnqueueFillBuffer(world.queue, large, "l", 1, 0, CARD - 100, 0, NULL, NULL));
	cl_event event = NULL;
	EQUAL(clEnqueueCopyBuffer(world.queue, small, large, 0, 8, BYTES, 0, NULL, &event), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clEnqueueCopyBuffer(world.queue, small, large, 0, 8, BYTES, 0, NULL, NULL));
	char bytes[CARD - 100];
	OK(clEnqueueReadBuffer(world.queue, large, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
	EQUAL(bytes[7], 'l');
	EQUAL(bytes[8], 's');
	EQUAL(bytes[7 + BYTES], 's');
	EQUAL(bytes[8 + BYTES], 'l');
	OK(clReleaseMemObject(small));
	OK(clReleaseMemObject(large));
	end_clean();
}

TEST(spill_tries_a_command_again_that_found_no_memory)
{
	begin((struct options){.spill = true});
	fake.eager = 1;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	fake.failenqueues = 1;
	fake.enqueueerror = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	write_all(world.queue, b, 'b'); /* instead of the idle one */
	EQUAL(fake.livebytes, BYTES);
	fake.cap = 600;
	check_all(world.queue, a, 'a');
	check_all(world.queue, b, 'b');
	check_all(world.queue, a, 'a');
	CHECK(fake.livebytes <= 600);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

static void check_spill(struct gmtevent event, enum gmtspill what, uint64_t object, uint64_t resident, uint64_t spilled)
{
	EQUAL(event.kind, GMT_KIND_SPILL);
	EQUAL(gmtspill_spill(&event), what);
	EQUAL(gmtspill_object(&event), object);
	EQUAL(gmtspill_bytes(&event), BYTES);
	EQUAL(gmtspill_resident(&event), resident);
	EQUAL(gmtspill_spilled(&event), spilled);
}

TEST(spill_records_what_goes_where)
{
	begin_spill();
	size_t before = events(GMT_KIND_SPILL);
	cl_mem list[3];
	uint64_t id[3];
	for (int i = 0; i < 3; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		id[i] = last_event(GMT_KIND_CREATE).object;
	}
	write_all(world.queue, list[0], 'a');
	check_spill(last_event(GMT_KIND_SPILL), GMT_SPILL_FIRST, id[0], BYTES, 0);
	write_all(world.queue, list[1], 'b');
	check_spill(last_event(GMT_KIND_SPILL), GMT_SPILL_FIRST, id[1], 2 * BYTES, 0);
	EQUAL(events(GMT_KIND_SPILL) - before, 2);
	write_all(world.queue, list[2], 'c');
	EQUAL(events(GMT_KIND_SPILL) - before, 5);
	check_spill(last_event(GMT_KIND_SPILL), GMT_SPILL_STALL, id[2], 2 * BYTES, BYTES);
	check_all(world.queue, list[0], 'a'); /* the first one went, the second one goes */
	EQUAL(events(GMT_KIND_SPILL) - before, 8);
	check_spill(last_event(GMT_KIND_SPILL), GMT_SPILL_STALL, id[0], 2 * BYTES, BYTES);
	check_all(world.queue, list[2], 'c');
	check_all(world.queue, list[1], 'b'); /* the first one goes: the host still has it */
	EQUAL(events(GMT_KIND_SPILL) - before, 11);
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(list[i]));
	check_spill(last_event(GMT_KIND_SPILL), GMT_SPILL_END, id[2], 0, 0);
	EQUAL(events(GMT_KIND_SPILL) - before, 14);
	end_clean();
}

/* Of three that take turns two fit: with the least recently used leaving, each would come back at each turn. */
TEST(spill_keeps_what_comes_next_in_a_cycle)
{
	begin_spill();
	cl_mem list[3];
	for (int i = 0; i < 3; i++)
		list[i] = make(CL_MEM_READ_WRITE, NULL);
	for (int turn = 0; turn < 12; turn++)
		write_all(world.queue, list[turn % 3], 'x');
	uint64_t creates = fake.creates;
	for (int turn = 0; turn < 12; turn++)
		write_all(world.queue, list[turn % 3], (char)('a' + turn % 3));
	EQUAL(fake.creates - creates, 6);
	for (int i = 0; i < 3; i++)
		check_all(world.queue, list[i], (char)('a' + i));
	cl_mem other = make(CL_MEM_READ_WRITE, NULL); /* the cycle is over */
	for (int turn = 0; turn < 12; turn++)
		write_all(world.queue, turn % 2 ? other : list[1], (char)('b' + turn % 2));
	creates = fake.creates;
	write_all(world.queue, other, 'o');
	check_all(world.queue, list[1], 'b');
	EQUAL(fake.creates, creates);
	OK(clReleaseMemObject(other));
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

enum { MANY = 2048, CHOSEN = MANY / 256 };

static uint64_t write_one(cl_mem buffer)
{
	size_t before = events(GMT_KIND_SPILL);
	OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, BYTES, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_SPILL) - before, 3); /* one goes, this one comes, the call has waited */
	struct gmtevent gone = {0};
	for (size_t behind = 0, spills = 0; spills < 3; behind++) {
		gone = event_before(behind);
		spills += gone.kind == GMT_KIND_SPILL;
	}
	return gmtspill_object(&gone);
}

/* With many objects a look chooses several: they go in order, without those that were used or released since. */
TEST(spill_takes_the_farthest_of_many_in_order)
{
	begin((struct options){.devicememory = MANY * BYTES, .spill = true});
	fake.eager = 1;
	static cl_mem list[MANY + CHOSEN];
	static uint64_t id[MANY];
	for (int i = 0; i < MANY + CHOSEN; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		if (i < MANY)
			id[i] = last_event(GMT_KIND_CREATE).object;
	}
	for (int i = 0; i < MANY; i++) { /* not in the order of creation */
		OK(clEnqueueFillBuffer(world.queue, list[i * 5 % MANY], "x", 1, 0, BYTES, 0, NULL, NULL));
		if (i % 256 == 0)
			(void)events(GMT_KIND_SPILL); /* read, so that the ring does not fill */
	}
	EQUAL(write_one(list[MANY]), id[0]);
	EQUAL(write_one(list[MANY + 1]), id[5]);
	use(world.queue, list[10]);
	OK(clReleaseMemObject(list[15])); /* makes room for one */
	OK(clEnqueueFillBuffer(world.queue, list[MANY + 2], "x", 1, 0, BYTES, 0, NULL, NULL));
	EQUAL(write_one(list[MANY + 3]), id[20]);
	EQUAL(write_one(list[MANY + 4]), id[25]);
	for (int i = 0; i < MANY + CHOSEN; i++)
		if (i != 15)
			OK(clReleaseMemObject(list[i]));
	end_clean();
}

enum { PIECE = 1 << 20, PIECES = 12, FIT = 4 };
static void *rooms[PIECES];
static size_t rooms_used;

static void count_room(void *room)
{
	size_t i = 0;
	while (i < rooms_used && rooms[i] != room)
		i++;
	if (i == rooms_used && rooms_used < PIECES)
		rooms[rooms_used++] = room;
}

static void begin_pieces(void)
{
	begin((struct options){.devicememory = FIT * PIECE, .spill = true});
	fake.eager = 1;
}

/* Writes all of the pieces over and over, so that each one that comes back is written there. */
static void visit_pieces(cl_mem list[PIECES])
{
	cl_int err;
	for (int i = 0; i < PIECES; i++) {
		list[i] = clCreateBuffer(world.context, CL_MEM_READ_WRITE, PIECE, NULL, &err);
		OK(err);
	}
	static const char bytes[PIECE]; /* a fill takes the fake driver many times as long */
	for (int visit = 0; visit < 3 * PIECES; visit++)
		OK(clEnqueueWriteBuffer(world.queue, list[visit % PIECES], CL_FALSE, 0, PIECE, bytes, 0, NULL, NULL));
}

/* Not as many as have ever left. */
TEST(spill_needs_as_many_rooms_as_are_away)
{
	cl_mem list[PIECES];
	begin_pieces();
	rooms_used = 0;
	atomic_store(&fake.beforeread, count_room);
	visit_pieces(list);
	atomic_store(&fake.beforeread, NULL);
	EQUAL(rooms_used, PIECES - FIT + 1);
	for (int i = 0; i < PIECES; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

/* Creates with the program's bytes that bring the pieces back. */
static uint64_t copies_back(uint32_t processor)
{
	cl_mem list[PIECES];
	atomic_store(&fake.processor, processor);
	begin_pieces();
	uint64_t before = fake.copies;
	visit_pieces(list);
	uint64_t copies = fake.copies - before;
	for (int i = 0; i < PIECES; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
	return copies;
}

TEST(spill_writes_to_a_device_with_memory_of_its_own)
{
	EQUAL(copies_back(0), 0);
}

TEST(spill_restores_by_a_create_where_memory_is_the_hosts)
{
	CHECK(copies_back(1) > PIECES);
}
