/*
 * mailbox.pml: messages of the session to the core (internal/wire/mailbox_unsafe.go; listen, obey and expire in
 * intercept/control.go), against requests, a release of a context, and the end of the session (shim/base/idle.c).
 *
 * A message changes a limit, which a request reads in the gate. While nothing comes, the listener gives back what is too old.
 *
 * Claims: each message that was posted is obeyed once, in order, and answered before what it evicts is released; a full mailbox
 * refuses; the listener sleeps only while the mailbox is empty; what is too old goes in the end; the listener is in no driver
 * call while a context is released.
 *
 * Faults: 1 posted passes before the message is there; 2 the listener sleeps without the value that it saw; 3 a slot is free
 * before its message was copied; 4 the listener looks whether it may go on before it says that it is there; 5 a full mailbox
 * takes one more.
 */
#define FAULTS 5
#define SLOTS  2 /* GMT_CONTROLS */
#ifdef LARGE
#define POSTS  4
#else
#define POSTS  3
#endif

byte control[SLOTS];   /* gmtregion.control */
byte posted, taken;    /* gmtregion.posted, gmtregion.taken */
byte asleep;           /* the listener sleeps on posted */
byte limit;            /* set by the latest message */
byte obeyed;           /* ghost: messages */
byte answered;         /* ghost: what the session has read in the ring */
byte sent;             /* ghost: accepted by Post */
bool gate;             /* one at a time, see gate.pml */
bool old = true;       /* the pool has a block that is too old */
byte stopped;          /* of idle.c: threads that keep the listener out */
bool inside;           /* of idle.c */
bool in_driver;        /* ghost: the listener is in a call of the driver for a context */
bool all_posted;

/* Region.PostMessage; the caller wakes the target */
active proctype session()
{
	byte message = 1;
	do
	:: message <= POSTS ->
		if
#if FAULT == 5
		:: (posted - taken) % 256 <= SLOTS ->
#else
		:: (posted - taken) % 256 < SLOTS ->
#endif
#if FAULT == 1
			posted++; control[(posted - 1) % SLOTS] = message;
#else
			control[posted % SLOTS] = message;
			posted++;
#endif
			sent++; asleep = 0; message++
		:: else /* no room: the session tries again later */
		fi
	:: else -> break
	od;
	all_posted = true
}

/* listen */
active proctype listener()
{
	byte message, seen, next;
	do
	:: next != posted -> /* Mailbox.NextMessage */
#if FAULT == 3
		taken = next + 1;
#endif
		message = control[next % SLOTS];
		next++;
#if FAULT != 3
		taken = next;
#endif
		atomic { !gate -> gate = true } /* obey */
		assert(message == obeyed + 1);
		obeyed = message; limit = message;
		gate = false;
		answered = message; /* through the ring */
		assert(answered == obeyed) /* before it releases what was evicted */
	:: next == posted ->
		seen = next;
		/* expire: gmt_idle_begin */
#if FAULT == 4
		if
		:: stopped == 0 -> inside = true;
#else
		inside = true;
		if
		:: stopped == 0 ->
#endif
			atomic { !gate -> gate = true }
			if :: old -> in_driver = true :: else fi;
			gate = false;
			old = false; in_driver = false; /* the driver's release */
			inside = false /* gmt_idle_end */
		:: else -> inside = false; (stopped == 0 || posted != seen) /* it looks again after a while */
		fi;
		/* wait: the kernel compares and sleeps in one step; a time-out ends the sleep while something is old */
#if FAULT == 2
		if :: posted == seen -> asleep = 1 :: else fi;
#else
		atomic { if :: posted == seen -> asleep = 1 :: else fi };
#endif
end:		(!asleep || old); asleep = 0
	od
}

/* A thread of the program: requests, and a context that it releases: clReleaseContext */
active proctype program()
{
	byte now, before;
	byte requests = 2;
	do
	:: requests > 0 ->
		atomic { !gate -> gate = true }
		now = limit;
		assert(now >= before && now == obeyed); /* a message holds from one request to the next */
		before = now;
		gate = false;
		requests--
	:: else -> break
	od;
	stopped++; /* gmt_idle_stop */
	!inside;   /* the code waits a bounded time */
	assert(!in_driver);
	skip;      /* the context's last reference goes */
	assert(!in_driver);
	stopped--  /* gmt_idle_go */
}

ltl all_obeyed { [] (all_posted -> <> (obeyed == sent && answered == sent)) }
ltl old_goes { <> !old }
