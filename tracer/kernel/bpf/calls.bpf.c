/*
 * calls.bpf.c: reports calls of functions. One program runs at each entry, one at each return. The probe's cookie is the
 * number of the function, whose shape says what to report. They know nothing of OpenCL.
 *
 * They keep no per-CPU state: the program of another process may interrupt them on the same CPU.
 */
#include "registers.h"

GMT_LICENSE;

#define COPY (GMT_CALL_DATA / GMT_CALL_COPIES)
#define PAGE 4096u

const volatile bool stacks;
bool paused; /* set while only some of the probes are attached */
const volatile uint64_t stacklimit; /* bytes in the ring from which on stacks are left out */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GMT_FUNCTIONS);
	__type(key, uint32_t);
	__type(value, struct gmtshape);
} shapes SEC(".maps");

struct callkey {
	uint32_t pid;
	uint32_t tid;
	uint64_t function;
};

/* A power of two of arguments, so that a masked index is always valid. The one behind those of registers is the event's. */
#define EVENT GMT_CALL_ARGUMENTS
struct entry {
	uint64_t entered;
	uint64_t argument[8];
};
_Static_assert(EVENT < 8, "there is room for all arguments");

/*
 * Calls between entry and return; entered is 0 if there is none. The entries of a thread outlive it, until the map evicts
 * the least recently used. That may hit a call which lasts while all other entries are replaced; it is then neither
 * reported nor counted. It takes thousands of threads that start and end during one call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct callkey);
	__type(value, struct entry);
} entries SEC(".maps");

/* The records to reserve in the ring, whose sizes must be constants. */
struct datarecord {
	struct gmtcall call;
	uint8_t data[GMT_CALL_DATA];
};

struct stackrecord {
	struct datarecord head;
	uint8_t stack[GMT_CALL_STACK];
};

/* A call to be reported. */
struct report {
	struct pt_regs *registers;
	const struct gmtshape *shape;
	struct entry entry;
	struct thread thread;
	uint16_t function;
	bool copy[GMT_CALL_COPIES]; /* which copies to make */
	bool shortened;
};

/* number counts from 1. */
static __always_inline uint64_t argument(const struct report *t, uint8_t number)
{
	return t->entry.argument[(number - 1u) & 7u];
}

/* Most functions pass the count as 32 bits, so the upper half of the register is undefined. */
static __always_inline uint64_t size_of_copy(const struct report *t, const struct gmtcopy *copy)
{
	uint64_t count = copy->count ? (uint32_t)argument(t, copy->count) : 1;
	return count * copy->unit;
}

/* Whether the argument is a handle of the same driver as the function's object: see like in event.h. */
static __always_inline bool same_driver(const struct report *t, const struct gmtcopy *copy)
{
	uint64_t handle = 0, one = 0, other = 0;
	if (size_of_copy(t, copy) != sizeof handle)
		return false;
	if (bpf_probe_read_user(&handle, sizeof handle, (void *)argument(t, copy->argument)) || !handle)
		return false;
	if (bpf_probe_read_user(&one, sizeof one, (void *)handle))
		return false;
	if (bpf_probe_read_user(&other, sizeof other, (void *)argument(t, t->shape->object)))
		return false;
	return one == other;
}

static __always_inline bool wanted(const struct report *t, uint8_t i)
{
	const struct gmtcopy *copy = &t->shape->copy[i];
	return copy->argument && (t->shape->like != i + 1 || same_driver(t, copy));
}

static __always_inline uint8_t make_copy(const struct report *t, uint8_t i, uint8_t *to)
{
	const struct gmtcopy *copy = &t->shape->copy[i];
	const void *from = (const void *)argument(t, copy->argument);
	if (!t->copy[i] || !from)
		return 0;
	if (copy->text)
		return bpf_probe_read_user_str(to, COPY, from) > 0;
	uint64_t size = size_of_copy(t, copy);
	if (size > COPY)
		size = COPY;
	return bpf_probe_read_user(to, (uint32_t)size, from) == 0;
}

