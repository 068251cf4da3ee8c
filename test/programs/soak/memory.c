/* memory.c: memory objects: created in every way, shared, handed over, and released by any thread at any time. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

/* Host memory that a buffer uses; it stays until the buffer is gone for certain. */
struct hostmemory {
	struct hostmemory *next;
	void *bytes;
	cl_context context; /* of shared virtual memory, else NULL */
};

bool is_buffer(const struct slot *slot) { return slot->kind == SLOT_BUFFER || slot->kind == SLOT_SUB; }
bool is_image(const struct slot *slot) { return slot->kind == SLOT_IMAGE || slot->kind == SLOT_TEXELS; }
bool host_reads(const struct slot *slot) { return !(slot->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)); }
bool host_writes(const struct slot *slot) { return !(slot->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)); }

struct storage *storage_new(size_t size)
{
	struct storage *storage = allocate(sizeof *storage);
	*storage = (struct storage){.size = size, .mirror = allocate(size)};
	return storage;
}

void storage_drop(struct thread *t, struct storage *storage)
{
	if (--storage->refs > 0)
		return;
	if (storage->last)
		MUST(t, clReleaseEvent(storage->last));
	free(storage->mirror);
	free(storage);
}

void slot_place(struct thread *t, struct slot *slot, enum slot_kind kind, cl_mem mem, struct storage *storage)
{
	storage->refs++;
	*slot = (struct slot){.kind = kind, .mem = mem, .storage = storage, .size = storage->size, .serial = ++t->serial};
}

/*
 * Whether a slot may go while the program still has it mapped: no later reader may miss what it wrote. One with destructor
 * callbacks may not, nor a part of it: PoCL 3.1 never calls them then.
 */
static bool may_abandon(const struct storage *storage)
{
	if (storage->destructors)
		return false;
	for (unsigned i = 0; i < storage->maps; i++)
		if (storage->map[i].writes && storage->refs > 1)
			return false;
	return true;
}

cl_mem slot_take(struct thread *t, struct slot *slot)
{
	cl_mem mem = slot->mem;
	if (may_abandon(slot->storage) && once_in(t, 2))
		maps_abandon(slot->storage, mem);
	else
		maps_end(t, slot->storage, mem, &t->queue[0]);
	storage_drop(t, slot->storage);
	*slot = (struct slot){0};
	return mem;
}

void slot_release(struct thread *t, struct slot *slot)
{
	if (slot->kind == SLOT_EMPTY)
		return;
	unsigned references = slot->extra + 1;
	cl_mem mem = slot_take(t, slot);
	while (references-- > 0)
		MUST(t, clReleaseMemObject(mem));
}

/* --- create */

static size_t size_draw(struct thread *t)
{
	size_t class = t->classes[below(t, 3)], size = class;
	if (once_in(t, 2) && class > 64)
		size -= below(t, class / 8);
	if (!once_in(t, 8))
		size &= ~(size_t)3;
	return size;
}

