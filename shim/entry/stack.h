/* stack.h: the call stack of this thread, outside the shim and OpenCL's loader. */
#ifndef GMT_STACK_H
#define GMT_STACK_H

#include "../../internal/wire/event.h"
#include "../base/call.h"
#include "python.h"

/* Where Python runs it ends at the interpreter, with lines. Frames beyond certain were found by frame pointers. */
struct gmt_stack {
	unsigned depth, limit, lines, certain;
	bool deeper; /* than limit, as far as all frames are of libraries that belong to no single program */
	enum gmt_python python;
	uintptr_t frames[GMT_STACK_MAX];
	struct gmt_python_line line[GMT_STACK_MAX];
};

/*
 * At most limit return addresses, 1 to GMT_STACK_MAX. To name: more of them, as far as all are of libraries, and as many lines of
 * Python.
 */
void gmt_stack_collect(struct gmt_stack *stack, const struct gmt_caller *caller, unsigned limit, bool toname);

#endif
