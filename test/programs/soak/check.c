/* check.c: what a program can ask about its memory, and calls that must fail: the answers go into the result. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

static uint64_t ask(struct thread *t, const struct slot *slot, cl_mem_info what, size_t size)
{
	uint64_t answer = 0;
	size_t needed = 0;
	MUST(t, clGetMemObjectInfo(slot->mem, what, size, &answer, &needed));
	if (needed != size)
		broken(t, "the answer to query %#x has %zu bytes, not %zu", what, needed, size);
	return answer;
}

static void expect(struct thread *t, const struct slot *slot, cl_mem_info what, size_t size, uint64_t want)
{
	uint64_t got = ask(t, slot, what, size);
	if (got != want)
		broken(t, "query %#x answers %llu, want %llu", what, (unsigned long long)got, (unsigned long long)want);
	observe(t, got);
}

static cl_mem_object_type type_of(const struct slot *slot)
{
	if (is_buffer(slot))
		return CL_MEM_OBJECT_BUFFER;
	return slot->kind == SLOT_IMAGE ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

void op_query(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind == SLOT_EMPTY)
		return;
	expect(t, slot, CL_MEM_TYPE, sizeof(cl_mem_object_type), type_of(slot));
	if (is_buffer(slot))
		expect(t, slot, CL_MEM_SIZE, sizeof(size_t), slot->size);
	observe(t, ask(t, slot, CL_MEM_FLAGS, sizeof(cl_mem_flags)));
	observe(t, ask(t, slot, CL_MEM_SIZE, sizeof(size_t)));
	if (!(slot->flags & CL_MEM_USE_HOST_PTR))
		expect(t, slot, CL_MEM_HOST_PTR, sizeof(void *), 0);
	expect(t, slot, CL_MEM_OFFSET, sizeof(size_t), slot->kind == SLOT_SUB ? slot->offset : 0);
	uint64_t parent = ask(t, slot, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem));
	if ((cl_mem)(uintptr_t)parent != slot->parent)
		broken(t, "the query names another parent");
	if ((cl_context)(uintptr_t)ask(t, slot, CL_MEM_CONTEXT, sizeof(cl_context)) != t->world->context)
		broken(t, "the query names another context");
	/* Commands and parts hold references while they last, and PoCL 3.1 lets go some time after a command's event. */
	uint64_t references = ask(t, slot, CL_MEM_REFERENCE_COUNT, sizeof(cl_uint));
	if (references < slot->extra + 1)
		broken(t, "%llu references, want %u", (unsigned long long)references, slot->extra + 1);
	storage_wait(t, slot->storage);
	if (!slot->storage->unmapped) /* PoCL 3.1 counts down some time after the unmap's event; and counts those of parts */
		observe(t, ask(t, slot, CL_MEM_MAP_COUNT, sizeof(cl_uint)));
}

static cl_int bad_create(struct thread *t, struct slot *slot, size_t way)
{
	cl_int status = CL_SUCCESS;
	cl_mem mem = NULL;
	cl_buffer_region region = {0, slot->size + 4};
	if (way == 0)
		mem = clCreateSubBuffer(slot->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	else if (way == 1)
		mem = clCreateBuffer(t->world->context, CL_MEM_READ_WRITE, 0, NULL, &status);
	else if (way == 2)
		mem = clCreateBuffer(t->world->context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, NULL, &status);
	else
		mem = clCreateBuffer(t->world->context, CL_MEM_COPY_HOST_PTR, 64, NULL, &status);
	if (mem)
		broken(t, "a wrong create succeeded");
	return status;
}

/* A command whose region ends too late, sometimes by one byte, or one that the object's flags forbid, or both. */
static cl_int bad_command(struct thread *t, struct slot *slot, size_t way, cl_command_queue queue, unsigned char *host)
{
	size_t offset = once_in(t, 2) ? slot->size : slot->size - 1, size = 2 + below(t, 16);
	const size_t origin[3] = {offset, 0, 0}, region[3] = {size, 1, 1}, zero[3] = {0};
	cl_int status = CL_SUCCESS;
	switch (way) {
	case 4:
		return clEnqueueReadBuffer(queue, slot->mem, CL_TRUE, offset, size, host, 0, NULL, NULL);
	case 5:
		return clEnqueueWriteBuffer(queue, slot->mem, CL_TRUE, offset, size, host, 0, NULL, NULL);
	case 6:
		return clEnqueueFillBuffer(queue, slot->mem, host, 1, offset, size, 0, NULL, NULL);
	case 7:
		clEnqueueMapBuffer(queue, slot->mem, CL_TRUE, CL_MAP_READ, offset, size, 0, NULL, NULL, &status);
		return status;
	case 8:
		return clEnqueueReadBufferRect(queue, slot->mem, CL_TRUE, origin, zero, region, 0, 0, 0, 0, host, 0, NULL, NULL);
	case 9:
		return clEnqueueFillBuffer(queue, slot->mem, host, 3, 0, 3, 0, NULL, NULL);
	default:
		return clEnqueueCopyBuffer(queue, slot->mem, slot->mem, offset, 0, size, 0, NULL, NULL);
	}
}

void op_bad(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind != SLOT_BUFFER) /* PoCL 3.1 lets commands on sub-buffers reach beyond their ends */
		return;
	unsigned char host[64] = {0};
	size_t way = below(t, 11);
	if (way >= 4)
		gates_open(t);
	cl_int status = way < 4 ? bad_create(t, slot, way) : bad_command(t, slot, way, t->queue[op->queue].handle, host);
	note(t, "wrong call %zu: error %d", way, status);
	observe(t, (uint64_t)(uint32_t)status);
	if (way >= 4 && status == CL_SUCCESS)
		broken(t, "wrong call %zu succeeded", way);
}
