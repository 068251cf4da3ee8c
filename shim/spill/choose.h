/* choose.h: which roots have a real object, and which of them could leave. Under the residency lock. */
#ifndef GMT_SPILL_CHOOSE_H
#define GMT_SPILL_CHOOSE_H

#include "request.h"

/* Why something that has memory of the device cannot go to the host now. */
enum gmt_spill_why {
	GMT_SPILL_IDLE, /* it could: the command itself needs it */
	GMT_SPILL_RUNNING,
	GMT_SPILL_CALLED,
	GMT_SPILL_WAITING,
	GMT_SPILL_MAPPED,
	GMT_SPILL_FIXED,
	GMT_SPILL_OTHERS, /* what is not virtual */
	GMT_SPILL_WHYS,
};

/* Bytes for each. */
struct gmt_spill_account {
	uint64_t bytes[GMT_SPILL_WHYS];
};

/*
 * BUSY: commands that complete by themselves use it; HELD: a call does, or that is not certain; STUCK: it may stay for long.
 */
enum gmt_spill_state { GMT_SPILL_IS_IDLE, GMT_SPILL_IS_BUSY, GMT_SPILL_IS_HELD, GMT_SPILL_IS_STUCK };

/* What could leave. */
struct gmt_spill_choice {
	struct gmt_spill_object *root; /* of those that no command uses one whose next use is farthest, or NULL */
	enum gmt_spill_state some;     /* of others: whether they may follow by themselves */
	bool better;                   /* one of them, soon, would be better than root */
};

/* look_again: something may have become idle since the last time. */
struct gmt_spill_choice gmt_spill_choose(const struct gmt_spill_command *command, bool look_again);
/* Under the root's lock. */
enum gmt_spill_state gmt_spill_state_of(const struct gmt_spill_object *root);
void gmt_spill_account(struct gmt_spill_account *account);
/* The list of roots that have a real object. */
void gmt_spill_list_add(struct gmt_spill_object *root);
void gmt_spill_list_remove(struct gmt_spill_object *root);

/* A root of size bytes whose room on the host holds what has changed on the device since; or NULL. */
struct gmt_spill_object *gmt_spill_list_find_stale(size_t size);

#endif
