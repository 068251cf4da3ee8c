/* evict.h: the way of objects to host memory. Under the residency lock, except where it says otherwise. */
#ifndef GMT_SPILL_EVICT_H
#define GMT_SPILL_EVICT_H

#include "request.h"

enum gmt_spill_outcome {
	GMT_SPILL_GONE,
	GMT_SPILL_NOTHING,
	GMT_SPILL_LATER, /* something may go after a moment, for which the caller gives up its pins and the lock */
};

/* Of a call that needs room; all 0 at first. */
struct gmt_spill_patience {
	const struct gmt_spill_command *command; /* NULL: none, or it has pins meanwhile */
	uint64_t start, seen;
	unsigned failed;
	bool alone; /* others have come first for long: keep the lock */
	enum gmt_spill_outcome outcome; /* of the last */
};

/* Takes the memory of one object that no command uses, the one whose next use is farthest first. */
enum gmt_spill_outcome gmt_spill_evict_one(struct gmt_spill_patience *patience);
/* The end of a patience without a command. */
void gmt_spill_end_wait(const struct gmt_spill_patience *patience);
/* Releases the real objects of sub-buffers. */
void gmt_spill_release_children(struct gmt_spill_object *root);

#endif
