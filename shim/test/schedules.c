/*
 * schedules.c: shim/order itself under a scheduler of ours. Threads are coroutines, which change places only at atomic operations
 * (yield.h) and calls of the driver, and a seed says which goes on. The program of docs/models/inflight.pml: a block is released
 * while a command uses it, and meanwhile a queue, a user event, markers and failures appear. Then one of registry/host_range.c.
 *
 *   schedules COUNT [FIRST]    of the seeds from FIRST on; the first that fails is printed with what happened
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "../order/closed_queues.h"
#include "../order/handout.h"
#include "../order/inflight.h"
#include "../order/queue.h"
#include "../registry/held.h"
#include "../registry/host_range.h"
#include "../registry/memory.h"
#include "yield.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* What the rooms need of others. */
struct gmt_session gmt_session;
_Atomic(struct gmt_functions *) gmt_driver_now;
__thread int gmt_in_callback;
void gmt_diag(enum gmtdiag code, const char *text) { (void)code, (void)text; }
void gmt_held_count_released(uint32_t site) { (void)site; }

/* --- the scheduler --- */

#define POINTS_MOST 20000 /* of one schedule: then a thread waits for what does not come */
static struct actor {
	ucontext_t context;
	const char *name;
	void (*run)(void);
	bool over;
	char stack[1 << 16];
} actors[6];
static unsigned count, current, points, changes; /* one of changes points lets another go on */
static ucontext_t scheduler;
static uint64_t seed, state;
static char history[1 << 14];

static uint32_t pick(uint32_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (uint32_t)((state >> 32) * below >> 32);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	size_t length = strlen(history);
	va_list list;
	va_start(list, format);
	int named = snprintf(history + length, sizeof history - length, "%s: ", count ? actors[current].name : "end");
	if (length + (size_t)named < sizeof history - 2)
		vsnprintf(history + length + named, sizeof history - length - (size_t)named, format, list);
	va_end(list);
	strncat(history, "\n", sizeof history - strlen(history) - 1);
}

static void fail(const char *what)
{
	printf("%sseed %llu: %s\n", history, (unsigned long long)seed, what);
	exit(1);
}

void schedule_point(void)
{
	if (!count)
		return;
	if (++points > POINTS_MOST)
		fail("a thread waits forever");
	if (pick(changes) == 0)
		swapcontext(&actors[current].context, &scheduler);
}

static void act(void)
{
	actors[current].run();
	actors[current].over = true;
	swapcontext(&actors[current].context, &scheduler);
}

static void add(const char *name, void (*run)(void))
{
	struct actor *a = &actors[count++];
	a->name = name, a->run = run, a->over = false;
	getcontext(&a->context);
	a->context.uc_stack.ss_sp = a->stack, a->context.uc_stack.ss_size = sizeof a->stack;
	makecontext(&a->context, act, 0);
}

static void run_all(void)
{
	points = 0;
	for (;;) {
		unsigned left[6], lefts = 0;
		for (unsigned i = 0; i < count; i++)
			if (!actors[i].over)
				left[lefts++] = i;
		if (!lefts)
			break;
		current = left[pick(lefts)];
		swapcontext(&scheduler, &actors[current].context);
	}
	count = 0;
}

/* --- the driver: two queues in order, commands by number, which are their own events --- */

enum { A, B, QUEUES };
#define COMMANDS 64
static struct command {
	int queue;
	unsigned waits; /* the command or user event; 0: none */
	int owner;      /* of the block that it uses; 0: of none */
	cl_int status;
	int references; /* of the shim */
} commands[COMMANDS];
static unsigned enqueued;
static bool broken[QUEUES]; /* a command has failed: the driver gives up what comes behind it */
static bool released[QUEUES]; /* the driver may have freed it */
static char handles[QUEUES];

static unsigned number_of(cl_event event)
{
	return (unsigned)(uintptr_t)event;
}

static unsigned enqueue(int queue, unsigned waits, int owner)
{
	schedule_point();
	unsigned n = ++enqueued;
	commands[n] = (struct command){queue, waits, owner, broken[queue] ? -1 : CL_QUEUED, 0};
	note("command %u on %c%s%s", n, 'a' + queue, owner == 1 ? " of the first owner" : owner ? " of the next owner" : "", waits ? " waits" : "");
	if (waits)
		note("for %u", waits);
	schedule_point();
	return n;
}

static int queue_of(cl_command_queue handle)
{
	int queue = (int)((char *)handle - handles);
	if (released[queue])
		fail("a released queue is used");
	return queue;
}

static cl_int info(cl_event event, cl_event_info name, size_t size, void *value, size_t *got)
{
	(void)name, (void)size, (void)got;
	schedule_point();
	*(cl_int *)value = commands[number_of(event)].status;
	return CL_SUCCESS;
}