/* Reserved memory holds old data, so write all of a record that is ever read. */
static __noinline int make_copies(const struct report *t, struct datarecord *to)
{
	if (!to)
		return 0;
	__builtin_memset(to->data, 0, sizeof to->data);
	to->call.data = GMT_CALL_DATA;
	to->call.copied[0] = make_copy(t, 0, to->data);
	to->call.copied[1] = make_copy(t, 1, to->data + COPY);
	return 0;
}

static __always_inline void caller(const struct report *t, struct gmtcall *to)
{
	to->ip = to->sp = to->bp = to->bx = to->r12 = to->r13 = to->r14 = to->r15 = to->result = to->event = 0;
	if (!(t->shape->flags & GMT_SHAPE_RETURN)) {
		to->ip = return_address(t->registers);
		return;
	}
	to->result = result(t->registers);
	if (t->entry.argument[EVENT])
		bpf_probe_read_user(&to->event, sizeof to->event, (void *)t->entry.argument[EVENT]);
	callers(t->registers, to);
}

static __noinline int describe(const struct report *t, struct gmtcall *to)
{
	if (!to)
		return 0;
	to->entered = t->entry.entered;
	to->time = t->shape->flags & GMT_SHAPE_RETURN ? bpf_ktime_get_ns() : t->entry.entered;
	to->pid = t->thread.pid;
	to->tid = t->thread.tid;
	to->function = t->function;
	to->sight = GMT_SIGHT_CALL;
	to->data = 0;
	to->stack = 0;
	to->error = 0;
	to->copied[0] = to->copied[1] = 0;
	to->shortened = t->shortened;
	to->pad = 0;
	for (int i = 0; i < GMT_CALL_ARGUMENTS; i++)
		to->argument[i] = t->entry.argument[i];
	if (t->shape->error)
		bpf_probe_read_user(&to->error, sizeof to->error, (void *)argument(t, t->shape->error));
	caller(t, to);
	return 0;
}

/*
 * Reads the stack from sp upwards and returns its size. Memory ends at the end of a page, so it is read page by page: at
 * most one read fails, and at most the last page is left out.
 */
static __noinline int read_stack(struct stackrecord *to, uint64_t sp)
{
	if (!to)
		return 0;
	uint8_t *stack = to->stack;
	uint32_t got = PAGE - ((uint32_t)sp & (PAGE - 1));
	if (got > PAGE) /* for the verifier */
		return 0;
	if (bpf_probe_read_user(stack, got, (void *)sp))
		return 0;
	if (bpf_probe_read_user(stack + got, PAGE, (void *)(sp + got)))
		return (int)got;
	if (bpf_probe_read_user(stack + got + PAGE, PAGE, (void *)(sp + got + PAGE)))
		return (int)(got + PAGE);
	/* The end of the record is in the middle of a page, so the last two reads overlap those before. */
	if (!bpf_probe_read_user(stack + 3 * PAGE, PAGE, (void *)(sp + 3 * PAGE)) &&
	    !bpf_probe_read_user(stack + 2 * PAGE, PAGE, (void *)(sp + 2 * PAGE)))
		return GMT_CALL_STACK;
	if (bpf_probe_read_user(stack + got + 2 * PAGE, PAGE, (void *)(sp + got + 2 * PAGE)))
		return (int)(got + 2 * PAGE);
	return (int)(got + 3 * PAGE);
}
_Static_assert(GMT_CALL_STACK == 4 * PAGE, "four pages of stack");

static __always_inline bool report_with_stack(struct report *t)
{
	struct stackrecord *record = 0;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < stacklimit)
		record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
	if (!record) {
		t->shortened = true;
		return false;
	}
	describe(t, &record->head.call);
	make_copies(t, &record->head);
	record->head.call.stack = (uint16_t)read_stack(record, t->registers->rsp);
	bpf_ringbuf_submit(record, 0);
	return true;
}

