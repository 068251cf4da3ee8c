/* object.c: see object.h. Objects lie in one range of addresses, so that a look at a handle says whether it is ours. */
#define _GNU_SOURCE
#include "object.h"

#include "../base/lock.h"
#include "context.h"

#include <string.h>
#include <sys/mman.h>

#define OBJECTS ((size_t)1 << 20)
#define STEP 512 /* bytes, a power of two */
_Static_assert(sizeof(struct gmt_spill_object) <= STEP, "an object fits into its step");

static char *base;
static _Atomic size_t used; /* steps, from the first */
static _Atomic uint32_t lock; /* what follows */
static uint64_t serials;
/* Free ones, oldest first: a handle that the program should no longer use stays invalid for long. */
static struct gmt_spill_object *oldest, *latest;

bool gmt_spill_objects_begin(void)
{
	void *range = mmap(NULL, OBJECTS * STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		return false;
	base = range;
	return true;
}

bool gmt_spill_is_ours(const void *handle)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)base;
	return base && at < OBJECTS * STEP && at % STEP == 0;
}

struct gmt_spill_object *gmt_spill_find(cl_mem handle)
{
	if (gmt_unlikely(!gmt_spill_is_ours(handle)))
		return NULL;
	struct gmt_spill_object *object = (void *)handle;
	bool alive = atomic_load_explicit(&object->serial, memory_order_acquire) != 0 &&
		     atomic_load_explicit(&object->holds, memory_order_relaxed) != 0;
	return gmt_likely(alive) ? object : NULL;
}

static struct gmt_spill_object *take_object(void)
{
	struct gmt_spill_object *object = NULL;
	gmt_lock(&lock);
	size_t next = atomic_load(&used);
	if (oldest && (next == OBJECTS || next > 4096)) {
		object = oldest;
		oldest = object->ended;
		if (!oldest)
			latest = NULL;
	} else if (next < OBJECTS) {
		object = (void *)(base + next * STEP);
		atomic_store(&used, next + 1);
	}
	uint64_t serial = ++serials;
	gmt_unlock(&lock);
	if (object) {
		uint32_t made = object->made;
		memset((char *)object + sizeof object->dispatch, 0, sizeof *object - sizeof object->dispatch);
		object->made = made;
		atomic_store_explicit(&object->serial, serial, memory_order_relaxed);
	}
	return object;
}

struct gmt_spill_object *gmt_spill_object_new(struct gmt_spill_context *context)
{
	struct gmt_spill_object *object = take_object();
	if (!object)
		return NULL;
	memcpy(object->dispatch, context->dispatch, sizeof object->dispatch);
	object->context = context;
	object->root = object;
	atomic_store(&object->references, 1);
	atomic_store(&object->holds, 1);
	return object;
}

void gmt_spill_object_free(struct gmt_spill_object *object)
{
	atomic_store_explicit(&object->serial, 0, memory_order_release);
	gmt_lock(&lock);
	object->ended = NULL;
	if (latest)
		latest->ended = object;
	else
		oldest = object;
	latest = object;
	gmt_unlock(&lock);
}

static _Atomic uint64_t ending, over;

void gmt_spill_count_ending(void)
{
	atomic_fetch_add(&ending, 1);
}

void gmt_spill_count_ended(void)
{
	atomic_fetch_add(&over, 1);
}

bool gmt_spill_has_any_ended(uint64_t *seen)
{
	uint64_t before = *seen;
	*seen = atomic_load(&over);
	return *seen != before || atomic_load(&ending) != *seen;
}

cl_mem gmt_spill_real_handle(cl_mem handle)
{
	const struct gmt_spill_object *object = gmt_spill_find(handle);
	return object ? object->real : handle;
}