static cl_int marker(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	unsigned n = enqueue(queue_of(queue), waits ? number_of(*list) : 0, 0);
	if (event) {
		commands[n].references = 1;
		*event = (cl_event)(uintptr_t)n;
	}
	return CL_SUCCESS;
}

static cl_int retain(cl_event event)
{
	commands[number_of(event)].references++;
	return CL_SUCCESS;
}

static cl_int release(cl_event event)
{
	schedule_point();
	if (commands[number_of(event)].references-- == 0)
		fail("an event is released twice");
	return CL_SUCCESS;
}

static cl_int flush(cl_command_queue queue)
{
	schedule_point();
	(void)queue_of(queue);
	return CL_SUCCESS;
}

static struct gmt_functions driver = {.clGetEventInfo = info, .clEnqueueMarkerWithWaitList = marker, .clEnqueueBarrierWithWaitList = marker,
				      .clReleaseEvent = release, .clRetainEvent = retain, .clFlush = flush};

/* Whether a command may begin: all before it on its queue are over, and so is what it waits for. */
static bool ready(unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		if (commands[i].queue == commands[n].queue && commands[i].status > CL_COMPLETE)
			return false;
	return commands[n].status == CL_QUEUED && (!commands[n].waits || commands[commands[n].waits].status <= CL_COMPLETE);
}

static void step(unsigned n)
{
	struct command *c = &commands[n];
	if (c->status == CL_RUNNING) {
		c->status = CL_COMPLETE;
		note("%u ends", n);
	} else if (c->queue < QUEUES && ready(n)) {
		broken[c->queue] |= c->waits && commands[c->waits].status < 0;
		c->status = broken[c->queue] ? -1 : CL_RUNNING;
		note("%u %s", n, c->status < 0 ? "is given up" : "begins");
		for (unsigned i = 1; c->owner == 2 && c->status == CL_RUNNING && i <= enqueued; i++)
			if (commands[i].owner == 1 && commands[i].status > CL_COMPLETE)
				fail("a block has two owners");
	}
}

/* One command fails; drivers then give up those behind it, while one before it may still run. */
static void break_queue(void)
{
	unsigned running = enqueued;
	while (running && commands[running].owner != 1)
		running--;
	if (broken[A] || !running || commands[running].status != CL_RUNNING)
		return;
	broken[A] = true;
	note("what is queued fails");
	for (unsigned i = running; i <= enqueued; i++)
		if (commands[i].queue == A && commands[i].status == CL_QUEUED)
			commands[i].status = -1;
}

static bool fails;
static unsigned threads; /* of the program that have not ended */

static void device(void)
{
	bool busy = true;
	while (threads || busy) {
		if (enqueued)
			step(1 + pick(enqueued));
		if (fails && pick(8) == 0)
			break_queue();
		busy = false;
		for (unsigned i = 1; i <= enqueued; i++)
			busy |= commands[i].status > CL_COMPLETE;
		schedule_point();
	}
}

/* --- the program, as the hooks serve it --- */

static struct gmt_context *context;
static struct gmt_queue *queue[QUEUES];
static struct gmt_memory *memory;

static cl_command_queue handle_of(int q)
{
	return (cl_command_queue)(void *)&handles[q];
}

/* gmt_command_end */
static uint64_t counted(int q, unsigned waits, int owner)
{
	enqueue(q, waits, owner);
	return atomic_fetch_add_explicit(&queue[q]->enqueued, 1, memory_order_acq_rel) + 1;
}

/* flight_state of pool/release.c */
static enum gmt_flight flight_of(const struct gmt_uses *uses)
{
	enum gmt_flight flight = gmt_uses_state(uses, context);
	if (flight != GMT_FLIGHT_ORDERED || gmt_uses_hand_out(uses, context))
		return flight;
	return gmt_uses_state(uses, NULL);
}

static void close_queue(int q)
{
	bool listed = gmt_queue_begin_close(queue[q]);
	note("%c is closed", 'a' + q);
	released[q] = true;
	gmt_queue_end_close(queue[q], listed);
}

static bool closes; /* the first owner gives up queue a, too */

static void owner(void)
{
	for (uint32_t earlier = pick(3); earlier; earlier--)
		counted(A, 0, 0);
	struct gmt_covers covers = {.count = 1, .cover = {{queue[A], queue[A]->object.id, atomic_load(&queue[A]->enqueued), 0}}};
	uint64_t position = counted(A, 0, 1);
	gmt_use_add(memory, queue[A], position, &covers);
	struct gmt_uses uses = gmt_uses_of(memory);
	enum gmt_flight flight = flight_of(&uses);
	note("released: %s", flight == GMT_FLIGHT_DONE ? "done" : flight == GMT_FLIGHT_ORDERED ? "ordered" : "busy");
	if (flight == GMT_FLIGHT_BUSY) { /* gmt_cooling_collect */
		gmt_queue_ensure_marker(queue[A]);
		flight = gmt_uses_state(&uses, NULL);
	}
	bool taken = flight != GMT_FLIGHT_BUSY && !atomic_load(&context->pool.closed);
	if (closes)
		close_queue(A);
	while (taken && closes && !queue[B])
		schedule_point();
	if (taken)
		counted(queue[B] ? B : A, 0, 2);
	threads--;
}

