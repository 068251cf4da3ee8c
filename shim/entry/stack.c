/*
 * stack.c: walks the stack. The compiler's unwinder takes a microsecond, because it searches and interprets tables for
 * each frame. The rule that it finds for a return address does not change while the library with that address is loaded. So we
 * remember rules, one word for each, and walk in nanoseconds. Each walk reads the stack itself, because longjmp, alloca or other
 * stacks may have changed it. It reads only words that the unwinder would read, too. Where a rule does not fit into a word, as
 * for signal handlers, the unwinder walks.
 *
 * After dlclose another library may be at the same addresses. glibc counts what it has unloaded, but reading the count takes a
 * lock. So we remember which addresses can be unloaded, and read the count only for stacks that go through those. Code
 * that a program generates is in no library, and with tables is not remembered: it changes uncounted.
 *
 * The unwinder ends at code without a table, which node and Java generate. Such code may keep frame pointers. We follow them as
 * long as they lie on the thread's stack, each above the one before, and the word there is an address after a call. From the
 * first of them on, we read nothing outside of the stack.
 */
#define _GNU_SOURCE
#include "stack.h"

#include "layer.h"
#include "rule.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <unwind.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static bool is_our_code(uintptr_t address)
{
	return address >= (uintptr_t)__ehdr_start && address < (uintptr_t)_end;
}

/*
 * Rules: two for each value of SET_BITS bits of a scrambled address. A rule stores the other bits of the address:
 *
 *   the other 36 bits | can be unloaded | kind: 3 | saved: 4 | in a library: 1 | offset / 8: 19
 *
 * Scrambling is multiplication by an odd number, so no two addresses of 47 bits have the same.
 */
#define ADDRESS_BITS 47
#define SET_BITS 11
#define OTHER_BITS (ADDRESS_BITS - SET_BITS)
#define RULE_BITS 28
#define UNLOADABLE (1u << 27)
#define KIND_SHIFT 24
#define SAVED_SHIFT 20
#define IN_LIBRARY (1u << 19)
#define OFFSET_BITS 19

static _Atomic uint64_t rules[1u << SET_BITS][2];
static _Atomic uint64_t unloaded;                         /* libraries unloaded when the rules were read */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while rules or unloaded are written; others skip writing instead of waiting */

static uint64_t scramble_address(uintptr_t address)
{
	return address * 0x9e3779b97f4a7c15u & (((uint64_t)1 << ADDRESS_BITS) - 1);
}

/* The rule for an address; 0: not known. */
static inline uint32_t recall_rule(uintptr_t address)
{
	uint64_t key = scramble_address(address), other = key & (((uint64_t)1 << OTHER_BITS) - 1);
	_Atomic uint64_t *set = rules[key >> OTHER_BITS];
	for (int i = 0; i < 2; i++) {
		uint64_t word = atomic_load_explicit(&set[i], memory_order_relaxed);
		if (gmt_likely(word >> RULE_BITS == other))
			return (uint32_t)word & ((1u << RULE_BITS) - 1);
	}
	return 0;
}

struct place {
	uintptr_t address;
	bool begun, passed;   /* a file was visited; files from here on can be unloaded */
	bool listed, lasting; /* the address is in the program or a library; in one that cannot be unloaded */
	bool shared;          /* the address is in a library of the system or of a runtime */
	uint64_t unloaded;
};

static bool is_address_in_file(const struct dl_phdr_info *file, uintptr_t address)
{
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &file->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && address - (file->dlpi_addr + part->p_vaddr) < part->p_memsz)
			return true;
	}
	return false;
}

/* Whether a path is a library's for internal/callsite: of the system, Python or node. The program itself has an empty path. */
static bool is_library(const char *path)
{
	static const char *const tops[] = {"/lib/", "/lib32/", "/lib64/"}, *const folders[] = {"/site-packages/", "/dist-packages/", "/node_modules/"};
	const char *top = strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
	top = top != path && strncmp(top, "/local/", 7) == 0 ? top + 6 : top;
	for (size_t i = 0; i < 3; i++)
		if (strncmp(top, tops[i], strlen(tops[i])) == 0 || strstr(path, folders[i]))
			return true;
	return false;
}

/* Visits a loaded file. The first is the program, then libraries in the order of loading; those up to libc cannot be unloaded. */
static int locate_file(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)size;
	struct place *place = arg;
	place->unloaded = file->dlpi_subs;
	place->passed |= !place->begun && *file->dlpi_name; /* another namespace (dlmopen) has a list of its own */
	place->begun = true;
	place->listed = is_address_in_file(file, place->address);
	place->lasting = place->listed && !place->passed;
	place->shared = place->listed && is_library(file->dlpi_name);
	place->passed |= is_address_in_file(file, (uintptr_t)dl_iterate_phdr);
	return place->listed;
}

static int read_unloaded_count(struct dl_phdr_info *file, size_t size, void *number)
{
	(void)size;
	*(uint64_t *)number = file->dlpi_subs;
	return 1;
}

