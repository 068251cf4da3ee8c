/*
 * calls.bpf.c: tells of the calls of functions. One program runs at every entry, one at every return; the probe's
 * cookie is the number of the function, and the shape of that number says what to tell. They know no OpenCL.
 *
 * Nothing is kept per CPU: such a program can be interrupted by another process's on the same CPU.
 */
#include "tell.h"

GMT_LICENSE;

#define COPY (GMT_CALL_DATA / GMT_CALL_COPIES)
#define PAGE 4096u

const volatile bool stacks;
bool quiet; /* set while probes come and go one after another: half of them tell half the truth */
const volatile uint64_t crowded; /* bytes waiting in the ring from which on stacks are left out */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GMT_FUNCTIONS);
	__type(key, uint32_t);
	__type(value, struct gmtshape);
} shapes SEC(".maps");

struct place {
	uint32_t pid;
	uint32_t tid;
	uint64_t function;
};

/* The arguments fill a power of two, so that a masked number of one always lies within. */
struct entry {
	uint64_t entered;
	uint64_t argument[8];
};
_Static_assert(GMT_CALL_ARGUMENTS <= 8, "all arguments have a place");

/*
 * Calls between entry and return; entered is 0 when there is none. A thread's places stay when it ends: the oldest make
 * room, and those that were just looked up are not among them. A call that lasts while all others are taken anew loses its
 * place, too, and is neither told nor counted: that takes thousands of threads that come and go during one call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct place);
	__type(value, struct entry);
} entries SEC(".maps");

/* The records that a ring can be asked for: their sizes must be constants. */
struct datarecord {
	struct gmtcall call;
	uint8_t data[GMT_CALL_DATA];
};

struct stackrecord {
	struct datarecord head;
	uint8_t stack[GMT_CALL_STACK];
};

/* One call as it is told. */
struct telling {
	struct pt_regs *registers;
	const struct gmtshape *shape;
	struct entry entry;
	struct who who;
	uint16_t function;
	bool copy[GMT_CALL_COPIES]; /* which copies are made */
	bool shortened;
};

/* number counts from 1. */
static __always_inline uint64_t argument(const struct telling *t, uint8_t number)
{
	return t->entry.argument[(number - 1u) & 7u];
}

/* How many there are is 32 bits in most functions, and then the upper half of the register is anything. */
static __always_inline uint64_t size_of_copy(const struct telling *t, const struct gmtcopy *copy)
{
	uint64_t count = copy->count ? (uint32_t)argument(t, copy->count) : 1;
	return count * copy->unit;
}

/* Whether what is passed is a handle of the driver that the function's object belongs to: see like in event.h. */
static __always_inline bool alike(const struct telling *t, const struct gmtcopy *copy)
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

static __always_inline bool wanted(const struct telling *t, uint8_t i)
{
	const struct gmtcopy *copy = &t->shape->copy[i];
	return copy->argument && (t->shape->like != i + 1 || alike(t, copy));
}

static __always_inline uint8_t make_copy(const struct telling *t, uint8_t i, uint8_t *to)
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

/* The ring's memory holds what was there before, so all of a record is written that is ever looked at. */
static __noinline int make_copies(const struct telling *t, struct datarecord *to)
{
	if (!to)
		return 0;
	__builtin_memset(to->data, 0, sizeof to->data);
	to->call.data = GMT_CALL_DATA;
	to->call.copied[0] = make_copy(t, 0, to->data);
	to->call.copied[1] = make_copy(t, 1, to->data + COPY);
	return 0;
}

static __always_inline void caller(const struct telling *t, struct gmtcall *to)
{
	struct pt_regs *r = t->registers;
	to->ip = to->sp = to->bp = to->bx = to->r12 = to->r13 = to->r14 = to->r15 = to->result = 0;
	if (!(t->shape->flags & GMT_SHAPE_RETURN)) {
		bpf_probe_read_user(&to->ip, sizeof to->ip, (void *)r->rsp);
		return;
	}
	to->result = r->rax;
	to->ip = r->rip;
	to->sp = r->rsp;
	to->bp = r->rbp;
	to->bx = r->rbx;
	to->r12 = r->r12;
	to->r13 = r->r13;
	to->r14 = r->r14;
	to->r15 = r->r15;
}

