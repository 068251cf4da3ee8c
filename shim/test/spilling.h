/* spilling.h: what the tests of --spill share. */
#ifndef GMT_SPILLING_H
#define GMT_SPILLING_H

#include "harness.h"

#include <string.h>

enum { BYTES = 400, CARD = 1000 };

static inline void begin_spill(void)
{
	begin((struct options){.devicememory = CARD, .spill = true});
	fake.eager = 1;
	fake.creates = fake.releases = fake.commands = 0;
}

static inline cl_mem make(cl_mem_flags flags, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, BYTES, host, &err);
	OK(err);
	return buffer;
}

static inline void write_all(cl_command_queue queue, cl_mem buffer, char value)
{
	char bytes[BYTES];
	memset(bytes, value, sizeof bytes);
	OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
}

static inline void check_all(cl_command_queue queue, cl_mem buffer, char value)
{
	char bytes[BYTES], want[BYTES];
	memset(bytes, 0, sizeof bytes);
	memset(want, value, sizeof want);
	OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
	CHECK(memcmp(bytes, want, sizeof bytes) == 0);
}

#endif
