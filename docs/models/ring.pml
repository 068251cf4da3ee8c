/*
 * ring.pml: events from the threads of a target to the session, through one ring (shim/base/ring.c; Cursor in
 * internal/wire/region_unsafe.go).
 *
 * A thread owns the ring from its first event until it ends, then another one may. Threads may be cancelled at any step, and
 * the session may die at any step. SLOTS stands for GMT_RING_EVENTS, LOOKS for the time that wait_for_room waits.
 *
 * Claims: the session reads what was written, in order, each once, a pair whole; what did not fit is counted, and only the end
 * of a thread cuts a write off; no thread waits for ever for a session that has died.
 *
 * Faults that spin must find: 1 head passes before the events; 2 one slot too many; 3 a wait without an end; 4 the pair in
 * two steps; 5 tail passes before the events are copied.
 */
#define FAULTS  5
#define SLOTS   3
#define WRITES  3 /* of each thread */
#define THREADS 2
#define LOOKS   2

byte slot[SLOTS];       /* gmtring.events: the number of a write; bit 7: the second of a pair follows */
byte head, tail;        /* gmtring.head, gmtring.tail */
byte lost;              /* gmtring.lost */
byte owner;             /* gmtring.owner */
bool stalled;           /* as in ring.c */
byte writes;            /* numbers the writes */
byte cut;               /* writes that a cancelled thread had begun */
byte ended;             /* threads */
bool gone;              /* the session has died */
chan sent = [7] of { byte }; /* what head has passed, and the session has not read */

/* publish_event, gmt_ring_write_pair */
inline publish(number, slots)
{
#if FAULT == 1
	atomic { w_head = w_head + slots; head = w_head; sent ! number; if :: slots == 2 -> sent ! number :: else fi }
	slot[(w_head - slots) % SLOTS] = number;
	if :: slots == 2 -> slot[(w_head - 1) % SLOTS] = number :: else fi
#else
	slot[w_head % SLOTS] = number;
	w_head++;
#if FAULT == 4
	atomic { head = w_head; sent ! number }
	if :: slots == 2 -> slot[w_head % SLOTS] = number; w_head++; atomic { head = w_head; begun = false; sent ! number } :: else fi
#else
	if :: slots == 2 -> slot[w_head % SLOTS] = number; w_head++ :: else fi
	atomic { head = w_head; begun = false; sent ! number; if :: slots == 2 -> sent ! number :: else fi }
#endif
#endif
}

#if FAULT == 2
#define ROOM(slots) (w_head - w_tail + slots <= SLOTS + 1)
#else
#define ROOM(slots) (w_head - w_tail + slots <= SLOTS)
#endif

/* reserve_slots, read_tail, wait_for_room: fits says whether there is room */
inline reserve(slots)
{
	fits = ROOM(slots);
	if
	:: fits
	:: else ->
		atomic { if :: w_tail != tail -> stalled = false :: else fi; w_tail = tail }
		fits = ROOM(slots);
		looks = 0;
		do
#if FAULT == 3
		:: !fits -> atomic { (tail != w_tail); w_tail = tail }; fits = ROOM(slots)
#else
		:: !fits && !stalled && looks < LOOKS -> w_tail = tail; fits = ROOM(slots); looks++
		:: !fits && !stalled && looks == LOOKS -> stalled = true
#endif
		:: else -> break
		od
	fi
}

/* write_event, gmt_ring_write_pair */
active [THREADS] proctype thread()
{
	byte w_head, w_tail, number, looks, left = WRITES, slots;
	bool fits, begun;
	{
		atomic { owner == 0 -> owner = _pid + 1 } /* claim_ring; without a free ring, threads share one under a lock */
		w_head = head; w_tail = tail;
		do
		:: left > 0 ->
			atomic {
				left--; writes++; begun = true;
				if :: slots = 1; number = writes :: slots = 2; number = writes + 128 fi
			}
			reserve(slots);
			if
			:: fits -> publish(number, slots)
			:: else -> atomic { lost++; begun = false }
			fi
		:: else -> break
		od
	} unless {
		atomic { owner == _pid + 1 && left == 0 -> skip } /* cancelled, at any step of the last write */
	}
	atomic { cut = cut + begun; owner = 0; ended++ } /* release_thread_ring */
}

/* Cursor.Next and Release. The session reads on after the program has ended. */
active proctype session()
{
	byte next, seen, got, wants, read;
	{
		do
		:: seen = head;
			assert(seen - next <= SLOTS); /* else the ring is broken, and is never read again */
			do
			:: next < seen ->
#if FAULT == 5
				tail = next + 1;
#endif
				got = slot[next % SLOTS];
				atomic {
					sent ? wants;
					assert(got == wants);
					assert(got < 128 || seen - next >= 2); /* readPayload */
				}
				if
				:: got >= 128 -> next++; atomic { sent ? wants; assert(slot[next % SLOTS] == got) }
				:: else
				fi;
				next++; read++
			:: else -> break
			od;
			tail = next
		:: ended == THREADS && next == head -> break
		od
	} unless { gone }
	assert(gone || (empty(sent) && read + lost + cut == writes))
}

/* The session is killed: no code of ours. */
active proctype death()
{
	if :: gone = true :: true fi
}

ltl ends { <> (ended == THREADS) }
