/*
 * gate.pml: one thread at a time in the core (shim/base/gate.c), and releases that only note their block for the core's next
 * call (note_in_ledger in shim/pool/evict.c; Broker.freeLedgerBlocks in intercept/broker/ledger.go).
 *
 * Each thread takes blocks from the core and gives them back, noted or by a call. A futex is modelled by who sleeps on it.
 *
 * Claims: one thread at a time is in; none sleeps for ever; a block is served to one owner at a time, and only after the core
 * knows that it was released; each decision has the number that the caller computed for it, without a gap.
 *
 * Faults: 1 a thread leaves without a wake; 2 who has slept takes the gate as if no one else slept; 3 a note beyond the room of
 * the ledger; 4 the core decides before it settles; 5 the number of a note is read outside the gate.
 */
#define FAULTS  5
#define THREADS 3
#define BLOCKS  3
#define ROOM    2 /* GMT_LEDGER_SIZE */
#ifdef LARGE
#define CALLS   2
#else
#define CALLS   1
#endif

mtype = { OPEN, TAKEN, AWAITED };
mtype state = OPEN;       /* gmt_gate.state */
bool sleeps[THREADS];
byte inside;              /* ghost: threads through the gate */

byte latest, count;       /* gmt_ledger: number of the latest decision, blocks noted since */
byte freed[ROOM + 1];
byte owner[BLOCKS];       /* ghost: who has a block; 0: no one */
bool cached[BLOCKS];      /* the core may serve it */
byte decisions;           /* ghost: made or noted */

/* gmt_futex_wait */
inline futex_wait() { atomic { if :: state == AWAITED -> sleeps[_pid] = true :: else fi }; !sleeps[_pid] }

/* gmt_futex_wake */
inline futex_wake()
{
	atomic {
		if
		:: sleeps[0] -> sleeps[0] = false
		:: sleeps[1] -> sleeps[1] = false
		:: sleeps[2] -> sleeps[2] = false
		:: else
		fi
	}
}

/* gmt_gate_enter, gmt_gate_wait */
inline enter()
{
	if
	:: atomic { state == OPEN -> state = TAKEN }
	:: true -> /* after LOOKS looks of take_by_spinning */
		do
		:: atomic {
			was = state;
#if FAULT == 2
			if :: was == OPEN -> state = TAKEN :: else -> state = AWAITED fi
#else
			state = AWAITED
#endif
			};
			if :: was == OPEN -> break :: else -> futex_wait() fi
		od
	fi;
	inside++;
	assert(inside == 1)
}

/* gmt_gate_leave */
inline leave()
{
	inside--;
	atomic { was = state; state = OPEN };
#if FAULT != 1
	if :: was == AWAITED -> futex_wake() :: else fi
#endif
}

/* Broker.freeLedgerBlocks */
inline settle()
{
	do
	:: count > 0 ->
		assert(!cached[freed[0]]);
		cached[freed[0]] = true; latest++; count--;
		freed[0] = freed[1]; freed[1] = freed[2]; freed[2] = 0
	:: else -> break
	od
}

/* Broker.Decide */
inline decide() { latest++; decisions++; assert(latest == decisions) }

/* Broker.Decide; gmt_pool_give_block: note_in_ledger, note_or_free_block */
active [THREADS] proctype thread()
{
	mtype was;
	byte b, number, calls = CALLS;
	do
	:: calls > 0 ->
		calls--;
		enter();
		atomic { /* the core; inside says whether another thread can see it */
#if FAULT == 4
			decide(); settle();
#else
			settle(); decide();
#endif
			b = 0;
			do :: b < BLOCKS && !cached[b] && owner[b] != 0 -> b++ :: else -> break od;
			assert(b < BLOCKS);
			cached[b] = false; /* a hit, or a new block of that place */
			assert(owner[b] == 0);
			owner[b] = _pid + 1
		}
		leave();
#if FAULT == 5
		number = latest + count; /* before the gate */
		enter();
#else
		enter();
		number = latest + count;
#endif
		atomic { /* gmt_pool_give_block */
			owner[b] = 0;
			if
#if FAULT == 3
			:: true ->
#else
			:: count < ROOM ->
#endif
				assert(count < ROOM);
				freed[count] = b; count++; decisions++;
				assert(number + 1 == decisions) /* what note_in_ledger returns */
			:: settle(); cached[b] = true; decide()
			fi
		}
		leave()
	:: else -> break
	od
}
