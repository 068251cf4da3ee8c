/*
 * objects.c: what the program holds, by handle. Lookups take no lock: entries are type-stable and chains are
 * followed with a step limit, so a reader that races with a removal at worst misses, and then asks again under the
 * lock. Adding and removing lock one of 64 stripes.
 */
#define _GNU_SOURCE
#include "objects.h"

#include <stdlib.h>
#include <string.h>

/* Entries live as long as the process and hang on atomics, where the analyzer loses sight of them. clang has no such option. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

#define STRIPES 64
#define SLAB 16 /* entries allocated at a time */

struct table {
	_Atomic(struct gmt_object *) *buckets;
	uint32_t mask;
	size_t entry;
	size_t cleared; /* bytes of a new entry that are set to 0 */
	_Atomic uint64_t numbers;
	struct stripe {
		_Atomic uint32_t lock;
		struct gmt_object *free;
		char pad[48];
	} stripe[STRIPES];
};

#define TABLE(name, type, size, clear)                                                                                 \
	static _Atomic(struct gmt_object *) name##_buckets[size];                                                     \
	static struct table name = {                                                                                  \
		.buckets = name##_buckets, .mask = (size)-1, .entry = sizeof(struct type), .cleared = (clear)}

TABLE(contexts, gmt_context, 256, sizeof(struct gmt_context));
TABLE(queues, gmt_queue, 1024, sizeof(struct gmt_object)); /* gmt_queue_recycle does it */
TABLE(kernels, gmt_kernel, 4096, sizeof(struct gmt_kernel));
TABLE(events, gmt_event, 1 << 14, offsetof(struct gmt_event, of.wait)); /* of.waits says what is valid behind */
TABLE(recordings, gmt_recording, 64, sizeof(struct gmt_recording));
TABLE(memories, gmt_memory, 1 << 18, offsetof(struct gmt_memory, uses.use)); /* uses.count says what is valid behind */

static uint32_t hash(const void *handle)
{
	uint64_t h = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

static struct gmt_object *walk(struct table *t, uint32_t bucket, const void *handle, unsigned steps)
{
	struct gmt_object *o = atomic_load_explicit(&t->buckets[bucket], memory_order_acquire);
	while (o && steps--) {
		if (atomic_load_explicit(&o->handle, memory_order_acquire) == handle)
			return o;
		o = atomic_load_explicit(&o->chain, memory_order_acquire);
	}
	return NULL;
}

static struct stripe *stripe_of(struct table *t, uint32_t bucket)
{
	return &t->stripe[bucket % STRIPES];
}

static struct gmt_object *find(struct table *t, const void *handle)
{
	if (!handle)
		return NULL;
	uint32_t bucket = hash(handle) & t->mask;
	struct gmt_object *o = walk(t, bucket, handle, 64);
	if (o || !atomic_load_explicit(&t->buckets[bucket], memory_order_acquire))
		return o;
	gmt_lock(&stripe_of(t, bucket)->lock);
	o = walk(t, bucket, handle, UINT32_MAX);
	gmt_unlock(&stripe_of(t, bucket)->lock);
	return o;
}

/* Both under the stripe's lock. */
static void give_back(struct stripe *stripe, struct gmt_object *o)
{
	atomic_store_explicit(&o->number, 0, memory_order_relaxed);
	atomic_store_explicit(&o->chain, stripe->free, memory_order_relaxed);
	stripe->free = o;
}

static struct gmt_object *take_free(struct table *t, struct stripe *stripe)
{
	if (!stripe->free) {
		char *slab = calloc(SLAB, t->entry);
		for (size_t i = 0; slab && i < SLAB; i++)
			give_back(stripe, (struct gmt_object *)(void *)(slab + i * t->entry));
	}
	struct gmt_object *o = stripe->free;
	if (o)
		stripe->free = atomic_load_explicit(&o->chain, memory_order_relaxed);
	return o;
}

/* Unlinks o when it is in its chain. Under the stripe's lock. */
static bool unlink_object(struct table *t, uint32_t bucket, struct gmt_object *o)
{
	_Atomic(struct gmt_object *) *link = &t->buckets[bucket];
	struct gmt_object *at;
	while ((at = atomic_load_explicit(link, memory_order_relaxed)) && at != o)
		link = &at->chain;
	if (!at)
		return false;
	atomic_store_explicit(link, atomic_load_explicit(&o->chain, memory_order_relaxed), memory_order_release);
	atomic_store_explicit(&o->handle, NULL, memory_order_release);
	return true;
}

/*
 * An entry for a handle that the driver has just returned. An older entry of the same handle was released behind
 * our back and goes. NULL when memory is short: the object is then unknown to us.
 */
static struct gmt_object *add(struct table *t, const void *handle)
{
	if (!handle)
		return NULL;
	uint32_t bucket = hash(handle) & t->mask;
	struct stripe *stripe = stripe_of(t, bucket);
	gmt_lock(&stripe->lock);
	struct gmt_object *o = take_free(t, stripe);
	if (o) {
		memset((char *)o + sizeof *o, 0, t->cleared - sizeof *o);
		uint64_t number = atomic_fetch_add_explicit(&t->numbers, 1, memory_order_relaxed) + 1;
		atomic_store_explicit(&o->number, number, memory_order_relaxed);
		struct gmt_object *first = atomic_load_explicit(&t->buckets[bucket], memory_order_relaxed);
		struct gmt_object *stale = first ? walk(t, bucket, handle, UINT32_MAX) : NULL;
		if (stale && unlink_object(t, bucket, stale))
			first = atomic_load_explicit(&t->buckets[bucket], memory_order_relaxed);
		atomic_store_explicit(&o->chain, first, memory_order_relaxed);
		atomic_store_explicit(&o->handle, handle, memory_order_release);
		atomic_store_explicit(&t->buckets[bucket], o, memory_order_release);
	}
	gmt_unlock(&stripe->lock);
	return o;
}

/* Takes o out of its table, and with recycle gives its memory to the next entry; false: it was not in there. */
static bool take_out(struct table *t, struct gmt_object *o, bool recycle)
{
	const void *handle = atomic_load_explicit(&o->handle, memory_order_acquire);
	if (!handle)
		return false;
	uint32_t bucket = hash(handle) & t->mask;
	struct stripe *stripe = stripe_of(t, bucket);
	gmt_lock(&stripe->lock);
	bool found = unlink_object(t, bucket, o);
	if (found && recycle)
		give_back(stripe, o);
	gmt_unlock(&stripe->lock);
	return found;
}

struct gmt_context *gmt_context_find(cl_context handle)
{
	return (struct gmt_context *)find(&contexts, handle);
}

struct gmt_context *gmt_context_add(cl_context handle)
{
	struct gmt_context *context = (struct gmt_context *)add(&contexts, handle);
	if (context)
		atomic_store(&context->references, 1);
	return context;
}

/* Its memory stays as it is: objects of the context may outlive it and still point here. */
bool gmt_context_remove(struct gmt_context *context)
{
	return take_out(&contexts, &context->object, false);
}

struct gmt_queue *gmt_queue_find(cl_command_queue handle)
{
	return (struct gmt_queue *)find(&queues, handle);
}

struct gmt_queue *gmt_queue_add(cl_command_queue handle)
{
	struct gmt_queue *queue = (struct gmt_queue *)add(&queues, handle);
	if (queue)
		atomic_store(&queue->references, 1);
	return queue;
}

bool gmt_queue_remove(struct gmt_queue *queue)
{
	return take_out(&queues, &queue->object, false);
}

void gmt_queue_recycle(struct gmt_queue *queue)
{
	struct stripe *stripe = stripe_of(&queues, (uint32_t)queue->object.number);
	gmt_lock(&queue->lock); /* see done() in queue.c */
	/* Uses may still point here: they see that the number is another, or at worst a queue that is not done. */
	atomic_store(&queue->object.number, 0);
	atomic_store(&queue->context, NULL);
	atomic_store(&queue->closed, false);
	atomic_store(&queue->enqueued, 0);
	atomic_store(&queue->done, 0);
	atomic_store(&queue->fence, 0);
	atomic_store(&queue->handed, 0);
	for (unsigned i = 0; i < GMT_WINDOW / 64; i++)
		atomic_store(&queue->after[i], 0);
	gmt_unlock(&queue->lock);
	gmt_lock(&stripe->lock);
	give_back(stripe, &queue->object);
	gmt_unlock(&stripe->lock);
}

static void each(struct table *t, void (*visit)(struct gmt_object *, void *), void *arg)
{
	for (uint32_t bucket = 0; bucket <= t->mask; bucket++) {
		if (!atomic_load_explicit(&t->buckets[bucket], memory_order_acquire))
			continue;
		gmt_lock(&stripe_of(t, bucket)->lock);
		struct gmt_object *o = atomic_load(&t->buckets[bucket]);
		for (; o; o = atomic_load(&o->chain))
			visit(o, arg);
		gmt_unlock(&stripe_of(t, bucket)->lock);
	}
}

struct queue_visit {
	void (*visit)(struct gmt_queue *, void *);
	void *arg;
};

static void visit_queue(struct gmt_object *o, void *arg)
{
	struct queue_visit *v = arg;
	v->visit((struct gmt_queue *)o, v->arg);
}

void gmt_queue_each(void (*visit)(struct gmt_queue *, void *), void *arg)
{
	each(&queues, visit_queue, &(struct queue_visit){visit, arg});
}

struct memory_visit {
	void (*visit)(struct gmt_memory *, void *);
	void *arg;
};

static void visit_memory(struct gmt_object *o, void *arg)
{
	struct memory_visit *v = arg;
	v->visit((struct gmt_memory *)o, v->arg);
}

void gmt_memory_each(void (*visit)(struct gmt_memory *, void *), void *arg)
{
	each(&memories, visit_memory, &(struct memory_visit){visit, arg});
}

struct gmt_kernel *gmt_kernel_find(cl_kernel handle)
{
	static __thread struct gmt_kernel *last __attribute__((tls_model("initial-exec")));
	if (gmt_likely(last && handle && atomic_load_explicit(&last->object.handle, memory_order_relaxed) == handle))
		return last;
	struct gmt_kernel *kernel = (struct gmt_kernel *)find(&kernels, handle);
	if (kernel)
		last = kernel;
	return kernel;
}

struct gmt_kernel *gmt_kernel_add(cl_kernel handle, uint32_t arguments)
{
	uint64_t *argument = arguments ? calloc(arguments, sizeof *argument + 1) : NULL;
	if (arguments && !argument)
		return NULL;
	struct gmt_kernel *kernel = (struct gmt_kernel *)add(&kernels, handle);
	if (!kernel) {
		free(argument);
		return NULL;
	}
	kernel->argument = argument;
	kernel->kind = argument ? (uint8_t *)(argument + arguments) : NULL;
	kernel->arguments = arguments;
	atomic_store(&kernel->references, 1);
	return kernel;
}

bool gmt_kernel_remove(struct gmt_kernel *kernel)
{
	uint64_t *argument = kernel->argument;
	if (!take_out(&kernels, &kernel->object, true))
		return false;
	free(argument);
	return true;
}

struct gmt_memory *gmt_memory_find(const void *handle)
{
	return (struct gmt_memory *)find(&memories, handle);
}

struct gmt_memory *gmt_memory_add(const void *handle)
{
	struct gmt_memory *memory = (struct gmt_memory *)add(&memories, handle);
	if (memory) {
		atomic_store_explicit(&memory->references, 1, memory_order_relaxed);
		atomic_store_explicit(&memory->pins, 1, memory_order_relaxed);
	}
	return memory;
}

/* Under the lock that removing takes: an entry that is found keeps its handle and block until it is unlocked. */
struct gmt_memory *gmt_memory_pin(const void *handle, uint64_t block)
{
	uint32_t bucket = hash(handle) & memories.mask;
	struct stripe *stripe = stripe_of(&memories, bucket);
	gmt_lock(&stripe->lock);
	struct gmt_memory *memory = (struct gmt_memory *)walk(&memories, bucket, handle, UINT32_MAX);
	uint32_t pins = memory && memory->block == block ? atomic_load(&memory->pins) : 0;
	while (pins && !atomic_compare_exchange_weak(&memory->pins, &pins, pins + 1))
		;
	gmt_unlock(&stripe->lock);
	return pins ? memory : NULL;
}

/* Under the lock that adding and removing take: no entry is looked at that becomes another's meanwhile. */
bool gmt_memory_waits(const void *handle, uint64_t block)
{
	uint32_t bucket = hash(handle) & memories.mask;
	struct stripe *stripe = stripe_of(&memories, bucket);
	gmt_lock(&stripe->lock);
	const struct gmt_memory *memory = (const struct gmt_memory *)walk(&memories, bucket, handle, UINT32_MAX);
	bool waits = memory && memory->block == block && atomic_load(&memory->idle);
	gmt_unlock(&stripe->lock);
	return waits;
}

void gmt_memory_renew(struct gmt_memory *memory)
{
	uint64_t number = atomic_fetch_add_explicit(&memories.numbers, 1, memory_order_relaxed) + 1;
	atomic_store_explicit(&memory->object.number, number, memory_order_relaxed);
	memory->parent = NULL;
	if (memory->uses.many) /* all of them were over when it became free */
		memory->uses = (struct gmt_uses){0};
	atomic_store_explicit(&memory->ended, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->unfit, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->maps, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->fresh, 1, memory_order_relaxed);
	atomic_store_explicit(&memory->pins, 1, memory_order_relaxed);
	atomic_store_explicit(&memory->references, 1, memory_order_release);
	/* Its uses stay: it may be ordered behind some. */
}

struct gmt_memory *gmt_memory_idle(uint32_t *bucket)
{
	for (; *bucket <= memories.mask; ++*bucket) {
		struct stripe *stripe = stripe_of(&memories, *bucket);
		struct gmt_memory *found = NULL;
		gmt_lock(&stripe->lock);
		struct gmt_object *o = atomic_load(&memories.buckets[*bucket]);
		for (; o && !found; o = atomic_load(&o->chain))
			if (atomic_load(&((struct gmt_memory *)o)->idle))
				found = (struct gmt_memory *)o;
		gmt_unlock(&stripe->lock);
		if (found)
			return found;
	}
	return NULL;
}

bool gmt_memory_remove(struct gmt_memory *memory)
{
	return take_out(&memories, &memory->object, true);
}

struct gmt_event *gmt_event_find(cl_event handle)
{
	return (struct gmt_event *)find(&events, handle);
}

struct gmt_event *gmt_event_add(cl_event handle)
{
	struct gmt_event *event = (struct gmt_event *)add(&events, handle);
	if (event)
		atomic_store_explicit(&event->references, 1, memory_order_relaxed);
	return event;
}

bool gmt_event_remove(struct gmt_event *event)
{
	return take_out(&events, &event->object, true);
}

struct gmt_recording *gmt_recording_find(cl_command_buffer_khr handle)
{
	return (struct gmt_recording *)find(&recordings, handle);
}

struct gmt_recording *gmt_recording_add(cl_command_buffer_khr handle)
{
	struct gmt_recording *recording = (struct gmt_recording *)add(&recordings, handle);
	if (recording)
		atomic_store_explicit(&recording->references, 1, memory_order_relaxed);
	return recording;
}

bool gmt_recording_remove(struct gmt_recording *recording)
{
	return take_out(&recordings, &recording->object, true);
}
