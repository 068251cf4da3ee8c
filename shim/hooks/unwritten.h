/* unwritten.h: the first use of a recycled block that still has an earlier owner's contents, since no command has written it. */
#ifndef GMT_UNWRITTEN_H
#define GMT_UNWRITTEN_H

#include "../registry/memory.h"

/* Effects of a command on such a block. */
enum gmt_effect {
	GMT_EFFECT_NONE,
	GMT_EFFECT_READS,
	GMT_EFFECT_WRITES,
	GMT_EFFECT_EITHER, /* a kernel may read it or write it */
};

/* The effect of a kernel on memory that is its argument; kind: of the argument, GMT_ARGUMENT_*. */
enum gmt_effect gmt_unwritten_effect(const struct gmt_memory *memory, uint8_t kind);
/*
 * With --scrub auto: clears the block on the queue of a kernel that is about to be enqueued, if the kernel may read it. If that
 * enqueue fails, the caller must exclude the block from reuse.
 */
void gmt_unwritten_clear(struct gmt_memory *memory, enum gmt_effect effect, cl_command_queue queue, bool inorder);
/* Notes a use of the block, the first if unwritten is still set. function: that enqueued the command; kernel: its id, 0: none. */
void gmt_unwritten_note_use(struct gmt_memory *memory, enum gmt_effect effect, const char *function, uint64_t kernel);

#endif
