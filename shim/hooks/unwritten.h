/* unwritten.h: the first use of a recycled block that no command has written, and in which an earlier owner's contents still are. */
#ifndef GMT_UNWRITTEN_H
#define GMT_UNWRITTEN_H

#include "../registry/memory.h"

/* What a command does to memory, as far as it matters to such a block. */
enum gmt_effect {
	GMT_EFFECT_NONE,
	GMT_EFFECT_READS,
	GMT_EFFECT_WRITES,
	GMT_EFFECT_EITHER, /* a kernel may read it or write it */
};

/* Which effect a kernel has on it as an argument; kind: of the argument, GMT_ARGUMENT_*. */
enum gmt_effect gmt_unwritten_effect(const struct gmt_memory *memory, uint8_t kind);
/*
 * With --scrub auto: clears it on the queue of a kernel that is about to be enqueued, if that may read it. The caller gives up
 * reusing what was cleared if the kernel is not enqueued then.
 */
void gmt_unwritten_clear(struct gmt_memory *memory, enum gmt_effect effect, cl_command_queue queue, bool inorder);
/* A command of function has used it, for the first time if unwritten is still set; kernel: its id, 0 if it is none. */
void gmt_unwritten_touch(struct gmt_memory *memory, enum gmt_effect effect, const char *function, uint64_t kernel);

#endif
