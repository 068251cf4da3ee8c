/* simulate_session.c: what surrounds the shim in a simulation: clock, call sites, driver, core, and a session that reads. */
#define _GNU_SOURCE
#include "simulate.h"

#include "../base/clock.h"
#include "../base/gate.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "../entry/room.h"
#include "../entry/sites.h"
#include "../entry/start.h"
#include "../entry/tags.h"
#include "../pool/budget.h"
#include "../pool/evict.h"
#include "../registry/memory.h"
#include "fake_core.h"
#include "fake_driver.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- in place of clock.c and of shim/entry --- */

uint64_t sim_clock = 1000000000;
static __thread bool program_thread;

/* The linker puts it in place of gmt_pause: meanwhile the device works. */
void __wrap_gmt_pause(uint32_t nanoseconds);
void __wrap_gmt_pause(uint32_t nanoseconds)
{
	sim_clock += nanoseconds;
	fake_complete_all();
}

/* It stands still for threads of the Go core: whether one of them claims a ring of its own depends on Go's scheduler. */
uint64_t gmt_now(void) { return sim_clock += program_thread ? 100 : 0; }
uint64_t gmt_about_now(void) { return gmt_now(); }
uint64_t gmt_system_clock(clockid_t clock) { return (void)clock, gmt_now(); }
void gmt_clock_note_refusal(void) {}
bool gmt_clock_handle_trap(void *context, bool inside) { return (void)context, (void)inside, false; }
bool gmt_session_start(const char *function) { return (void)function, false; }
void gmt_session_note_context(void) {}
void gmt_session_note_device_query(cl_device_type type, cl_int status, cl_uint found) { (void)type, (void)status, (void)found; }
void gmt_count_object(struct gmt_object *object, enum gmtheld type, const struct gmt_caller *caller) { (void)object, (void)type, (void)caller; }
void gmt_count_event(struct gmt_event *event, const struct gmt_caller *caller, uint64_t time) { (void)event, (void)caller, (void)time; }
uint32_t gmt_site_of(const struct gmt_caller *caller) { return (void)caller, 1; }
void gmt_call_failed(const char *function, cl_int status, const struct gmt_caller *caller) { (void)function, (void)status, (void)caller; }
uint32_t gmt_tag(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size) { return gmt_call_driver_begins(call), (void)caller, (void)size, 1; }
uint32_t gmt_tag_untimed(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size) { return (void)call, (void)caller, (void)size, 1; }
uint32_t gmt_tag_command(const struct gmt_caller *caller, uint64_t bytes, uint64_t *time) { return (void)caller, (void)bytes, (void)time, 1; }

/* --- the functions --- */

/* The driver's, as simulate.sh calls them. */
#define HOOK(name) extern __typeof__(name) fake_##name __attribute__((weak));
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
HOOK(clGetKernelInfo)
HOOK(clGetKernelArgInfo)
HOOK(clGetProgramInfo)
HOOK(clGetProgramBuildInfo)
HOOK(clEnqueueWaitForEvents)
#undef HOOK

struct gmt_functions *cl;
static struct gmt_functions hooks;
static cl_icd_dispatch driver;
static uint32_t knobs[KNOBS];

void session_bare(void)
{
#define HOOK(name) driver.name = fake_##name;
#include "../base/hooks.def"
	HOOK(clGetKernelInfo)
	HOOK(clGetKernelArgInfo)
	HOOK(clGetProgramInfo)
	HOOK(clGetProgramBuildInfo)
	HOOK(clEnqueueWaitForEvents)
#undef HOOK
	program_thread = true;
	memset(knobs, 0, sizeof knobs);
	gmt_dispatch_use_layer(&driver, sizeof driver / sizeof(void *));
	cl = atomic_load(&gmt_bare_now);
}

/* --- the session --- */

#define REGION_SIZE (GMT_RINGS_OFFSET + (size_t)GMT_RINGS * sizeof(struct gmtring))
#define DECLARED(name) gmt_core_##name##_fn gmt_core_##name;
#define TAKEN(name) gmt_session.core.name = gmt_core_##name;
GMT_CORE_FUNCTIONS(DECLARED)

static bool deaf;
static bool real; /* the Go core */
static uint64_t in_use, seen_events; /* as the events have it */
static const uint64_t spare = 40;    /* events that a ring has room for whose session does not read */

static struct gmtring *ring(void)
{
	return (struct gmtring *)(void *)((char *)gmt_session.region + GMT_RINGS_OFFSET);
}

