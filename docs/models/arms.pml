/*
 * arms.pml: an experiment in a running program (allocator/arms.go; intercept/broker/control.go).
 *
 * The session schedules turns by the number of a request, from the latest count that it has heard of. Threads request blocks and give
 * them back, some while commands still use them. The experiment ends at any moment. What the core does is one step, because of the
 * gate (gate.pml).
 *
 * Claims: a request is decided by the arm whose turn it is, by the recorded schedule alone, so that a replay decides alike; a block
 * serves and returns to the arm that made it; after the end no block of the alternative serves again, and none is left in the end.
 *
 * Faults: 1 a turn that comes too late is taken; 2 a block goes back to the active arm; 3 the end leaves the alternative active; 4 a
 * block that returns after the end stays cached; 5 a turn holds for the request before it.
 */
#define FAULTS 5
#define BLOCKS 3
#ifdef LARGE
#define REQUESTS 3 /* of each thread */
#else
#define REQUESTS 2
#endif

byte active_arm;               /* Arms.active: 0 the present configuration, 1 the alternative */
bool running = true;           /* Arms.running */
byte requests;                 /* Arms.requests */
byte turn_arm, turn_from;      /* Arms.turns, at most one; from 0: none */
bool cached[BLOCKS], made[BLOCKS];
byte arm_of[BLOCKS];           /* Block.Arm */
byte maker[BLOCKS], owner[BLOCKS]; /* ghosts */
byte schedule[8];              /* ghost: the arm of each request by what was acknowledged; 2: not said */
byte heard;                    /* the count that the session knows */
byte over;

/* Arms.LetArmDecideFrom: refused if it has begun */
inline take_turns(arm, from)
{
	atomic {
		if
#if FAULT == 1
		:: running ->
#else
		:: running && from > requests && turn_from == 0 ->
#endif
			turn_arm = arm; turn_from = from; schedule[from] = arm
		:: else
		fi
	}
}

/* Arms.End: cached blocks of the alternative go, the others when they come back */
inline end_experiment()
{
	atomic {
		running = false; turn_from = 0;
#if FAULT != 3
		active_arm = 0;
#endif
		b = 0;
		do :: b < BLOCKS -> if :: cached[b] && arm_of[b] == 1 -> cached[b] = false; made[b] = false :: else fi; b++ :: else -> break od
	}
}

/* The session schedules with obeyTurnMessage and ends with Broker.obeyExperimentMessage. */
active proctype session()
{
	byte b, turns = 2;
	do
	:: turns > 0 -> turns--; heard = requests; take_turns(1 - (turns % 2), heard + 2)
	:: turns > 0 -> heard = requests
	:: break
	od;
	end_experiment()
}

/* Arms.DecideInto, Arms.activateArmForRequest, Arms.Free */
active [2] proctype thread()
{
	byte b, left = REQUESTS;
	do
	:: left > 0 ->
		left--;
		atomic { /* Arms.DecideInto */
			requests++;
#if FAULT == 5
			if :: turn_from != 0 && turn_from <= requests + 1 -> active_arm = turn_arm; turn_from = 0 :: else fi;
#else
			if :: turn_from != 0 && turn_from <= requests -> active_arm = turn_arm; turn_from = 0 :: else fi;
#endif
			assert(running || active_arm == 0);
			assert(schedule[requests] == 0 || !running || active_arm == 1); /* schedule: 1 where the alternative was promised */
			assert(active_arm == 0 || schedule[requests] == 1 || requests > 1 && schedule[requests - 1] == 1);
			if :: active_arm == 1 -> schedule[requests] = 1 :: else fi; /* a turn lasts until the next one */
			b = 0;
			do :: b < BLOCKS && !(cached[b] && arm_of[b] == active_arm) -> b++ :: else -> break od;
			if
			:: b == BLOCKS -> /* a miss: a new block of the active arm */
				b = 0;
				do :: b < BLOCKS && made[b] -> b++ :: else -> break od;
				if :: b == BLOCKS -> b = 0; do :: b < BLOCKS && !cached[b] -> b++ :: else -> break od :: else fi; /* evicts the other arm's */
				assert(b < BLOCKS);
				arm_of[b] = active_arm; maker[b] = active_arm; made[b] = true
			:: else
			fi;
			assert(owner[b] == 0 && maker[b] == active_arm && (active_arm == 0 || running));
			cached[b] = false; owner[b] = _pid
		}
		atomic { /* Arms.Free */
			owner[b] = 0;
#if FAULT == 2
			arm_of[b] = active_arm;
#endif
#if FAULT == 4
			cached[b] = true
#else
			if :: arm_of[b] == 1 && !running -> made[b] = false :: else -> cached[b] = true fi
#endif
		}
	:: else -> break
	od;
	over++
}

/* What Arms.End and Arms.Free have left */
active proctype afterwards()
{
	byte b;
	over == 2 && !running;
	do
	:: b < BLOCKS -> assert(!(made[b] && arm_of[b] == 1)); b++
	:: else -> break
	od
}
