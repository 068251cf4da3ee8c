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
 * Faults: 1 claim in two steps; 2 POOLED after the core has the block; 3 no gmt_pool_abandon_if_off; 4 a pin goes in two steps;
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

#include "entry.inc"

/* clCreateBuffer, clCreateSubBuffer, clReleaseMemObject */
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

/* clReleaseMemObject of sub-buffers; clRetainMemObject */
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

/* gmt_pooling_stop */
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