static __noinline int describe(const struct telling *t, struct gmtcall *to)
{
	if (!to)
		return 0;
	to->entered = t->entry.entered;
	to->time = t->shape->flags & GMT_SHAPE_RETURN ? bpf_ktime_get_ns() : t->entry.entered;
	to->pid = t->who.pid;
	to->tid = t->who.tid;
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
 * Reads the stack from sp upwards and returns how much of it there is. Memory ends at the end of a page, so it is read
 * page by page: one read fails at most, and no more than the last page is left out.
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
	/* The end of what there is room for, which is in the middle of a page; what it shares with the pages is the same. */
	if (!bpf_probe_read_user(stack + 3 * PAGE, PAGE, (void *)(sp + 3 * PAGE)) &&
	    !bpf_probe_read_user(stack + 2 * PAGE, PAGE, (void *)(sp + 2 * PAGE)))
		return GMT_CALL_STACK;
	if (bpf_probe_read_user(stack + got + 2 * PAGE, PAGE, (void *)(sp + got + 2 * PAGE)))
		return (int)(got + 2 * PAGE);
	return (int)(got + 3 * PAGE);
}
_Static_assert(GMT_CALL_STACK == 4 * PAGE, "four pages of stack");

static __always_inline bool tell_with_stack(struct telling *t)
{
	struct stackrecord *record = 0;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < crowded)
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

static __always_inline bool tell_with_data(const struct telling *t)
{
	struct datarecord *record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
	if (!record)
		return false;
	describe(t, &record->call);
	make_copies(t, record);
	bpf_ringbuf_submit(record, 0);
	return true;
}

static __always_inline bool tell_plainly(const struct telling *t)
{
	struct gmtcall *call = bpf_ringbuf_reserve(&ring, sizeof *call, 0);
	if (!call)
		return false;
	describe(t, call);
	bpf_ringbuf_submit(call, 0);
	return true;
}

static __always_inline void tell(struct telling *t)
{
	const uint8_t stack = GMT_SHAPE_RETURN | GMT_SHAPE_STACK;
	t->copy[0] = wanted(t, 0);
	t->copy[1] = wanted(t, 1);
	if (stacks && (t->shape->flags & stack) == stack && tell_with_stack(t))
		return;
	if (!(t->copy[0] || t->copy[1] ? tell_with_data(t) : tell_plainly(t)))
		lose(t->who.pid, t->shape->flags & GMT_SHAPE_USE);
}

static __always_inline bool watched(uint32_t pid)
{
	uint32_t judged = verdict(pid);
	return !quiet && (judged == VERDICT_WATCH || (!judged && everyone));
}

static __always_inline struct place place_of(const struct who *who, struct pt_regs *registers)
{
	struct place place = {who->pid, who->tid, bpf_get_attach_cookie(registers)};
	return place;
}

static __always_inline bool begin(struct telling *t, const struct place *place, struct pt_regs *registers)
{
	uint32_t function = (uint32_t)place->function;
	t->registers = registers;
	t->function = (uint16_t)function;
	t->shape = bpf_map_lookup_elem(&shapes, &function);
	return t->shape;
}

/*
 * Every entry of a function saves it anew or takes away what an earlier call left, so that a return finds nothing but
 * the entry of its own call: a call may have been left without a return, or the probes or the verdict were not there at
 * its end.
 */
SEC("uprobe")
int enter(struct pt_regs *registers)
{
	struct telling t = {0};
	if (!current(&t.who))
		return 0;
	struct place place = place_of(&t.who, registers);
	if (!watched(t.who.pid)) {
		struct entry *left = bpf_map_lookup_elem(&entries, &place);
		if (left)
			left->entered = 0;
		return 0;
	}
	if (!begin(&t, &place, registers))
		return 0;
	t.entry.entered = bpf_ktime_get_ns();
	t.entry.argument[0] = registers->rdi;
	t.entry.argument[1] = registers->rsi;
	t.entry.argument[2] = registers->rdx;
	t.entry.argument[3] = registers->rcx;
	t.entry.argument[4] = registers->r8;
	t.entry.argument[5] = registers->r9;
	if (!(t.shape->flags & GMT_SHAPE_RETURN)) {
		tell(&t);
		return 0;
	}
	/* A thread makes most calls again and again: its place is used anew, which costs less than taking and giving one. */
	struct entry *kept = bpf_map_lookup_elem(&entries, &place);
	if (kept) {
		*kept = t.entry;
		return 0;
	}
	if (bpf_map_update_elem(&entries, &place, &t.entry, BPF_ANY))
		lose(t.who.pid, t.shape->flags & GMT_SHAPE_USE);
	return 0;
}

/* A return without an entry is of a call that was under way when the process came to be watched. */
SEC("uretprobe")
int leave(struct pt_regs *registers)
{
	struct telling t = {0};
	if (!current(&t.who) || !watched(t.who.pid))
		return 0;
	struct place place = place_of(&t.who, registers);
	struct entry *entry = bpf_map_lookup_elem(&entries, &place);
	if (!entry || !entry->entered)
		return 0;
	t.entry = *entry;
	entry->entered = 0;
	if (begin(&t, &place, registers))
		tell(&t);
	return 0;
}
