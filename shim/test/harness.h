/*
 * harness.h: plays gpumemtop's session for the tests, and runs each test in a process of its own, because the shim
 * keeps state per process.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void test_add(const char *name, void (*run)(void));
#define TEST(name)                                                                                                     \
	static void name(void);                                                                                        \
	__attribute__((constructor)) static void name##_added(void)                                                    \
	{                                                                                                              \
		test_add(#name, name);                                                                                 \
	}                                                                                                              \
	static void name(void)

void test_fail(const char *file, int line, const char *what, long long got, long long want) __attribute__((noreturn));
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			test_fail(__FILE__, __LINE__, #condition, 0, 1);                                               \
	} while (0)
#define EQUAL(got, want)                                                                                               \
	do {                                                                                                           \
		long long test_got = (long long)(got), test_want = (long long)(want);                                  \
		if (test_got != test_want)                                                                             \
			test_fail(__FILE__, __LINE__, #got, test_got, test_want);                                      \
	} while (0)
#define OK(call) EQUAL(call, CL_SUCCESS)

struct options {
	bool observe;      /* no pooling */
	bool nouses;       /* no USE and SYNC events */
	bool asked;        /* GMT_USES_ASKED */
	bool nosocket;     /* no listener */
	bool otherversion; /* of the config */
	bool ungated;      /* blocks are handed out while in use */
	uint32_t tagmode;
	uint32_t waitms;
	bool eager;            /* --eager */
	uint32_t scrub;        /* enum gmtscrub */
	uint64_t devicememory; /* bytes */
	bool spill;            /* virtual objects; no pooling */
	uint64_t answerfree;   /* 1: of the query for free memory */
	uint32_t transfers;    /* enum gmttransfers */
	bool neighbours;       /* the session asks other programs for memory */
};

/* Writes the config, listens, and sets the environment: before the first OpenCL call. */
void session_open(struct options options);
/* Accepts when a target has connected, then takes what is in the rings. False: no target has connected. */
bool session_read(void);
/* Asks for USE and SYNC events, or for none. */
void session_ask_uses(uint32_t wanted);
/* What the target shares, once it has connected. */
struct gmtregion *session_region(void);
/* session_read from a thread, until session_stop. */
void session_start(void);
void session_stop(void);
/* Closes the connection, as the kernel does for a session that was killed. */
void session_die(void);
/* What the rings count. */
struct ring_totals {
	uint64_t events, lost, lostuses, waits;
	unsigned used; /* rings that anything was written to */
	unsigned announced;
};
struct ring_totals session_totals(void);

/* Whether a thread of the test waits for something; false before there is one. */
bool sleeps(pid_t thread);

/* All of these read first. */
size_t events(enum gmtkind kind);
/* The last event of a kind; an empty one when there is none. That a call failed does not count. */
struct gmtevent last_event(enum gmtkind kind);
/* The event of any kind with that many behind it. */
struct gmtevent event_before(size_t behind);
/* The text of the last event of a kind, or the first; "" when there is none. */
const char *last_text(enum gmtkind kind);
const char *first_text(enum gmtkind kind);
size_t diags(enum gmtdiag code);
/* Checks that the last report of a failed call is of this one, with its call site. */
void last_call_failed(const char *function, cl_int status);
/* What the OBJECT events of a type say now, and in how many call sites. */
struct held {
	uint64_t created, released, most, untracked;
	unsigned sites;
};
struct held held_now(enum gmtheld type);
/* CREATE or RELEASE events with that outcome. */
size_t outcomes(enum gmtkind kind, enum gmtoutcome outcome);

/* The path of a file beside the test program, in a buffer that the next call uses again. */
const char *path_beside(const char *name);

/* A function of an extension, asked for as programs do. */
#define EXTENSION(name)                                                                                                \
	name##_fn name;                                                                                                \
	do {                                                                                                           \
		void *address = clGetExtensionFunctionAddress(#name);                                                  \
		CHECK(address);                                                                                        \
		memcpy(&name, &address, sizeof address);                                                               \
	} while (0)

#define UNORDERED CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE

/* The usual start: a session, a context, an in-order queue. */
struct world {
	cl_context context;
	cl_command_queue queue;
};
extern struct world world;
void begin(struct options options);
cl_context new_context(void);
cl_command_queue new_queue(cl_context context, cl_command_queue_properties properties);
/* A read-write buffer in world.context, marked as handed out to a new owner. */
cl_mem new_buffer(size_t size);
/* The last release of a buffer, and what became of its memory. */
enum gmtoutcome release(cl_mem buffer);
/* A new buffer of 100 bytes that a command on queue uses. */
cl_mem new_used(cl_command_queue queue);
/* A command of 16 bytes on a buffer; fill also waits for events, and returns its own. */
void use(cl_command_queue queue, cl_mem buffer);
cl_event fill(cl_command_queue queue, cl_mem buffer, cl_uint waits, const cl_event *list);
/* Releases context and queue and checks that the driver has nothing left. */
void end_clean(void);

#endif
