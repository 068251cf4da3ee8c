/* carved.h: tests in which buffers are parts of slabs. */
#ifndef CARVED_H
#define CARVED_H

#include "harness.h"

#define SLAB_BYTES 65536
#define ALIGNMENT 128

static inline void begin_carved(struct options options)
{
	char text[16];
	snprintf(text, sizeof text, "%d", SLAB_BYTES);
	CHECK(setenv("FAKE_CORE_SLAB", text, 1) == 0);
	fake.alignbits = ALIGNMENT * 8;
	begin(options);
}

/* What a query answers, widened to eight bytes. */
static inline uint64_t asked(cl_mem handle, cl_mem_info what)
{
	uint64_t answer = 0;
	OK(clGetMemObjectInfo(handle, what, sizeof answer, &answer, NULL));
	return answer;
}

static inline void *asked_pointer(cl_mem handle, cl_mem_info what)
{
	return (void *)(uintptr_t)asked(handle, what);
}

/* The flags of the last event of a kind. */
static inline bool is_part(enum gmtkind kind)
{
	return last_event(kind).flags & GMT_FLAG_SUBALLOC;
}

#endif