/* Whether the rules are from a time with that count of unloaded libraries; if not, forgets them all. */
static bool are_rules_current(uint64_t now)
{
	if (gmt_likely(now == atomic_load_explicit(&unloaded, memory_order_acquire)))
		return true;
	if (pthread_mutex_trylock(&mutex) != 0)
		return false;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		for (int j = 0; j < 2; j++)
			atomic_store_explicit(&rules[i][j], 0, memory_order_relaxed);
	atomic_store_explicit(&unloaded, now, memory_order_release);
	pthread_mutex_unlock(&mutex);
	return false;
}

static bool are_rules_outdated(void)
{
	uint64_t now = 0;
	dl_iterate_phdr(read_unloaded_count, &now);
	return !are_rules_current(now);
}

static void store_rule(uintptr_t address, uint32_t rule, uint64_t as_of)
{
	uint64_t key = scramble_address(address);
	_Atomic uint64_t *set = rules[key >> OTHER_BITS];
	if (pthread_mutex_trylock(&mutex) != 0)
		return;
	if (as_of == atomic_load_explicit(&unloaded, memory_order_relaxed)) {
		atomic_store_explicit(&set[1], atomic_load_explicit(&set[0], memory_order_relaxed), memory_order_relaxed);
		atomic_store_explicit(&set[0], (key << RULE_BITS) | rule, memory_order_relaxed);
	}
	pthread_mutex_unlock(&mutex);
}

static uint32_t learn_rule(uintptr_t address, bool guess, uintptr_t near)
{
	struct place place = {.address = address};
	dl_iterate_phdr(locate_file, &place);
	are_rules_current(place.unloaded);
	struct gmt_rule rule = gmt_rule_read(address, guess, near);
	bool generated = !place.listed && (rule.kind == GMT_RULE_FRAME || rule.kind == GMT_RULE_NO_CODE);
	uint64_t words = rule.offset / 8;
	if (words >> OFFSET_BITS || address >> ADDRESS_BITS)
		rule.kind = GMT_RULE_UNKNOWN;
	uint32_t packed = (place.lasting ? 0 : UNLOADABLE) | (uint32_t)rule.kind << KIND_SHIFT | rule.saved << SAVED_SHIFT |
			  (place.shared ? IN_LIBRARY : 0) | (uint32_t)(words & ((1u << OFFSET_BITS) - 1));
	if ((place.listed || generated) && !(address >> ADDRESS_BITS))
		store_rule(address, packed, place.unloaded);
	return packed;
}

static inline uint32_t rule_at(uintptr_t address, bool guess, uintptr_t near)
{
	uint32_t rule = recall_rule(address);
	return gmt_likely(rule) ? rule : learn_rule(address, guess, near);
}

/* Whether the walk goes on beyond the limit: while all frames are of libraries. OpenCV alone fills eight frames before its caller. */
static bool continues_past_limit(const struct gmt_stack *stack)
{
	unsigned i = stack->depth > stack->limit ? stack->depth - 1 : 0; /* the frames before were checked when they were added */
	if (!stack->deeper || stack->depth >= GMT_STACK_MAX)
		return false;
	while (i < stack->depth && rule_at(stack->frames[i], false, 0) & IN_LIBRARY)
		i++;
	return i == stack->depth;
}

/* Adds a frame to the stack. False: the walk ends. */
static inline bool add_frame(struct gmt_stack *stack, uintptr_t address)
{
	if (gmt_unlikely(!address || (stack->python && gmt_python_contains(address))))
		return false;
	if (!is_our_code(address) && (stack->depth || !gmt_layer_is_loader_code((const void *)address)))
		stack->frames[stack->depth++] = address;
	return stack->depth < stack->limit || continues_past_limit(stack);
}