static cl_mem_flags flags_draw(struct thread *t)
{
	static const cl_mem_flags device[] = {CL_MEM_READ_WRITE, CL_MEM_READ_WRITE, CL_MEM_READ_WRITE, 0,
					      CL_MEM_READ_WRITE, CL_MEM_READ_ONLY,  CL_MEM_WRITE_ONLY};
	static const cl_mem_flags host[] = {0, 0, 0, 0, 0, 0, 0, 0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
	static const cl_mem_flags storage[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, CL_MEM_ALLOC_HOST_PTR, CL_MEM_COPY_HOST_PTR,
					       CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR};
	if (once_in(t, 2)) /* a pool only reuses what has the same flags */
		return CL_MEM_READ_WRITE;
	return device[below(t, sizeof device / sizeof device[0])] | host[below(t, sizeof host / sizeof host[0])] |
	       storage[below(t, sizeof storage / sizeof storage[0])];
}

static void *hostmemory_new(struct thread *t, const unsigned char *contents, size_t size)
{
	struct hostmemory *memory = allocate(sizeof *memory);
	*memory = (struct hostmemory){.next = t->hostmemory};
	if (t->style->svm && once_in(t, 2)) {
		memory->context = t->world->context;
		memory->bytes = svm_alloc(t->world, size);
		MUST(t, clRetainContext(memory->context));
	} else if (posix_memalign(&memory->bytes, 4096, size) != 0) {
		broken(t, "out of memory");
	}
	memcpy(memory->bytes, contents, size);
	t->hostmemory = memory;
	return memory->bytes;
}

void hostmemory_free(struct thread *t)
{
	while (t->hostmemory) {
		struct hostmemory *memory = t->hostmemory;
		t->hostmemory = memory->next;
		if (memory->context) {
			clSVMFree(memory->context, memory->bytes);
			MUST(t, clReleaseContext(memory->context));
		} else {
			free(memory->bytes);
		}
		free(memory);
	}
}

void slot_create(struct thread *t, struct slot *slot, size_t size, cl_mem_flags flags)
{
	struct storage *storage = storage_new(size);
	void *host = NULL;
	if (flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)) {
		fill_random(storage->mirror, size, draw(&t->random));
		storage->defined = size;
		host = flags & CL_MEM_USE_HOST_PTR ? hostmemory_new(t, storage->mirror, size) : storage->mirror;
	}
	cl_int status;
	cl_mem mem = once_in(t, 6) && t->style->modern ? clCreateBufferWithProperties(t->world->context, NULL, flags, size, host, &status)
				   : clCreateBuffer(t->world->context, flags, size, host, &status);
	MUST(t, status);
	note(t, "%zu bytes, flags %#llx", size, (unsigned long long)flags);
	slot_place(t, slot, SLOT_BUFFER, mem, storage);
	slot->flags = flags;
}

void op_create(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	slot_release(t, slot);
	size_t size = size_draw(t);
	slot_create(t, slot, size, flags_draw(t));
}

void op_sub(struct thread *t, const struct op *op)
{
	struct slot *parent = &t->slot[op->a], *slot = &t->slot[op->b];
	size_t align = t->world->align;
	if (parent->kind != SLOT_BUFFER || parent == slot || parent->size <= align)
		return;
	slot_release(t, slot);
	define(t, parent, &t->queue[op->queue]); /* contents are known from the start, without holes */
	cl_buffer_region region = {.origin = below(t, parent->size / align) * align};
	region.size = 1 + below(t, parent->size - region.origin);
	if (region.size > 4)
		region.size &= ~(size_t)3;
	cl_int status;
	cl_mem mem = clCreateSubBuffer(parent->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	MUST(t, status);
	note(t, "sub-buffer at %zu of %zu bytes", region.origin, region.size);
	slot_place(t, slot, SLOT_SUB, mem, parent->storage);
	slot->flags = parent->flags; /* all inherited */
	slot->parent = parent->mem;
	slot->offset = region.origin;
	slot->size = region.size;
}

/* --- release */

void op_release(struct thread *t, const struct op *op)
{
	slot_release(t, &t->slot[op->a]);
}

void op_retain(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind == SLOT_EMPTY)
		return;
	bool less = slot->extra == 3 || once_in(t, 3);
	if (!less || slot->extra == 0) {
		MUST(t, clRetainMemObject(slot->mem));
		slot->extra++;
	}
	if (less) {
		MUST(t, clReleaseMemObject(slot->mem));
		slot->extra--;
	}
}

/* What one thread leaves for any to release. */
static struct {
	pthread_mutex_t mutex;
	cl_mem mem[1024];
	unsigned count;
} mailbox = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void op_handoff(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind == SLOT_EMPTY)
		return;
	unsigned references = slot->extra + 1;
	cl_mem mem = slot_take(t, slot);
	pthread_mutex_lock(&mailbox.mutex);
	for (; references > 0 && mailbox.count < sizeof mailbox.mem / sizeof mailbox.mem[0]; references--)
		mailbox.mem[mailbox.count++] = mem;
	pthread_mutex_unlock(&mailbox.mutex);
	for (; references > 0; references--)
		MUST(t, clReleaseMemObject(mem));
}

void mailbox_empty(void)
{
	for (;;) {
		pthread_mutex_lock(&mailbox.mutex);
		cl_mem mem = mailbox.count > 0 ? mailbox.mem[--mailbox.count] : NULL;
		pthread_mutex_unlock(&mailbox.mutex);
		if (!mem)
			return;
		CHECK(clReleaseMemObject(mem));
	}
}

void op_reap(struct thread *t, const struct op *op)
{
	(void)t;
	(void)op;
	mailbox_empty();
}