/* --- the Go core, if CORE names it: its thread works only while the program waits for the answer to a message --- */

static _Atomic bool obeyed;

GMT_HOOK int gmt_room_give_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run_it)(void *), void *argument)
{
	return pthread_create(thread, attributes, run_it, argument);
}

static uint32_t never(void) { return 0; }
static void nothing(void) {}
static void expired(uint64_t time, int64_t number) { (void)time, (void)number; }
static void answered(const struct gmt_obeyed *o) { gmt_decision_note(o->number, sim_clock); }

static void evicted(struct gmt_evictions *evictions)
{
	gmt_evict_begun(0, evictions);
	gmt_evict_all(evictions);
	atomic_store(&obeyed, true);
}

static void tell_core(const char *text)
{
	struct gmtcontrol *control = &gmt_session.region->control[gmt_session.region->posted % GMT_CONTROLS];
	control->sequence = gmt_session.region->posted + 1;
	snprintf((char *)control->text, sizeof control->text, "%s", text);
	atomic_store(&obeyed, false);
	__atomic_fetch_add(&gmt_session.region->posted, 1, __ATOMIC_SEQ_CST);
	while (!atomic_load(&obeyed)) {
		gmt_futex_wake((_Atomic uint32_t *)&gmt_session.region->posted, 1);
		sched_yield();
	}
}

static const char *const messages[] = {
	"policy futhark", "policy pow2", "policy mantissa", "policy arena", "policy slab max_part=1024,heap_bytes=65536,slabs_per_heap=4",
	"policy buddy max_part=1024,heap_bytes=65536,slabs_per_heap=4", "trim 0", "limit max_cached_bytes=8192", "limit max_cached_bytes=0",
};

static bool load_core(void)
{
	static const struct gmt_callbacks callbacks = {never, nothing, gmt_gate_enter, gmt_gate_leave, evicted, expired, answered};
	const char *path = getenv("CORE");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	if (!library)
		return false;
#define FOUND(name) *(void **)&gmt_session.core.name = dlsym(library, "gmt_core_" #name);
	GMT_CORE_FUNCTIONS(FOUND)
	strcpy((char *)gmt_session.config.policy, "futhark");
	if (gmt_session.core.start(&gmt_session.config, &callbacks, gmt_session.region, &gmt_ledger) != 0)
		broken("the core did not start");
	return true;
}

static void begin_session(void)
{
	static const struct gmt_callbacks none;
	gmt_session.region = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	gmt_session.config = (struct gmtconfig){
		.magic = GMT_MAGIC, .version = GMT_VERSION, .stackdepth = 1, .uses = GMT_USES_ALWAYS, .pooling = 1,
		.scrub = knobs[KNOB_scrub], .devicememory = knobs[KNOB_memory],
	};
	if (!(real = load_core())) {
		GMT_CORE_FUNCTIONS(TAKEN)
		gmt_core_start(&gmt_session.config, &none, gmt_session.region, &gmt_ledger);
	}
	atomic_store(&gmt_session.pooling, 1);
	atomic_store(&gmt_session.state, GMT_STATE_ON);
	for (enum knob knob = KNOB_slab; knob < KNOB_refuse; knob++)
		session_set(knob, knobs[knob]);
}

void session_shim(void)
{
#define HOOK(name) hooks.name = name;
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
#undef HOOK
	if (!gmt_session.region)
		begin_session();
	cl = &hooks;
}

/* A session that does not read has its rings full. */
static void deafen(bool becomes)
{
	static uint64_t heard;
	if (becomes == deaf)
		return;
	deaf = becomes;
	if (deaf)
		heard = ring()->tail, ring()->tail = ring()->head + spare - GMT_RING_EVENTS;
	else
		ring()->tail = heard;
}

static void set_core(enum knob knob, uint32_t value)
{
	struct gmt_gauge gauge;
	if (!gmt_session.region || !gmt_pooling())
		return;
	if (knob == KNOB_message && real)
		tell_core(messages[value % (sizeof messages / sizeof *messages)]);
	if (knob == KNOB_message || real)
		return;
	gmt_core_gauge(&gauge); /* takes back what was noted under the policy so far */
	if (knob == KNOB_slab)
		core.slab = value;
	else if (knob == KNOB_evict)
		core.evict = (int)value;
	else if (knob == KNOB_noledger)
		core.roomy = !value;
	else if (value)
		core.fail_at = core.calls + 1 + value;
	gmt_core_gauge(&gauge); /* says what may be noted now */
}

