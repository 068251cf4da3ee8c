/* fake_python.h: CPython's public functions without an interpreter. What a correct shim never does aborts the process. */
#ifndef FAKE_PYTHON_H
#define FAKE_PYTHON_H

#include "../base/opencl.h"

struct fake_code {
	const char *file, *name;
	int references;
};
struct fake_frame {
	struct fake_code *code;
	int line;
	struct fake_frame *back;
	int references;
};
extern GMT_HOOK struct fake_python {
	void *mine, *current; /* states of the thread that asks, and of the one that holds the lock */
	void *error;          /* not NULL: an exception is set */
	struct fake_frame *frame;
	bool old;             /* it has no qualified names: asking for one sets an exception */
	bool paused;          /* garbage collection */
	int strings;          /* references */
} fake_python;

#endif
