/*
 * simulate.h: random programs over the whole shim, a fake driver and a fake core, in one thread and with a clock of ours: a seed is
 * a run. A program is a list of steps on numbered places (buffer 3, queue 1). What a step cannot do, because its place is empty,
 * it leaves: so each part of a program is a program.
 */
#ifndef SIMULATE_H
#define SIMULATE_H

#include "../base/dispatch.h"

#include <stdio.h>

#define STEPS_MOST 4096
#define ARGUMENTS 5

/* Names, how often the generator takes them, and a letter for each argument: see pick_argument. */
#define OPERATIONS(X)                                                                                                  \
	X(set, 20, "kv") X(context, 4, "b") X(drop_context, 1, "b") X(queue, 6, "qco") X(drop_queue, 5, "q")           \
	X(buffer, 60, "bcsn") X(part, 8, "bbpl") X(image, 5, "bcww") X(retain, 4, "b") X(release, 60, "b") X(info, 6, "bb") \
	X(destructor, 2, "b") X(fill, 40, "qbrrh") X(write, 15, "qbrrh") X(read, 15, "qbrrh") X(map, 6, "qbrrh")       \
	X(copy, 15, "qbbrh") X(argument, 8, "bb") X(kernel, 15, "qh") X(marker, 3, "qb") X(user, 3, "bcf") X(end, 4, "b") \
	X(wait, 4, "b") X(finish, 2, "q") X(flush, 3, "q") X(shared, 6, "bcs") X(unshare, 6, "bb") X(shared_fill, 6, "qbrh") \
	X(shared_read, 4, "b") X(complete, 30, "qm") X(event, 8, "b")

/* Of the driver and the session, before the first context; from slab on at any time. */
#define KNOB_NAMES(X)                                                                                                  \
	X(scrub) X(memory) X(cap) X(eager) X(clean) X(countobjects) X(countcommands) X(keepsarguments) X(countparts) X(failmarkers) \
	X(quietfailures) X(slab) X(evict) X(noledger) X(deaf) /* the session does not read */                          \
	X(refuse) /* creates in the next step */ X(pass) /* microseconds */ X(message) /* to the Go core: another policy or limit */ \
	X(failcore) /* after that many calls */

#define NAMED_OP(name, weight, arguments) OP_##name,
#define NAMED_KNOB(name) KNOB_##name,
enum operation { OPERATIONS(NAMED_OP) OPERATION_COUNT };
enum knob { KNOB_NAMES(NAMED_KNOB) KNOBS };

/* How a command is made: bits. HOW_USER: the user event that it waits for, 0: none; HOW_CALLS: it calls back, which may create memory. */
enum { HOW_USER = 3, HOW_BLOCKS = 4, HOW_FAILS = 8, HOW_CALLS = 16, HOW_CREATES = 32 };

struct step {
	enum operation operation;
	uint32_t argument[ARGUMENTS];
};

struct program {
	unsigned count;
	struct step step[STEPS_MOST];
};

/* What is known after a step. The log of a run has one for each, and one for the end. */
struct seen {
	int64_t result;
	uint64_t bytes; /* a digest of what it read */
	uint64_t commands, creates, releases, live, budget, events, clock;
};

/* Shared by a run and the process that started it. */
struct report {
	char why[256];
	uintptr_t kind; /* of failure; 0: none */
	unsigned step;  /* which failed */
	uint64_t calls; /* of OpenCL by the program, under the shim */
	struct seen seen[STEPS_MOST + 1];
};

void program_random(struct program *program, uint64_t seed, unsigned steps);
void program_print(const struct program *program, FILE *out);
bool program_parse(struct program *program, FILE *in);

/* Runs a program over the bare driver, and then under the shim, in a process that ends here: with status 1 where the runs differ. */
void run(const struct program *program, struct report *report) __attribute__((noreturn));

/* The run differs from the one over the bare driver, or breaks a rule: it ends. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* --- simulate_session.c --- */

/* The functions that the program calls: the driver's, or the hooks. */
extern struct gmt_functions *cl;
extern uint64_t sim_clock; /* ns */
extern bool sim_watched;   /* the pass under the shim */

/* Starts a pass: over the bare driver, or under a shim with a session; in that, once the knobs are set. */
void session_bare(void);
void session_shim(void);
void session_set(enum knob knob, uint32_t value);
/* After each step under the shim. used: bytes of memory that the program holds. */
void session_check(uint64_t used);
/*
 * Whether a create of bytes that the bare driver serves may fail on a small card: it lacks what rounding and slabs waste in use, and
 * nothing in the pool is idle. From then on the card is large.
 */
bool session_excuses(uint64_t bytes);
/* At the end, when the program holds nothing. */
void session_end(void);
bool session_zeroes(void); /* memory that a create returns */
uint64_t session_budget(void);
uint64_t session_events(void);

#endif
