/*
 * sites.c: see sites.h.
 *
 * Even the walk of stack.c takes longer than an event may cost, so each thread remembers the stacks of its commands. A call
 * comes from a known stack if its return address and stack pointer are known and the next return addresses up the stack are
 * where they were: a frame's size follows from its return address, so the next return address is at a fixed place. Only frames
 * with alloca() vary; if address and place agree there by chance, the call counts for the other call site.
 */
#define _GNU_SOURCE
#include "sites.h"

#include "../base/call.h"
#include "../base/session.h"
#include "../registry/finding.h"
#include "python.h"
#include "tags.h"

#include <pthread.h>
#include <stdlib.h>
#include <unwind.h>

#define KNOWN 64u /* stacks that a thread remembers; a power of two */
#define WAYS 4u   /* places in the table where one stack may be */
#define CHECKS 8u /* return addresses of a stack that are compared */

struct known {
	uintptr_t address, sp; /* of the call; 0: free */
	uint32_t site, checks;
	struct check {
		const uintptr_t *place;
		uintptr_t address;
	} check[CHECKS];
};
static __thread struct known *stacks __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void free_known_stacks(void *memory)
{
	stacks = NULL;
	free(memory);
}

static void make_thread_key(void)
{
	pthread_key_create(&key, free_known_stacks);
}

uint32_t gmt_site_of(const struct gmt_caller *caller)
{
	if (gmt_session.config.tagmode == GMT_TAGS_SIZE) /* a command has no size */
		return 0;
	uint64_t now = gmt_now();
	struct gmt_call call = {.start = now, .last = now};
	return gmt_tag(&call, caller, 0);
}

void gmt_count_object(struct gmt_object *object, enum gmtheld type, const struct gmt_caller *caller)
{
	uint32_t site = gmt_held_site(type, gmt_site_of(caller));
	if (gmt_unlikely(!object)) {
		gmt_held_count_untracked(site, 0);
		return;
	}
	object->site = (uint16_t)site;
	gmt_held_count_created(site, 0);
}

/* Sanitizers do not check the read: return addresses belong to other functions' frames, not to their objects. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static uintptr_t read_word_at(const uintptr_t *place)
{
	return *(const volatile uintptr_t *)place;
}

/* The place of the return address in a frame between two stack pointers, NULL if unknown. */
static const uintptr_t *place_of_return_address(uintptr_t address, const uintptr_t *sp, const uintptr_t *end)
{
#ifdef __x86_64__
	return sp && read_word_at(end - 1) == address ? end - 1 : NULL;
#else /* arm64: near the frame's beginning, where compilers put it */
	for (unsigned i = 0; i < 64 && sp + i < end; i++)
		if (read_word_at(sp + i) == address)
			return sp + i;
	return NULL;
#endif
}

struct walk {
	struct known *known;
	unsigned most;
	const uintptr_t *sp; /* of the frame before; NULL: the walk has not reached the caller yet */
};

/* Visits the caller's frame, or one farther up the stack. */
static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;
	struct known *known = walk->known;
	uintptr_t address = (uintptr_t)_Unwind_GetIP(context);
	const uintptr_t *sp = walk->sp, *end = (const uintptr_t *)_Unwind_GetCFA(context);
	walk->sp = sp || address == known->address ? end : NULL;
	if (!sp)
		return _URC_NO_REASON;
	const uintptr_t *place = address && known->checks < walk->most ? place_of_return_address(address, sp, end) : NULL;
	if (!place)
		return _URC_END_OF_STACK;
	known->check[known->checks++] = (struct check){place, address};
	return _URC_NO_REASON;
}

static bool is_same_caller(const struct known *known, const struct gmt_caller *caller)
{
	if (known->address != caller->address || known->sp != caller->sp)
		return false;
	for (uint32_t i = 0; i < known->checks; i++)
		if (read_word_at(known->check[i].place) != known->check[i].address)
			return false;
	return true;
}

static uint32_t learn_site(struct known *known, const struct gmt_caller *caller)
{
	*known = (struct known){.address = caller->address, .sp = caller->sp, .site = gmt_held_site(GMT_HELD_EVENT, gmt_site_of(caller))};
	if (gmt_session.config.tagmode == GMT_TAGS_STACK) {
		uint32_t frames = gmt_session.config.stackdepth - 1; /* the first is the caller */
		_Unwind_Backtrace(note_frame, &(struct walk){known, frames < CHECKS ? frames : CHECKS, NULL});
	}
	return known->site;
}

static uint32_t site_of_event(const struct gmt_caller *caller)
{
	static __thread uint32_t next __attribute__((tls_model("initial-exec")));
	if (gmt_unlikely(!stacks)) {
		pthread_once(&key_once, make_thread_key);
		stacks = calloc(KNOWN, sizeof *stacks);
		pthread_setspecific(key, stacks);
	}
	if (gmt_unlikely(!stacks || (gmt_session.config.tagmode == GMT_TAGS_STACK && gmt_python_on_thread()))) /* Python's frames are elsewhere */
		return gmt_held_site(GMT_HELD_EVENT, gmt_site_of(caller));
	uint64_t hash = (caller->address ^ caller->sp << 7) * 0x9e3779b97f4a7c15u;
	for (uint32_t i = 0; i < WAYS; i++) {
		struct known *known = &stacks[((hash >> 40) + i) % KNOWN];
		if (gmt_likely(is_same_caller(known, caller)))
			return known->site;
		if (!known->address)
			return learn_site(known, caller);
	}
	return learn_site(&stacks[((hash >> 40) + next++ % WAYS) % KNOWN], caller);
}

void gmt_count_event(struct gmt_event *event, const struct gmt_caller *caller, uint64_t time)
{
	uint32_t site = site_of_event(caller);
	if (gmt_unlikely(!event)) {
		gmt_held_count_untracked(site, time);
		return;
	}
	event->object.site = (uint16_t)site;
	gmt_held_count_created(site, time);
}

void gmt_call_failed(const char *function, cl_int status, const struct gmt_caller *caller)
{
	gmt_finding_call_failed(function, caller ? gmt_site_of(caller) : 0, status);
}
