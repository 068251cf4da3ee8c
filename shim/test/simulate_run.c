/* simulate_run.c: runs a simulated program, first over the bare driver and then under the shim, which must show it the same. */
#define _GNU_SOURCE
#include "simulate_world.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

struct world world;
unsigned sim_step;
bool sim_watched;
struct seen *sim_now;
uint64_t *sim_calls;
static uint8_t bytes[1 << 15];
const uint8_t *sim_bytes = bytes;

static struct report *report;
static struct seen bare[STEPS_MOST + 1];
static uint8_t called[STEPS_MOST]; /* back, over the bare driver */

void broken(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(report->why, sizeof report->why, format, list);
	va_end(list);
	report->step = sim_step;
	report->kind = (uintptr_t)format;
	_exit(1);
}

void digest(const void *from, size_t count)
{
	const uint8_t *b = from;
	for (size_t i = 0; i < count; i++)
		sim_now->bytes = (sim_now->bytes ^ b[i]) * 0x100000001b3u;
}

static void CL_CALLBACK memory_ended(cl_mem memory, void *data)
{
	(void)memory;
	world.called[(uintptr_t)data]++;
}

int64_t do_set(const uint32_t *a)
{
	if (a[0] < KNOBS && (a[0] >= KNOB_slab || !world.begun))
		session_set((enum knob)a[0], a[1]);
	return 0;
}

int64_t do_context(const uint32_t *a)
{
	cl_device_id device = fake_device();
	cl_context *context = &world.context[a[0] % CONTEXTS];
	cl_int err = NOTHING;
	if (!*context)
		*context = CALL(clCreateContext)(NULL, 1, &device, NULL, NULL, &err);
	return err;
}

int64_t do_drop_context(const uint32_t *a)
{
	cl_context *context = &world.context[a[0] % CONTEXTS], was = *context;
	*context = NULL;
	return was ? CALL(clReleaseContext)(was) : NOTHING;
}

int64_t do_queue(const uint32_t *a)
{
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, a[2] ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, 0};
	cl_context context = world.context[a[1] % CONTEXTS];
	unsigned i = a[0] % QUEUES;
	cl_int err = NOTHING;
	if (!context || world.queue[i].handle)
		return err;
	world.queue[i].handle = CALL(clCreateCommandQueueWithProperties)(context, fake_device(), list, &err);
	world.queue[i].context = context;
	world.queue[i].number = a[2] ? 0 : ++world.queues;
	return err;
}

int64_t do_drop_queue(const uint32_t *a)
{
	cl_command_queue was = world.queue[a[0] % QUEUES].handle;
	if (fake.failmarkers) /* else nothing says when its commands have run */
		do_finish(a);
	world.queue[a[0] % QUEUES].handle = NULL;
	return was ? CALL(clReleaseCommandQueue)(was) : NOTHING;
}

/* The new memory of a step. What the driver alone refuses, the program does not get here either. */
static int64_t created(struct thing *t, struct thing fresh, cl_int err, struct store *of, bool defined)
{
	if (sim_watched && bare[sim_step].result != CL_SUCCESS && err == CL_SUCCESS) {
		fresh.pointer ? CALL(clSVMFree)(fresh.context, fresh.pointer) : (void)CALL(clReleaseMemObject)(fresh.handle);
		return bare[sim_step].result;
	}
	if (err != CL_SUCCESS)
		return err;
	for (unsigned i = 0; i < PLACES && fresh.handle; i++)
		if (world.thing[i].handle == fresh.handle)
			broken("the program got memory that it has");
	for (unsigned i = 0; i < sim_step && fresh.handle; i++)
		if (world.destructor[i] == fresh.handle && !world.called[i])
			broken("the program got memory whose destructor of step %u has not come", i + 1);
	*t = fresh;
	t->references = 1;
	t->store = of ? of : &world.store[world.stores++];
	if (!of)
		*t->store = (struct store){.size = fresh.size, .defined = defined};
	if (fresh.handle)
		fake_hand_out(fresh.handle);
	if (t->store->things++ == 0 && fresh.handle)
		world.used += fresh.size;
	return err;
}

int64_t do_buffer(const uint32_t *a)
{
	static const cl_mem_flags kinds[] = {CL_MEM_READ_WRITE, CL_MEM_COPY_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_USE_HOST_PTR};
	struct thing *t = &world.thing[a[0] % PLACES];
	cl_context context = world.context[a[1] % CONTEXTS];
	if (t->handle || !context)
		return NOTHING;
	cl_int err = CL_SUCCESS;
	cl_mem_flags flags = kinds[a[3] % 5];
	void *host = flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ? bytes + sim_step : NULL;
	cl_mem handle = CALL(clCreateBuffer)(context, flags, a[2], host, &err);
	return created(t, (struct thing){.handle = handle, .size = a[2]}, err, NULL, flags & CL_MEM_COPY_HOST_PTR || session_zeroes());
}

