/*
 * inflight.pml: a block that is released while a queued command uses it (shim/order: inflight.c, queue.c, handout.c;
 * flight_state in shim/pool/release.c).
 *
 * Queue a (queue.inc) runs a command on the block, which the program then releases. If a is the context's only queue, and no user event is
 * open, whatever comes next runs behind the command, and the block serves the next create at once: it is handed out. Meanwhile
 * another thread creates queue b, and a third one a user event, for which a later command of a waits.
 *
 * Claims: no two owners' commands on the block run in the wrong order; b does not wait for what waits for the program, so no
 * program ends up waiting for itself; a context with a failed command recycles nothing.
 *
 * Faults: 1 a hand-out looks and notes in two steps, 7 even if it looks again; 2 a new queue counts only after it looked for hand-outs; 3 a new queue puts
 * no marker while a user event is open; 4 a user event counts after it looked for hand-outs; 5 the position of a command is
 * counted before its enqueue; 6 a marker that failed counts as completed; 8 a marker that another
 * one asked for while the user event was coming stays taken for one behind it.
 */
#define FAULTS 8

#include "queue.inc"

#define ORDERS_ALL (queues == 1 && gates == 0)

/* The owner of the block, who releases it (gmt_uses_state, gmt_uses_hand_out), and the next one */
active proctype program()
{
	byte position, position_now;
#if FAULT == 5
	enqueued++; position = enqueued;
	last = 1;
	goto release;
#endif
	atomic { enqueued_there++; last = enqueued_there }
	enqueued++;
	position = enqueued;
release:
	/* clReleaseMemObject: flight_state */
	poll();
	if
	:: done >= position -> cached = !closed
#if FAULT == 1
	:: done < position && ORDERS_ALL -> handed = position; cached = !closed
#elif FAULT == 7
	:: done < position && ORDERS_ALL -> handed = position;
		if :: ORDERS_ALL -> cached = !closed :: else -> cooling = true fi
#else
	:: atomic { done < position && ORDERS_ALL -> handed = position }; cached = !closed /* under the context's lock */
#endif
	:: else -> cooling = true
	fi;
	if
	:: cooling -> /* gmt_cooling_collect of a later create */
		LOCK; add_marker(gates > 0); UNLOCK;
		poll();
		if :: done >= position -> cached = !closed :: else fi :: else
	fi;
#if FAULT == 5
	atomic { enqueued_there++ }
#endif
	taken = cached;
	if /* the next owner's command */
	:: taken && !b_there -> /* on queue a, behind all others */
		atomic { enqueued_there++ } enqueued++
	:: taken && b_there -> /* on queue b */
		if
		:: b_waits == 0 || finished >= b_waits -> assert(!running)
		:: b_waits > 0 && failed /* given up with what it waits for */
		fi;
		b_ended = true
	:: !taken -> b_ended = true
	fi
}

/* Another block cools: gmt_cooling_collect puts markers, which may stand behind a command that waits for the user event. */
active proctype cooling_block()
{
	byte position_now;
	LOCK; add_marker(gates > 0); UNLOCK
}

/* clCreateCommandQueue: gmt_queue_order_behind */
active proctype second_queue()
{
	byte position_now, at;
#if FAULT != 2
	queues++;
#endif
	if
	:: handed > done ->
		poll();
		LOCK;
		if
#if FAULT == 3
		:: handed > done && gates == 0 ->
#else
		:: handed > done ->
#endif
			handed_marker();
			if :: at == 0 -> add_marker(false); handed_marker() :: else fi;
			b_waits = at
		:: else
		fi;
		UNLOCK
	:: else
	fi;
#if FAULT == 2
	queues++;
#endif
	b_there = true
}

/* clCreateUserEvent: gmt_queue_note_gate; then a command that waits for it. The program sets it once b is idle. */
active proctype user_event()
{
	byte position_now, at;
#if FAULT != 4
	gates++;
#endif
	if
	:: handed > done ->
		poll();
		LOCK;
		handed_marker();
		if :: handed > done && at == 0 -> add_marker(false) :: else fi;
		UNLOCK
	:: else
	fi;
#if FAULT == 4
	gates++;
#endif
	atomic { enqueued_there++; waits_for_user = enqueued_there }
	enqueued++;
	b_there && (b_waits == 0 || finished >= b_waits || failed); /* clFinish(b), whose barrier has to end by itself */
	user_set = true;
	gates--
}
