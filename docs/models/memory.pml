/*
 * memory.pml: the states of a memory object that is a whole block (shim/registry/memory.h; pool/release.c, evict.c,
 * references.c, pool.c), from its create to the driver's release.
 *
 * Two threads create and release, and may leave a sub-buffer that a third one releases, perhaps after it revived the buffer. A
 * fourth ends pooling at any moment. The core keeps a released block or evicts it, as it likes. The driver gives a handle again
 * as soon as it is free. Calls of the core are atomic, because of the gate (gate.pml).
 *
 * Claims: no block has two owners; no driver object is released twice, or while someone owns it; in the end each one is
 * cached, known to the core and to the registry, or released, and the budget has what is left.
 *
 * Faults: 1 claim in two steps; 2 POOLED after the core has the block; 3 no gmt_pool_recheck; 4 a pin goes in two steps;
 * 5 a revival without a pin of its own; 6 the bytes of an entry stay in the budget if its handle came back before it had left.
 */
#define FAULTS  6
#ifdef LARGE
#define ROUNDS  2 /* creates of a thread */
#else
#define ROUNDS  1
#endif
#define HANDLES 3
#define MOST    (ROUNDS * 2 + 1) /* blocks, entries: one more than are made */

mtype = { UNKNOWN, IN_USE, CACHED, GONE }; /* a block, for the core */
mtype core[MOST] = UNKNOWN;
byte handle_of[MOST];                      /* broker.held */
byte blocks = 1, entries = 1;              /* the next number; 0 is none */
bool pooling = true;                       /* gmt_session.pooling */
byte budget;                               /* entries that count in it */

byte listed[HANDLES];                      /* the registry: the entry of a handle */
byte handle[MOST], block[MOST], references[MOST], pins[MOST];
bool pooled[MOST], once[MOST];             /* once: released_once */
byte alive[HANDLES];                       /* the driver's references */
bool owned[HANDLES];                       /* by the program */
byte over;                                 /* threads that have ended */
chan subs = [2] of { byte };

/* clReleaseMemObject of the driver */
inline driver_release(e) { atomic { assert(alive[handle[e]] > 0 && (alive[handle[e]] > 1 || !owned[handle[e]])); alive[handle[e]]-- } }

/* gmt_memory_unregister */
inline unregister(e)
{
#if FAULT == 6
	atomic { if :: listed[handle[e]] == e -> listed[handle[e]] = 0; budget-- :: else fi }
#else
	atomic { if :: listed[handle[e]] == e -> listed[handle[e]] = 0 :: else fi; budget-- }
#endif
}

/* to_driver, gmt_evict_block */
inline leave(e)
{
	unregister(e); driver_release(e)
}

/* gmt_memory_find and gmt_memory_claim */
inline claim(h, e, ok)
{
	e = listed[h];
#if FAULT == 1
	ok = e != 0 && pooled[e];
	pooled[e] = false
#else
	atomic { ok = e != 0 && pooled[e]; pooled[e] = false }
#endif
}

/* abandon_all: what is POOLED goes to the driver */
inline abandon_all(h, e, ok)
{
	h = 0;
	do
	:: atomic { /* gmt_memory_next_pooled */
		do :: h < HANDLES && !(listed[h] && pooled[listed[h]]) -> h++ :: else -> break od;
		if :: h == HANDLES -> h = 0; e = 0; break :: else fi }
		claim(h, e, ok); if :: ok -> leave(e) :: else fi
	od
}

/* to_pool of release.c and the way back in hit of pool.c: POOLED, the core's decision, its evictions, gmt_pool_recheck */
inline to_pool(e, h, ok)
{
#if FAULT != 2
	pooled[e] = true;
#endif
	atomic { if :: core[block[e]] = CACHED; ok = false :: core[block[e]] = GONE; ok = true; h = handle[e] fi }
#if FAULT == 2
	pooled[e] = true;
#endif
	if :: ok -> claim(h, e, ok); if :: ok -> leave(e) :: else fi :: else fi; /* gmt_evict_all */
#if FAULT != 3
	if :: !pooling -> abandon_all(h, e, ok) :: else fi
#else
	skip
#endif
}