/* Another block cools. */
static void cools(void)
{
	gmt_queue_ensure_marker(queue[A]);
	threads--;
}

/* clCreateCommandQueue */
static void second_queue(void)
{
	struct gmt_queue *fresh = gmt_queue_add(handle_of(B));
	fresh->context = context;
	fresh->inorder = true;
	atomic_store(&fresh->references, 1);
#ifdef LATE_QUEUE /* a fault */
	gmt_queue_order_behind(fresh);
	atomic_fetch_add(&context->order.queues, 1);
#else
	atomic_fetch_add(&context->order.queues, 1);
	gmt_queue_order_behind(fresh);
#endif
	queue[B] = fresh;
	note("b is there");
	threads--;
}

static bool b_is_idle(void)
{
	for (unsigned i = 1; i <= enqueued; i++)
		if (commands[i].queue == B && commands[i].status > CL_COMPLETE)
			return false;
	return queue[B] != NULL;
}

/* clCreateUserEvent, a command that waits for it, and clSetUserEventStatus once b is idle */
static void user_event(void)
{
	gmt_queue_note_gate(context);
	commands[++enqueued] = (struct command){.queue = QUEUES, .status = CL_SUBMITTED};
	unsigned event = enqueued;
	note("user event %u", event);
	counted(A, event, 0);
	while (!b_is_idle())
		schedule_point();
	commands[event].status = CL_COMPLETE;
	note("user event %u is set", event);
	atomic_fetch_sub(&context->order.gates, 1);
	threads--;
}

static void begin(void)
{
	history[0] = 0;
	enqueued = 0;
	broken[A] = broken[B] = released[A] = released[B] = false;
	context = gmt_context_add((cl_context)(void *)&context);
	queue[A] = gmt_queue_add(handle_of(A)), queue[B] = NULL;
	queue[A]->context = context;
	queue[A]->inorder = true;
	atomic_store(&queue[A]->references, 1);
	atomic_store(&context->order.queues, 1);
	memory = gmt_memory_add(&memory, false);
	memory->context = context;
	changes = 1u << pick(5);
	fails = pick(8) == 0;
	closes = pick(4) == 0;
	add("owner", owner);
	add("second queue", second_queue);
	if (pick(4))
		add("cooling", cools);
	if (!closes && pick(4))
		add("user event", user_event);
	threads = count;
	add("device", device);
}

/* All has ended: the shim has given back what it held. */
static void end(void)
{
	if (!closes)
		close_queue(A);
	close_queue(B);
	for (unsigned i = 1; i <= enqueued; i++) /* markers of the closing */
		if (commands[i].status > CL_COMPLETE)
			commands[i].status = CL_COMPLETE;
	if (atomic_load(&context->pool.closed))
		gmt_context_drop_markers(context);
	released[A] = false;
	queue[A] = gmt_queue_add(handle_of(A));
	close_queue(A); /* which looks at all closed ones */
	for (unsigned i = 1; i <= enqueued; i++)
		if (commands[i].references)
			fail("an event is not released");
	gmt_memory_unregister(memory);
	gmt_context_remove(context);
}

/* --- memory of the host that two threads add and remove --- */

static char bytes[3][8]; /* what lies between the ranges is in neither */

static void adds_and_removes(void)
{
	char *mine = bytes[2 * current];
	for (int i = 0; i < 3; i++) {
		gmt_host_range_add(mine, mine, sizeof bytes[0]);
		if (!gmt_host_range_holds(mine) || !gmt_host_range_holds(mine + sizeof bytes[0] - 1))
			fail("a range is not there");
		gmt_host_range_remove(mine, NULL);
		if (gmt_host_range_holds(mine))
			fail("a range is still there");
	}
}

static void looks(void)
{
	for (int i = 0; i < 3; i++)
		if (gmt_host_range_holds(bytes[1]))
			fail("a range is too long");
}

static void ranges(void)
{
	changes = 1u << pick(3);
	add("one", adds_and_removes);
	add("other", adds_and_removes);
	add("third", looks);
	run_all();
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	gmt_driver_now = &driver;
	gmt_session.pooling = 1;
	for (seed = first; seed < first + wanted; seed++) {
		state = seed * 0x9e3779b97f4a7c15u | 1;
		begin();
		run_all();
		end();
		ranges();
	}
	printf("%llu schedules\n", (unsigned long long)wanted);
	return 0;
}
