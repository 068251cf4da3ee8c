/*
 * tags.c: call sites. The first time that a stack (or caller, size, thread) occurs, it gets a small number, and its frames go
 * to the session as offsets in modules. The session turns these into names.
 */
#define _GNU_SOURCE
#include "tags.h"

#include "../base/flight_counts.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "layer.h"
#include "stack.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAG_SLOTS 65536u          /* power of two */
#define TAGS_MAX (TAG_SLOTS / 2)  /* half full at most, so that probing stays short */
#define MODULES_MAX 1024
#define WALK_FROM 262144u         /* bytes: a walk takes at most a hundredth of the time of a command that moves as many */

/* Open addressing by a 64-bit hash; a number appears once its TAG event has been written. */
static struct {
	_Atomic uint64_t hash;
	_Atomic uint32_t number;
} slots[TAG_SLOTS];
static _Atomic uint32_t tags;
static _Atomic int reported_full;

static struct {
	const void *base; /* of a module, or the identity of a function of Python */
	uint64_t number;
} modules[MODULES_MAX];
static unsigned module_count;
static pthread_mutex_t defining = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix_hash(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 32);
}

/* The build id of an ELF file that is mapped at base: its bytes, at most room. */
static size_t read_build_id(const void *base, uint8_t *to, size_t room)
{
	const ElfW(Ehdr) *head = base;
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(ElfW(Phdr)))
		return 0;
	const ElfW(Phdr) *segments = (const void *)((const char *)base + head->e_phoff);
	uintptr_t least = UINTPTR_MAX;
	for (unsigned i = 0; i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < least)
			least = segments[i].p_vaddr & ~(uintptr_t)(GMT_PAGE - 1);
	for (unsigned i = 0; i < head->e_phnum; i++) {
		if (segments[i].p_type != PT_NOTE)
			continue;
		const char *at = (const char *)base + segments[i].p_vaddr - least, *end = at + segments[i].p_memsz;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof *note, *desc = name + ((note->n_namesz + 3u) & ~3u);
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && desc + note->n_descsz <= end) {
				size_t bytes = note->n_descsz < room ? note->n_descsz : room;
				memcpy(to, desc, bytes);
				return bytes;
			}
			at = desc + ((note->n_descsz + 3u) & ~3u);
		}
	}
	return 0;
}

/* The module's number; the first time it also writes its event. Under the lock defining. */
static uint64_t module_number(const void *base, const char *path)
{
	for (unsigned i = 0; i < module_count; i++)
		if (modules[i].base == base)
			return modules[i].number;
	if (module_count == MODULES_MAX)
		return 0;
	char real[PATH_MAX + 1 + GMT_FLIGHT_BUILD];
	if (!path || !*path) {
		ssize_t n = readlink("/proc/self/exe", real, PATH_MAX - 1);
		if (n < 0)
			return 0;
		real[n] = 0;
	} else if (!realpath(path, real)) {
		strncpy(real, path, PATH_MAX - 1);
		real[PATH_MAX - 1] = 0;
	}
	modules[module_count].base = base;
	modules[module_count].number = module_count + 1;
	struct gmtevent event = GMT_EVENT_MODULE(.time = gmt_now(), .module = ++module_count);
	size_t bytes = strlen(real);
	if (gmt_flight) { /* a session reads the build id from the file */
		bytes++;
		bytes += read_build_id(base, (uint8_t *)real + bytes, GMT_FLIGHT_BUILD);
	}
	gmt_ring_write_payload(&event, real, bytes);
	return module_count;
}

/* The number of a function of Python, among those of modules. Under the lock defining. */
static uint64_t function_number(const struct gmt_python_line *line)
{
	const void *function = (const void *)line->function;
	for (unsigned i = 0; i < module_count; i++)
		if (modules[i].base == function)
			return modules[i].number;
	char text[GMT_PAYLOAD_MAX];
	size_t bytes = module_count < MODULES_MAX ? gmt_python_name(line, text, sizeof text) : 0;
	if (!bytes)
		return 0;
	modules[module_count].base = function;
	modules[module_count].number = module_count + 1;
	struct gmtevent event = GMT_EVENT_MODULE(.time = gmt_now(), .module = ++module_count, .script = true);
	gmt_ring_write_payload(&event, text, bytes);
	return module_count;
}

static struct gmtframe locate_address(uintptr_t address)
{
	Dl_info info;
	struct link_map *map = NULL;
	if (!dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fbase)
		return (struct gmtframe){0, address};
	uint64_t module = module_number(info.dli_fbase, map ? map->l_name : info.dli_fname);
	return (struct gmtframe){module, module ? address - (uintptr_t)info.dli_fbase : address};
}

static void define_tag(uint32_t number, enum gmttagmode mode, const struct gmt_stack *stack, uint64_t value)
{
	int saved = errno;
	struct gmtframe frames[GMT_STACK_MAX];
	unsigned count = 0;
	pthread_mutex_lock(&defining);
	while (count < stack->depth) {
		frames[count] = locate_address(stack->frames[count]);
		count++;
	}
	for (unsigned i = 0; i < stack->lines; i++) {
		uint64_t function = function_number(&stack->line[i]);
		if (function)
			frames[count++] = (struct gmtframe){function, stack->line[i].line};
	}
	pthread_mutex_unlock(&defining);
	gmt_python_look_for_interpreter(); /* the program may have loaded Python since */
	struct gmtevent event = GMT_EVENT_TAG(.time = gmt_now(), .mode = mode, .tag = number,
					      .value = value);
	gmt_ring_write_payload(&event, frames, count * sizeof frames[0]);
	errno = saved;
}

