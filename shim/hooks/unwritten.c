/* unwritten.c: see unwritten.h. */
#define _GNU_SOURCE
#include "unwritten.h"

#include "../base/session.h"
#include "../pool/clear.h"
#include "../pool/fresh.h"
#include "../registry/finding.h"

/* Sub-buffers and images never have the effect READS, which would be a mistake: other parts of the block may be written elsewhere. */
enum gmt_effect gmt_unwritten_effect(const struct gmt_memory *memory, uint8_t kind)
{
	cl_mem_flags flags = memory->flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
	if (!flags && memory->parent) /* a sub-buffer inherits the access of its buffer */
		flags = memory->parent->flags;
	if (!memory->parent && kind & GMT_ARGUMENT_READS)
		return GMT_EFFECT_READS;
	return flags & CL_MEM_WRITE_ONLY || kind & GMT_ARGUMENT_WRITES ? GMT_EFFECT_WRITES : GMT_EFFECT_EITHER;
}

/* The mark unwritten stays, because gmt_unwritten_note_use reads it. */
void gmt_unwritten_clear(struct gmt_memory *memory, enum gmt_effect effect, cl_command_queue queue, bool inorder)
{
	bool reads = effect == GMT_EFFECT_READS || effect == GMT_EFFECT_EITHER;
	if (atomic_load_explicit(&memory->exposed, memory_order_relaxed) == GMT_EXPOSED_CLEARED) /* by another argument, or a kernel that failed */
		return;
	if (!reads || gmt_session.config.scrub != GMT_SCRUB_AUTO || gmt_scrubs(memory->context))
		return;
	bool image = memory->kind == GMT_MEMORY_IMAGE;
	cl_mem handle = gmt_memory_handle(memory);
	if (image ? gmt_clear_image(queue, inorder, handle) : gmt_clear_buffer(queue, inorder, handle, memory->size))
		atomic_store_explicit(&memory->exposed, GMT_EXPOSED_CLEARED, memory_order_relaxed);
}

/* Writes at most one finding per owner: it may see the contents of an earlier one. */
void gmt_unwritten_note_use(struct gmt_memory *memory, enum gmt_effect effect, const char *function, uint64_t kernel)
{
	if (effect == GMT_EFFECT_NONE || !atomic_exchange(&memory->unwritten, 0) || effect == GMT_EFFECT_WRITES)
		return;
	bool cleared = atomic_load_explicit(&memory->exposed, memory_order_relaxed) == GMT_EXPOSED_CLEARED;
	if (kernel && memory->context && !gmt_scrubs(memory->context) && !cleared)
		atomic_store_explicit(&memory->exposed, (uint8_t)gmt_fresh_contents(memory->context, memory->granted), memory_order_relaxed);
	bool hidden = memory->context && atomic_load(&memory->context->order.command_buffers); /* a replay may have written it */
	if (effect == GMT_EFFECT_READS && !hidden)
		gmt_finding_kernel(kernel ? GMT_DIAG_STALE_ARGUMENT : GMT_DIAG_STALE_READ, function, memory, kernel);
}