static __always_inline bool report_with_data(const struct report *t)
{
	struct datarecord *record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
	if (!record)
		return false;
	describe(t, &record->call);
	make_copies(t, record);
	bpf_ringbuf_submit(record, 0);
	return true;
}

static __always_inline bool report_plain(const struct report *t)
{
	struct gmtcall *call = bpf_ringbuf_reserve(&ring, sizeof *call, 0);
	if (!call)
		return false;
	describe(t, call);
	bpf_ringbuf_submit(call, 0);
	return true;
}

static __always_inline void report(struct report *t)
{
	const uint8_t stack = GMT_SHAPE_RETURN | GMT_SHAPE_STACK;
	t->copy[0] = wanted(t, 0);
	t->copy[1] = wanted(t, 1);
	if (stacks && (t->shape->flags & stack) == stack && report_with_stack(t))
		return;
	if (!(t->copy[0] || t->copy[1] ? report_with_data(t) : report_plain(t)))
		count_lost(t->thread.pid, t->shape->flags & GMT_SHAPE_USE);
}

static __always_inline bool watched(uint32_t pid)
{
	uint32_t found = verdict(pid);
	return !paused && (found == VERDICT_WATCH || (!found && watchall));
}

static __always_inline struct callkey key_of(const struct thread *thread, struct pt_regs *registers)
{
	struct callkey key = {thread->pid, thread->tid, bpf_get_attach_cookie(registers)};
	return key;
}

/* The address where the call stores its event. */
static __always_inline uint64_t event_argument(const struct report *t)
{
	uint8_t number = t->shape->event;
	if (number > GMT_CALL_ARGUMENTS)
		return further_argument(t->registers, number);
	return number ? argument(t, number) : 0;
}

static __always_inline bool begin(struct report *t, const struct callkey *key, struct pt_regs *registers)
{
	uint32_t function = (uint32_t)key->function;
	t->registers = registers;
	t->function = (uint16_t)function;
	t->shape = bpf_map_lookup_elem(&shapes, &function);
	return t->shape;
}

/*
 * Each call of a function saves its entry or clears that of an earlier call, so that a return finds only the entry of its
 * own call. An earlier one may be left over if the call never returned, or had no probe or verdict at its end.
 */
SEC("uprobe")
int enter(struct pt_regs *registers)
{
	struct report t = {0};
	if (!current(&t.thread))
		return 0;
	struct callkey key = key_of(&t.thread, registers);
	if (!watched(t.thread.pid)) {
		struct entry *left = bpf_map_lookup_elem(&entries, &key);
		if (left)
			left->entered = 0;
		return 0;
	}
	if (!begin(&t, &key, registers))
		return 0;
	t.entry.entered = bpf_ktime_get_ns();
	arguments(registers, t.entry.argument);
	t.entry.argument[EVENT] = event_argument(&t);
	if (!(t.shape->flags & GMT_SHAPE_RETURN)) {
		report(&t);
		return 0;
	}
	/* A thread repeats most calls, and updating its entry in place costs less than a new one. */
	struct entry *kept = bpf_map_lookup_elem(&entries, &key);
	if (kept) {
		*kept = t.entry;
		return 0;
	}
	if (bpf_map_update_elem(&entries, &key, &t.entry, BPF_ANY))
		count_lost(t.thread.pid, t.shape->flags & GMT_SHAPE_USE);
	return 0;
}

/* A return without an entry belongs to a call that began before the process was watched. */
SEC("uretprobe")
int leave(struct pt_regs *registers)
{
	struct report t = {0};
	if (!current(&t.thread) || !watched(t.thread.pid))
		return 0;
	struct callkey key = key_of(&t.thread, registers);
	struct entry *entry = bpf_map_lookup_elem(&entries, &key);
	if (!entry || !entry->entered)
		return 0;
	t.entry = *entry;
	entry->entered = 0;
	if (begin(&t, &key, registers))
		report(&t);
	return 0;
}
