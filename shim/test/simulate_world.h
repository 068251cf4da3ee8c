/* simulate_world.h: what a simulated program has, and what its steps share. */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include "fake_objects.h"
#include "simulate.h"

enum { PLACES = 8, QUEUES = 4, CONTEXTS = 2, USERS = 2, POINTERS = 4, BYTES = 64, NOTHING = -9999 };

/* Memory and who used it last. */
struct store {
	cl_event last;
	uint64_t queue; /* of last, if that is in order; else 0 */
	size_t size;
	unsigned things; /* that lie in it */
	uint32_t gates;  /* user events that last waits for, by bit */
	bool defined, spoiled;
};

struct thing {
	cl_mem handle;
	struct store *store;
	cl_uint references;
	size_t size;
	bool image, part;
	void *pointer;      /* of shared memory, which has no handle */
	cl_context context; /* of shared memory */
};

extern struct world {
	struct thing thing[PLACES], shared[POINTERS];
	cl_context context[CONTEXTS];
	struct {
		cl_command_queue handle;
		cl_context context;
		uint64_t number; /* 0: out of order */
		uint32_t gates;
	} queue[QUEUES];
	struct {
		cl_event event;
		cl_context context;
		bool fails;
	} user[USERS];
	cl_kernel kernel;
	struct thing argument[3];
	struct store store[STEPS_MOST];
	unsigned stores;
	bool begun;
	uint64_t queues, used;
	uint8_t called[STEPS_MOST];    /* back */
	cl_mem destructor[STEPS_MOST]; /* whose the step set */
	uint8_t read[STEPS_MOST][BYTES];
	size_t reads[STEPS_MOST];
} world;

extern unsigned sim_step;
extern struct seen *sim_now; /* what is known of the step */
extern uint64_t *sim_calls;
extern const uint8_t *sim_bytes; /* to write */

/* A call of the program. */
#define CALL(function) (*sim_calls += sim_watched, cl->function)

void digest(const void *bytes, size_t count);
#define ALL_GATES ((1u << USERS) - 1)
/* What the program waits for itself must not wait for its user events, nor for anything else that those hold up. */
int64_t set_user_events(uint32_t gates);
struct thing *thing(uint32_t place);
int64_t wait_for(struct store *store);

#define DOES(name, weight, arguments) int64_t do_##name(const uint32_t *a);
OPERATIONS(DOES)
#undef DOES

#endif
