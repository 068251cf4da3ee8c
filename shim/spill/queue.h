/*
 * queue.h: whether a call that needs room may take what a command used, wait for it, or neither, as what holds it back may be
 * the program. A position counts the commands on virtual objects of a queue. Nothing is asked before memory is short. The
 * pool's order/queue.h cannot tell: see docs/RATIONALE.md.
 */
#ifndef GMT_SPILL_QUEUE_H
#define GMT_SPILL_QUEUE_H

#include "../base/dispatch.h"
#include "../registry/object.h"

struct gmt_spill_queue {
	struct gmt_object object;
	_Atomic uint32_t references; /* the program's */
	_Atomic uint64_t enqueued, done;
	_Atomic uint64_t finished; /* up to here a clFinish has returned */
	_Atomic uint64_t held_from, held; /* commands from here to here may wait for a user event */
	_Atomic uint64_t epoch; /* of these events */
	_Atomic uint64_t native; /* up to here they may wait for the program in a native kernel */
	_Atomic uint64_t failed; /* up to here they may have failed, see queue.c */
	bool ordered;      /* commands run in order, as far as is known */
	bool old;          /* its driver is of before OpenCL 1.2 */
	bool hasty;        /* its driver's clFinish may return too early: hooks/hook_sync.c */
	cl_event marker;
	uint64_t position; /* all up to here have completed when the marker has */
	bool closed;
	_Atomic uint32_t lock; /* the three before, held_from and epoch; it stays when the entry is used again */
};

struct gmt_spill_queue *gmt_spill_queue_find(cl_command_queue handle);
/* A command is about to be enqueued that waits for the events of list. */
void gmt_spill_queue_note_gate(cl_command_queue handle, cl_uint waits, const cl_event *list);
/* So is one that calls the program. */
void gmt_spill_queue_note_native(struct gmt_spill_queue *queue);
/* A command was enqueued; native: it calls the program. Returns its position. */
uint64_t gmt_spill_queue_count_command(struct gmt_spill_queue *queue, bool native);
/* Whether the command at position has completed, as far as is known. */
bool gmt_spill_queue_is_over(const struct gmt_spill_queue *queue, uint64_t id, uint64_t position);
/* Puts markers behind what is not known to have completed, flushes all queues, and asks the markers. */
void gmt_spill_queues_poll(void);
/* Whether the command at position completes without the program. */
bool gmt_spill_queue_goes_on(const struct gmt_spill_queue *queue, uint64_t position);
/* Whether nothing but the program could hold it back. */
bool gmt_spill_queue_may_go_on(const struct gmt_spill_queue *queue);
/* Whether all commands of all queues have completed, as far as is known, also of queues that were released. */
bool gmt_spill_queues_over(void);
/* Whether those that have not complete without the program. */
bool gmt_spill_queues_go_on(void);
void gmt_spill_override_queues(struct gmt_functions *over);

#endif
