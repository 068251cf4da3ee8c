/* stack.h: the call stack of this thread, outside the shim and OpenCL's loader. */
#ifndef GMT_STACK_H
#define GMT_STACK_H

#include "../../internal/wire/event.h"
#include "../base/call.h"
#include "python.h"

/* Where Python runs it ends at the interpreter, with lines. Frames beyond certain were found by frame pointers. */
struct gmt_stack {
	unsigned depth, limit, lines, certain;
	enum gmt_python python;
	uintptr_t frames[GMT_STACK_MAX];
	struct gmt_python_line line[GMT_STACK_MAX];
};

/* At most limit return addresses, 1 to GMT_STACK_MAX; with the lines of Python, if those are wanted. */
void gmt_stack_collect(struct gmt_stack *stack, const struct gmt_caller *caller, unsigned limit, bool lines);

#endif
