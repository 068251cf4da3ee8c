/* stack.h: the call stack of this thread, outside the shim and OpenCL's loader. */
#ifndef GMT_STACK_H
#define GMT_STACK_H

#include "../../internal/wire/event.h"
#include "../base/call.h"
#include "python.h"

/* If Python runs, the frames end at the interpreter, and lines follow. Frames after the first `certain` were found by frame pointers. */
struct gmt_stack {
	unsigned depth, limit, lines, certain;
	bool deeper; /* it goes on beyond limit while all frames are of libraries */
	enum gmt_python python;
	uintptr_t frames[GMT_STACK_MAX];
	struct gmt_python_line line[GMT_STACK_MAX];
};

/*
 * Collects at most limit return addresses, 1 to GMT_STACK_MAX. toname: for names, with further ones while all are of libraries,
 * and with lines of Python.
 */
void gmt_stack_collect(struct gmt_stack *stack, const struct gmt_caller *caller, unsigned limit, bool toname);

#endif