static _Unwind_Reason_Code add_unwound_frame(struct _Unwind_Context *context, void *stack)
{
	return add_frame(stack, (uintptr_t)_Unwind_GetIP(context)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static enum gmt_rule_kind kind_of_rule(uint32_t rule)
{
	return (enum gmt_rule_kind)(rule >> KIND_SHIFT & 7);
}

static inline uintptr_t read_word_at(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* The end of this thread's stack, 0 if sp is on another one. */
static uintptr_t stack_end(uintptr_t sp)
{
	static __thread struct {
		uintptr_t low, high;
	} mine __attribute__((tls_model("initial-exec")));
	pthread_attr_t attributes;
	void *low;
	size_t bytes;
	int saved = errno;
	if (!mine.high && pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
			mine.low = (uintptr_t)low;
			mine.high = mine.low + bytes;
		}
		pthread_attr_destroy(&attributes);
	}
	errno = saved;
	return sp >= mine.low && sp < mine.high ? mine.high : 0;
}

/* How far a stack has been walked. */
struct steps {
	struct gmt_caller at;
	uintptr_t end; /* of the stack, beyond which nothing is read; 0: all frames so far are certain */
	bool checked;
};

static bool is_on_stack(const struct steps *s, uintptr_t place)
{
	return place >= s->at.sp && place <= s->end - sizeof place && place % sizeof place == 0;
}

/* Steps out of code without a table. False: it has no frame pointer, or nothing called it. */
__attribute__((no_sanitize("address", "thread"))) static bool step_by_frame(struct steps *s, uint32_t rule)
{
	if (!s->end && !(s->end = stack_end(s->at.sp)))
		return false;
	uintptr_t frame = s->at.bp, near = rule & UNLOADABLE ? s->at.address : 0;
	if (!is_on_stack(s, frame) || !is_on_stack(s, frame + 8))
		return false;
	s->at = (struct gmt_caller){.address = read_word_at(frame + 8), .sp = frame + 16, .bp = read_word_at(frame)};
	return s->at.address && kind_of_rule(rule_at(s->at.address, true, near)) != GMT_RULE_NO_CODE;
}

/* Steps by a rule of a table. False: it leads off the stack. */
__attribute__((no_sanitize("address", "thread"))) static bool step_by_rule(struct steps *s, uint32_t rule)
{
	struct gmt_caller *at = &s->at;
	uintptr_t offset = (uintptr_t)(rule & ((1u << OFFSET_BITS) - 1)) * 8, saved = rule >> SAVED_SHIFT & 15;
	uintptr_t sp = at->sp + offset, bp = at->bp;
	if (kind_of_rule(rule) == GMT_RULE_BP)
		sp = at->bp + offset;
	if (kind_of_rule(rule) == GMT_RULE_ALIGNED) {
		if (gmt_unlikely(s->end) && (!is_on_stack(s, at->bp - offset) || !is_on_stack(s, at->bp)))
			return false;
		sp = read_word_at(at->bp - offset);
		bp = read_word_at(at->bp);
	}
	if (gmt_unlikely(s->end) && (!is_on_stack(s, sp - 8) || (saved && !is_on_stack(s, sp - saved * 8))))
		return false;
	*at = (struct gmt_caller){.address = read_word_at(sp - 8), .sp = sp, .bp = saved ? read_word_at(sp - saved * 8) : bp};
	return true;
}

/* Walks by the rules. False: the unwinder must walk. */
static bool walk_by_rules(struct gmt_stack *stack, struct gmt_caller at)
{
	struct steps s = {.at = at};
	while (add_frame(stack, s.at.address)) {
		uint32_t rule = rule_at(s.at.address, s.end != 0, 0);
		if (gmt_unlikely(rule & UNLOADABLE && !s.checked)) {
			if (are_rules_outdated())
				return s.end != 0;
			s.checked = true;
			rule = rule_at(s.at.address, s.end != 0, 0); /* read again: another thread may have forgotten the rule since */
		}
		switch (kind_of_rule(rule)) {
		case GMT_RULE_SP:
		case GMT_RULE_BP:
		case GMT_RULE_ALIGNED:
			if (!step_by_rule(&s, rule))
				return true;
			break;
		case GMT_RULE_FRAME:
			if (!s.end)
				stack->certain = stack->depth;
			if (!step_by_frame(&s, rule))
				return true;
			break;
		case GMT_RULE_UNKNOWN:
			return s.end != 0;
		default:
			return true;
		}
	}
	return true;
}

#ifdef GMT_TEST_STACKS /* builds for tests compare every stack */
#include <stdio.h>
#include <stdlib.h>
static void compare_with_unwinder(const struct gmt_stack *walked)
{
	struct gmt_stack stack = {.limit = walked->limit, .deeper = walked->deeper, .python = walked->python};
	_Unwind_Backtrace(add_unwound_frame, &stack);
	unsigned certain = walked->certain ? walked->certain : walked->depth;
	if (stack.depth == certain && memcmp(stack.frames, walked->frames, stack.depth * sizeof stack.frames[0]) == 0)
		return;
	for (unsigned i = 0; i < stack.depth || i < walked->depth; i++)
		fprintf(stderr, "frame %u: %#zx walked, %#zx unwound\n", i, i < walked->depth ? walked->frames[i] : 0, i < stack.depth ? stack.frames[i] : 0);
	abort();
}
#endif

void gmt_stack_collect(struct gmt_stack *stack, const struct gmt_caller *caller, unsigned limit, bool toname)
{
	unsigned room;
	stack->depth = stack->lines = stack->certain = 0;
	stack->limit = limit;
	stack->python = toname ? gmt_python_on_thread() : GMT_PYTHON_NONE;
	stack->deeper = toname && !stack->python;
	if (!walk_by_rules(stack, *caller)) {
		stack->depth = stack->certain = 0;
		_Unwind_Backtrace(add_unwound_frame, stack);
	}
#ifdef GMT_TEST_STACKS
	compare_with_unwinder(stack);
#endif
	room = GMT_STACK_MAX - stack->depth;
	if (stack->python)
		stack->lines = gmt_python_lines(stack->python, stack->line, limit < room ? limit : room);
}
