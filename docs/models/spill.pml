/*
 * spill.pml: which objects have memory of the device under --spill (shim/spill: pin.c, residency.c, room.c, evict.c).
 *
 * Four objects, memory for two. Each thread enqueues commands that use two of them. A call pins what it uses, or makes room under
 * the residency lock; from its end on the queued command keeps the objects. The device runs commands later.
 *
 * Claims: a command finds its objects on the device, with their contents; no object leaves that a call or a command uses; calls
 * that wait for each other go on; all commands run.
 *
 * Faults: 1 an object is claimed in two steps; 2 a call pins an object that leaves; 3 a call keeps its pins while it waits; 4 the
 * pins go before the command counts as a use; 5 the contents are saved before the claim.
 */
#define FAULTS  5
#define OBJECTS 4
#define ROOM    2
#define THREADS 2
#ifdef LARGE
#define COMMANDS 4 /* of each thread */
#else
#define COMMANDS 2
#endif

bool real[OBJECTS];      /* has memory of the device */
bool leaving[OBJECTS];
byte pins[OBJECTS];
byte uses[OBJECTS];      /* queued commands */
byte written[OBJECTS];   /* ghost: how often commands have written to it */
byte device[OBJECTS];    /* ghost: the same, as its device memory has it */
byte host[OBJECTS];      /* ghost: as the host's copy has it */
byte taken;              /* of ROOM */
bool residency;          /* the lock of hold.c */
chan queue = [THREADS] of { byte, byte };
byte left = THREADS * COMMANDS;

#define IDLE(o) (real[o] && pins[o] == 0 && uses[o] == 0 && !leaving[o])

/* gmt_spill_pin_now, under the root's lock */
inline pin_now(o, ok)
{
#if FAULT == 2
	atomic { ok = real[o]; if :: ok -> pins[o]++ :: else fi }
#else
	atomic { ok = real[o] && !leaving[o]; if :: ok -> pins[o]++ :: else fi }
#endif
}

/* gmt_spill_evict_one: claim, save, release. ok: memory has become free */
inline evict_one(first, second, v, ok)
{
	atomic {
		v = 0;
		do :: v < OBJECTS && !(IDLE(v) && v != first && v != second) -> v++ :: else -> break od;
		ok = v < OBJECTS
	}
	if
	:: ok ->
#if FAULT == 5
		host[v] = device[v];
#endif
#if FAULT == 1
		leaving[v] = true;
#else
		atomic { ok = IDLE(v); leaving[v] = leaving[v] || ok }
#endif
		if
		:: ok ->
#if FAULT != 5
			host[v] = device[v];
#endif
			atomic { assert(uses[v] == 0 && pins[v] == 0); real[v] = false; leaving[v] = false }
			taken--
		:: else
		fi
	:: else
	fi
}

/* pin_made, under the residency lock. ok: it is pinned */
inline pin_made(o, first, second, v, ok)
{
	pin_now(o, ok);
	do
	:: !ok && taken < ROOM -> taken++; device[o] = host[o]; real[o] = true; pin_now(o, ok) /* make_root */
	:: !ok && taken == ROOM -> evict_one(first, second, v, ok);
		if :: ok -> ok = false :: else -> break fi
	:: ok -> break
	od
}

/* gmt_spill_begin_command, gmt_spill_begin_slowly, gmt_spill_end_command */
active [THREADS] proctype thread()
{
	byte a, b, v, commands = COMMANDS;
	bool ok;
	a = 2 * _pid % OBJECTS; b = a + 1;
	do
	:: commands > 0 ->
		commands--;
		pin_now(a, ok); /* gmt_spill_begin_command */
		if :: ok -> pin_now(b, ok); if :: !ok -> pins[a]-- :: else fi :: else fi;
		do /* gmt_spill_begin_slowly */
		:: ok -> break
		:: !ok ->
			atomic { !residency -> residency = true }
			pin_made(a, a, b, v, ok);
			if
			:: ok -> pin_made(b, a, b, v, ok);
#if FAULT == 3
				do :: !ok -> residency = false; atomic { !residency -> residency = true } pin_made(b, a, b, v, ok) :: else -> break od
#else
				if :: !ok -> pins[a]-- :: else fi
#endif
			:: else
			fi;
			residency = false
		od;
		assert(real[a] && real[b]);
#if FAULT == 4
		queue ! a, b;
		pins[a]--; pins[b]--;
		uses[a]++; uses[b]++
#else
		queue ! a, b; /* the driver's enqueue */
		atomic { uses[a]++; pins[a]-- } /* gmt_spill_end_command, object by object */
		atomic { uses[b]++; pins[b]-- }
#endif
	:: else -> break
	od
}

/* A command of clEnqueueNDRangeKernel reads the first object and writes to both. */
active proctype the_device()
{
	byte a, b;
	do
	:: left > 0 ->
		queue ? a, b;
		atomic {
			assert(real[a] && real[b] && device[a] == written[a] && device[b] == written[b]);
			written[a]++; device[a]++; written[b]++; device[b]++
		}
		uses[a] > 0 && uses[b] > 0; /* its end is looked for once the call has counted it */
		atomic { uses[a]--; uses[b]--; left-- }
	:: else -> break
	od;
	a = 0;
	do :: a < OBJECTS -> assert((real[a] -> device[a] : host[a]) == written[a]); a++ :: else -> break od
}

ltl all_run { <> (left == 0) }