int64_t do_part(const uint32_t *a)
{
	struct thing *t = &world.thing[a[0] % PLACES], *of = thing(a[1]);
	if (t->handle || !of || of->image)
		return NOTHING;
	cl_int err = CL_SUCCESS;
	cl_buffer_region region = {a[2], a[3]};
	cl_mem handle = CALL(clCreateSubBuffer)(of->handle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	return created(t, (struct thing){.handle = handle, .size = a[3], .part = true}, err, of->store, false);
}

int64_t do_image(const uint32_t *a)
{
	struct thing *t = &world.thing[a[0] % PLACES];
	cl_context context = world.context[a[1] % CONTEXTS];
	if (t->handle || !context)
		return NOTHING;
	cl_int err = CL_SUCCESS;
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = a[2], .image_height = a[3]};
	cl_mem handle = CALL(clCreateImage)(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
	return created(t, (struct thing){.handle = handle, .size = (size_t)a[2] * a[3] * 4, .image = true}, err, NULL, false);
}

int64_t do_retain(const uint32_t *a)
{
	struct thing *t = thing(a[0]);
	if (!t)
		return NOTHING;
	t->references++;
	return CALL(clRetainMemObject)(t->handle);
}

static void let_go(struct store *store)
{
	if (--store->things == 0)
		world.used -= store->size;
}

/* Drivers need not keep what is in the argument of a kernel. */
static void forget_argument(cl_mem handle)
{
	for (unsigned i = 0; i < 3; i++) {
		if (world.argument[i].handle != handle)
			continue;
		CALL(clSetKernelArg)(world.kernel, i, sizeof handle, NULL);
		world.argument[i].handle = NULL;
	}
}

int64_t do_release(const uint32_t *a)
{
	struct thing *t = thing(a[0]);
	if (!t)
		return NOTHING;
	cl_mem was = t->handle;
	if (--t->references == 0) {
		forget_argument(was);
		let_go(t->store);
		t->handle = NULL;
	}
	return CALL(clReleaseMemObject)(was);
}

int64_t do_info(const uint32_t *a)
{
	static const cl_mem_info infos[] = {CL_MEM_REFERENCE_COUNT, CL_MEM_SIZE, CL_MEM_FLAGS, CL_MEM_OFFSET, CL_MEM_MAP_COUNT};
	struct thing *t = thing(a[0]);
	uint64_t value = 0;
	size_t size = 0;
	unsigned what = a[1] % 5;
	if (!t || (fake.keepsarguments && what == 0)) /* an argument of no command yet does not count in recycled memory */
		return NOTHING;
	if (fake.countcommands || fake.countparts) { /* then it depends on when commands run, which hold sub-buffers, too */
		set_user_events(ALL_GATES);
		fake_complete_all();
	}
	cl_int err = CALL(clGetMemObjectInfo)(t->handle, infos[what], sizeof value, &value, &size);
	digest(&value, sizeof value);
	return err ? err : (int64_t)value;
}

int64_t do_destructor(const uint32_t *a)
{
	struct thing *t = thing(a[0]);
	if (!t)
		return NOTHING;
	world.destructor[sim_step] = t->handle;
	return CALL(clSetMemObjectDestructorCallback)(t->handle, memory_ended, (void *)(uintptr_t)sim_step);
}

int64_t do_user(const uint32_t *a)
{
	unsigned i = a[0] % USERS;
	cl_context context = world.context[a[1] % CONTEXTS];
	cl_int err = NOTHING;
	if (!context || world.user[i].event || fake.failmarkers) /* without markers new queues wait for the earlier ones */
		return err;
	world.user[i].event = CALL(clCreateUserEvent)(context, &err);
	world.user[i].context = context;
	world.user[i].fails = a[2];
	return err;
}

int64_t do_end(const uint32_t *a)
{
	return set_user_events(1u << a[0] % USERS);
}

int64_t do_shared(const uint32_t *a)
{
	struct thing *t = &world.shared[a[0] % POINTERS];
	cl_context context = world.context[a[1] % CONTEXTS];
	if (t->pointer || !context)
		return NOTHING;
	void *pointer = CALL(clSVMAlloc)(context, CL_MEM_READ_WRITE, a[2], 0);
	int64_t result = created(t, (struct thing){.pointer = pointer, .size = a[2], .context = context}, pointer ? CL_SUCCESS : -1, NULL, false);
	return t->pointer ? CALL(clRetainContext)(context) : result;
}

static int64_t (*const does[])(const uint32_t *) = {
#define TAKEN(name, weight, arguments) do_##name,
	OPERATIONS(TAKEN)
};

/* Compares a step with the same over the bare driver. */
static void compare(const struct seen *seen)
{
	if (seen->result != bare[sim_step].result)
		broken("the result is %lld, and %lld without the shim", (long long)seen->result, (long long)bare[sim_step].result);
	if (seen->bytes != bare[sim_step].bytes)
		broken("it reads other bytes than without the shim");
}

static void look(void)
{
	*sim_now = (struct seen){
		.result = sim_now->result, .bytes = sim_now->bytes, .commands = fake.commands, .creates = fake.creates,
		.releases = fake.releases, .live = fake.livebytes, .budget = sim_watched ? session_budget() : 0,
		.events = sim_watched ? session_events() : 0, .clock = sim_clock,
	};
	if (sim_watched) {
		compare(sim_now);
		session_check(world.used);
	}
}

/* What the program holds at its end, byte for byte. */
static void read_all(void)
{
	static uint8_t got[1 << 13];
	set_user_events(ALL_GATES);
	for (uint32_t i = 0; i < QUEUES; i++)
		do_finish(&i);
	fake_complete_all(); /* on queues that the program has released, too */
	for (unsigned i = 0; i < sim_step; i++)
		if (world.reads[i])
			digest(world.read[i], world.reads[i]);
	do_context((const uint32_t[]){0});
	do_queue((const uint32_t[]){0, 0, 0});
	for (unsigned i = 0; i < PLACES; i++) {
		struct thing *t = &world.thing[i];
		if (!t->handle || t->image || !t->store->defined)
			continue;
		memset(got, 0, t->size);
		CALL(clEnqueueReadBuffer)(world.queue[0].handle, t->handle, CL_TRUE, 0, t->size, got, 0, NULL, NULL);
		digest(got, t->size);
	}
}

static void release_all(void)
{
	for (uint32_t i = 0; i < PLACES; i++)
		while (world.thing[i].handle)
			do_release(&i);
	for (uint32_t i = 0; i < POINTERS; i++)
		do_unshare((const uint32_t[]){i, 0});
	for (unsigned i = 0; i < world.stores; i++)
		if (world.store[i].last)
			CALL(clReleaseEvent)(world.store[i].last);
	if (world.kernel)
		CALL(clReleaseKernel)(world.kernel);
	for (uint32_t i = 0; i < QUEUES; i++)
		do_drop_queue(&i);
	for (uint32_t i = 0; i < CONTEXTS; i++)
		do_drop_context(&i);
	fake_complete_all();
	if (fake.livememory || fake.livepointers || fake.livebytes || fake.livequeues || fake.liveevents || fake.livekernels || fake.livecontexts)
		broken("at the end the driver has %llu objects of memory, %llu pointers, %llu queues, %llu events, %llu contexts",
		       (unsigned long long)fake.livememory, (unsigned long long)fake.livepointers, (unsigned long long)fake.livequeues,
		       (unsigned long long)fake.liveevents, (unsigned long long)fake.livecontexts);
	for (unsigned i = 0; i < sim_step; i++)
		if (world.called[i] != (sim_watched ? called[i] : world.called[i]) || world.called[i] > 1)
			broken("a callback of step %u came %u times", i + 1, world.called[i]);
	memcpy(called, world.called, sizeof called);
}

/* The knobs are set. */
static void begin(void)
{
	world.begun = true;
	if (sim_watched)
		session_shim();
}

static void pass(const struct program *program, struct seen *log)
{
	if (sim_watched)
		memset(&world, 0, sizeof world);
	fake = (struct fake){.largest = 1u << 20, .createerror = CL_MEM_OBJECT_ALLOCATION_FAILURE, .enqueueerror = CL_OUT_OF_RESOURCES,
			     .alignbits = 64, .devices = 1};
	for (sim_step = 0; sim_step < program->count; sim_step++) {
		const struct step *step = &program->step[sim_step];
		bool refuses = fake.failcreates != 0;
		sim_now = &log[sim_step];
		report->step = sim_step;
		if (step->operation != OP_set && !world.begun)
			begin();
		sim_now->bytes = 0xcbf29ce484222325u;
		sim_now->result = does[step->operation](step->argument);
		uint64_t more = bare[sim_step].live - (sim_step ? bare[sim_step - 1].live : 0); /* of a create without the shim */
		if (sim_watched && bare[sim_step].result == CL_SUCCESS && sim_now->result != CL_SUCCESS && session_excuses(more))
			sim_now->result = does[step->operation](step->argument);
		if (refuses)
			fake.failcreates = 0;
		look();
	}
	sim_now = &log[sim_step];
	fake.failcreates = 0;
	begin();
	read_all();
	look();
	release_all();
}

__attribute__((constructor)) static void fill_pool(void)
{
	for (uint32_t i = 0, word = 1; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)((word = word * 1664525u + 1013904223u) >> 24);
}

void run(const struct program *program, struct report *to)
{
	report = to;
	memset(report, 0, sizeof *report);
	sim_calls = &report->calls;
	alarm(20);
	session_bare();
	pass(program, bare);
	session_bare();
	sim_watched = true;
	pass(program, report->seen);
	session_end();
	_exit(0);
}