/* let_go and gmt_release_memory; gone */
inline let_go(e, h, ok) { if :: block[e] != 0 && pooling -> to_pool(e, h, ok) :: else -> leave(e) fi }
inline last_pin(e, h, ok)
{
#if FAULT == 4
	h = pins[e]; pins[e] = h - 1; ok = h == 1;
#else
	atomic { ok = pins[e] == 1; pins[e]-- }
#endif
	if
	:: ok && block[e] != 0 -> let_go(e, h, ok)
	:: ok && block[e] == 0 -> unregister(e)
	:: else
	fi
}

/* release_memory, gmt_references_end */
inline release(e, h, ok)
{
	atomic { references[e]--; owned[handle[e]] = false };
	atomic { ok = once[e]; once[e] = true };
	if
	:: !ok && pins[e] == 1 -> let_go(e, h, ok)
	:: else ->
		if :: ok || block[e] == 0 -> driver_release(e) :: else fi;
		last_pin(e, h, ok)
	fi
}

/* gmt_memory_renew; gmt_memory_add, which takes an older entry of that handle away */
inline own(e, b) { assert(!owned[handle[e]]); owned[handle[e]] = true; once[e] = false; pins[e] = 1; references[e] = 1; block[e] = b }

active [2] proctype thread()
{
	byte h, b, e, rounds = ROUNDS;
	bool ok, hit;
	do
	:: rounds > 0 ->
		atomic { rounds--; ok = false; hit = false; b = 0; e = 0 }
		if
		:: pooling ->
			atomic { /* gmt_core_plan */
				b = 1;
				do :: b < blocks && core[b] != CACHED -> b++ :: else -> break od;
				if :: b < blocks -> hit = true; h = handle_of[b] :: else -> blocks++ fi;
				core[b] = IN_USE
			}
			if
			:: hit -> claim(h, e, ok);
				if
				:: ok -> atomic { own(e, b) }
				:: ok -> to_pool(e, h, ok); ok = false; b = 0 /* prepare failed */
				:: !ok -> b = 0
				fi
			:: else
			fi
		:: else
		fi;
		if
		:: !ok -> /* miss, direct */
			atomic { h = 0; do :: alive[h] > 0 -> h++ :: else -> break od; alive[h] = 1 }
			atomic { if :: b != 0 -> handle_of[b] = h :: else fi } /* gmt_core_commit */
			atomic { e = entries; entries++; handle[e] = h; listed[h] = e; budget++; own(e, b) }
		:: else
		fi;
		atomic { if :: _pid == 0 -> pins[e]++; alive[handle[e]]++; subs ! e :: true fi } /* clCreateSubBuffer */
		release(e, h, ok)
	:: else -> break
	od;
	over++
}

active proctype sub_buffers()
{
	byte e, h;
	bool ok;
	do
	:: subs ? e ->
		if
		:: references[e] == 0 -> /* clRetainMemObject of a buffer that is PINNED */
			atomic { alive[handle[e]]++; owned[handle[e]] = true }
			references[e]++;
#if FAULT != 5
			pins[e]++;
#endif
			driver_release(e); last_pin(e, h, ok); /* the sub-buffer goes first */
			release(e, h, ok)
		:: true -> driver_release(e); last_pin(e, h, ok)
		fi
	:: over == 2 && empty(subs) -> break
	od;
	over++
}

active proctype ends_pooling()
{
	byte h, e;
	bool ok;
	if :: pooling = false; abandon_all(h, e, ok) :: true fi;
	over == 3;
	do
	:: h < HANDLES ->
		e = listed[h];
		assert(!owned[h]);
		assert(alive[h] == 0 || (pooling && e && pooled[e] && core[block[e]] == CACHED && handle_of[block[e]] == h));
		budget = budget - alive[h]; h++
	:: else -> break
	od;
	assert(budget == 0)
}
