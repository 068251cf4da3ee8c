/*
 * queue.h: which commands of a queue have completed, as far as --spill must know. A position counts the commands on virtual
 * objects. Nothing is asked before memory is short.
 */
#ifndef GMT_SPILL_QUEUE_H
#define GMT_SPILL_QUEUE_H

#include "../base/dispatch.h"
#include "../registry/object.h"

struct gmt_spill_queue {
	struct gmt_object object;
	_Atomic uint32_t references; /* the program's */
	_Atomic uint64_t enqueued, done;
	_Atomic uint64_t gated; /* commands up to here may wait for the program: for a user event, or in a native kernel */
	_Atomic uint64_t failed; /* up to here they may have failed, see queue.c */
	_Atomic uint64_t doubtful; /* up to here a marker of ours reports the end, which may be behind others that wait for a user event */
	bool ordered;      /* commands run in order, as far as is known */
	cl_event marker;
	uint64_t position; /* all up to here have completed when the marker has */
	bool closed;
	_Atomic uint32_t lock; /* the three before; it stays when the entry is used again */
};

struct gmt_spill_queue *gmt_spill_queue_find(cl_command_queue handle);
/* A command was enqueued; native: it calls the program. Returns its position. */
uint64_t gmt_spill_queue_count(struct gmt_spill_queue *queue, bool native);
/* Whether the command at position has completed, as far as is known. */
bool gmt_spill_queue_over(const struct gmt_spill_queue *queue, uint64_t id, uint64_t position);
/* Puts markers behind what is not known to have completed, flushes all queues, and asks the markers. */
void gmt_spill_queues_poll(void);
/* Whether commands up to position complete without the program. */
bool gmt_spill_queue_goes_on(const struct gmt_spill_queue *queue);
/* Where they may not: whether only user events could hold them back. Commands of which that is not known may not wait for one. */
bool gmt_spill_queue_may_go_on(const struct gmt_spill_queue *queue);
/* Whether its end may be seen only when the program has set a user event, because of commands that are not counted. */
bool gmt_spill_queue_is_doubtful(const struct gmt_spill_queue *queue);
/* Whether a user event was not set yet. */
bool gmt_spill_queues_gated(void);
/* Whether all commands of all queues have completed, as far as is known, also of queues that were released. */
bool gmt_spill_queues_over(void);
/* Whether those that have not complete without the program. */
bool gmt_spill_queues_go_on(void);
void gmt_spill_put_queues(struct gmt_functions *over);

#endif