void session_set(enum knob knob, uint32_t value)
{
	static _Atomic uint32_t *const words[KNOBS] = {
		[KNOB_eager] = &fake.eager, [KNOB_clean] = &fake.clean, [KNOB_countobjects] = &fake.countobjects,
		[KNOB_countcommands] = &fake.countcommands, [KNOB_keepsarguments] = &fake.keepsarguments, [KNOB_countparts] = &fake.countparts,
		[KNOB_failmarkers] = &fake.failmarkers, [KNOB_quietfailures] = &fake.quietfailures, [KNOB_refuse] = &fake.failcreates,
	};
	knobs[knob] = value;
	if (words[knob])
		*words[knob] = value;
	else if (knob == KNOB_cap)
		fake.cap = value;
	else if (knob == KNOB_memory && value && !sim_watched) /* the bare device is as small */
		fake.cap = fake.largest = value;
	else if (knob == KNOB_pass)
		sim_clock += value * 1000ull;
	else if (knob == KNOB_deaf && gmt_session.region)
		deafen(value);
	else if (knob >= KNOB_slab)
		set_core(knob, value);
}

/* --- what the events say --- */

/* Shared memory that a command frees is in use until that has run. */
static bool is_memory(const struct gmtevent *event)
{
	return event->op != GMT_MEMORY_SUBBUFFER && event->op != GMT_MEMORY_SVM;
}

static void fold(const struct gmtevent *event)
{
	seen_events++;
	if (event->kind == GMT_KIND_CREATE && event->outcome != GMT_OUTCOME_FAILED && is_memory(event))
		in_use += event->size;
	else if (event->kind == GMT_KIND_RELEASE && event->outcome != GMT_OUTCOME_PINNED && is_memory(event) && gmtrelease_object(event) &&
		 !gmtrelease_references(event))
		in_use -= event->size;
	else if (event->kind == GMT_KIND_NONE || event->kind > GMT_KIND_SPILL)
		broken("an event of kind %u", event->kind);
}

static bool has_payload(uint16_t kind)
{
	return (kind >= GMT_KIND_PROCESS && kind <= GMT_KIND_DEVICE && kind != GMT_KIND_THREAD) || kind == GMT_KIND_KERNEL ||
	       kind == GMT_KIND_LIMIT || kind == GMT_KIND_DIAG;
}

static void read_events(void)
{
	struct gmtring *r = ring();
	while (!deaf && r->tail < r->head) {
		struct gmtevent event = r->events[r->tail++ % GMT_RING_EVENTS];
		fold(&event);
		if (has_payload(event.kind))
			r->tail += (event.size + sizeof event - 1) / sizeof event;
	}
}

bool session_zeroes(void)
{
	return fake.clean && knobs[KNOB_scrub] == GMT_SCRUB_ZERO;
}

uint64_t session_budget(void)
{
	return gmt_budget_taken() + atomic_load(&gmt_memory_hosted);
}

uint64_t session_events(void)
{
	return seen_events;
}

void session_check(uint64_t used)
{
	if (!gmt_session.region)
		return;
	read_events();
	if (fake.hazards)
		broken("a command may run beside one of an earlier owner of its memory");
	if (!deaf && !ring()->lost && in_use != used)
		broken("the events have %llu bytes in use, the program %llu", (unsigned long long)in_use, (unsigned long long)used);
	if (!fake.pending && session_budget() != fake.livebytes)
		broken("the budget counts %llu bytes, the driver %llu", (unsigned long long)session_budget(), (unsigned long long)fake.livebytes);
}

bool session_excuses(uint64_t bytes)
{
	uint64_t memory = gmt_session.config.devicememory;
	if (!(fake.cap && fake.livebytes + bytes > fake.cap) && !(memory && gmt_budget_taken() + bytes > memory))
		return false;
	for (uint64_t n = 1; n <= core.numbers && gmt_pooling(); n++)
		if ((core.block[n % BLOCKS].state == FREE || core.block[n % BLOCKS].state == COOLING) && !core.block[n % BLOCKS].slab)
			return false;
	fake.cap = gmt_session.config.devicememory = 0;
	return true;
}

void session_end(void)
{
	for (uint64_t n = 1; n <= core.numbers && gmt_pooling(); n++) {
		const struct block *b = &core.block[n % BLOCKS];
		if (b->state != NOTHING && !(b->slab && b->state == COOLING)) /* a part ends with its slab */
			broken("the core still has block %llu in state %d", (unsigned long long)n, b->state);
	}
	if (session_budget())
		broken("the budget counts %llu bytes at the end", (unsigned long long)session_budget());
}