/* Waits for the thread that defines the tag: microseconds, once per tag. */
static uint32_t wait_for_tag_number(_Atomic uint32_t *slot)
{
	uint32_t number;
	while (gmt_unlikely((number = atomic_load_explicit(slot, memory_order_acquire)) == 0))
		sched_yield();
	return number;
}

/* The number for hash. The first thread that comes assigns and defines it. */
static uint32_t intern_tag(uint64_t hash, enum gmttagmode mode, const struct gmt_stack *stack, uint64_t value)
{
	hash += hash == 0; /* 0 marks a free slot */
	for (uint32_t i = (uint32_t)(hash >> 20);; i++) {
		__typeof__(slots[0]) *slot = &slots[i % TAG_SLOTS];
		uint64_t seen = atomic_load_explicit(&slot->hash, memory_order_acquire);
		if (seen == 0) {
			if (atomic_load_explicit(&tags, memory_order_relaxed) >= TAGS_MAX) {
				if (!atomic_exchange(&reported_full, 1))
					gmt_diag(GMT_DIAG_TAGS_FULL, "too many call sites to distinguish");
				return 0;
			}
			if (atomic_compare_exchange_strong(&slot->hash, &seen, hash)) {
				uint32_t number = atomic_fetch_add(&tags, 1) + 1;
				define_tag(number, mode, stack, value);
				atomic_store_explicit(&slot->number, number, memory_order_release);
				return number;
			}
		}
		if (seen == hash)
			return wait_for_tag_number(&slot->number);
	}
}

static uint64_t size_class(uint64_t size)
{
	return size <= 1 ? 1 : 1ull << (64 - __builtin_clzll(size - 1));
}

/* Collects the caller; if that is a loader's entry, collects the entry's caller instead. */
static void collect_caller(struct gmt_call *call, struct gmt_stack *stack, const struct gmt_caller *caller)
{
	if (gmt_unlikely(gmt_layer_is_loader_code((const void *)caller->address))) {
		gmt_stack_collect(stack, caller, 1, false);
		call->last = 0;
	}
	if (!stack->depth)
		stack->frames[stack->depth++] = caller->address;
}

static uint32_t make_tag_in_mode(enum gmttagmode mode, struct gmt_call *call, const struct gmt_caller *caller, uint64_t size)
{
	struct gmt_stack stack;
	stack.depth = stack.lines = 0;
	uint64_t value = 0;
	switch (mode) {
	case GMT_TAGS_CALLER:
		collect_caller(call, &stack, caller);
		value = stack.frames[0];
		break;
	case GMT_TAGS_STACK:
		gmt_stack_collect(&stack, caller, gmt_session.config.stackdepth, true);
		for (unsigned i = 0; i < stack.depth; i++)
			value = mix_hash(value, stack.frames[i]);
		for (unsigned i = 0; i < stack.lines; i++)
			value = mix_hash(mix_hash(value, stack.line[i].function), stack.line[i].line);
		call->last = 0;
		break;
	case GMT_TAGS_SIZE:
		value = size_class(size);
		break;
	case GMT_TAGS_THREAD:
		value = (uint64_t)syscall(SYS_gettid);
		break;
	default:
		return 0;
	}
	return intern_tag(mix_hash(0x51ed270b, value), mode, &stack, mode >= GMT_TAGS_SIZE ? value : 0);
}

uint32_t gmt_tag_untimed(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size)
{
	return make_tag_in_mode((enum gmttagmode)gmt_session.config.tagmode, call, caller, size);
}

uint32_t gmt_tag(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size)
{
	uint32_t tag = gmt_tag_untimed(call, caller, size);
	gmt_call_driver_begins(call);
	return tag;
}

uint32_t gmt_tag_command(const struct gmt_caller *caller, uint64_t bytes, uint64_t *time)
{
	enum gmttagmode mode = (enum gmttagmode)gmt_session.config.tagmode;
	if (mode == GMT_TAGS_STACK && bytes < WALK_FROM && !gmt_python_on_thread())
		mode = GMT_TAGS_CALLER;
	static __thread struct {
		uintptr_t address;
		uint32_t tag;
	} latest __attribute__((tls_model("initial-exec")));
	if (gmt_likely(mode == GMT_TAGS_CALLER && latest.address == caller->address))
		return latest.tag;
	struct gmt_call call;
	uint32_t before = atomic_load_explicit(&tags, memory_order_relaxed), tag = make_tag_in_mode(mode, &call, caller, bytes);
	if (gmt_unlikely(atomic_load_explicit(&tags, memory_order_relaxed) != before))
		*time = gmt_now(); /* later than the TAG event */
	if (mode == GMT_TAGS_CALLER && !gmt_layer_is_loader_code((const void *)caller->address)) {
		latest.address = caller->address;
		latest.tag = tag;
	}
	return tag;
}
