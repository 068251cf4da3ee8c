/* fake_python.h: CPython's public functions without an interpreter. What a correct shim never does aborts the process. */
#ifndef FAKE_PYTHON_H
#define FAKE_PYTHON_H

#include "../base/opencl.h"

/* The first words of these are where CPython 3.11 has them. */
struct fake_string {
	char head[32];
	uint32_t state;
	char text[28];
};
struct fake_code {
	uintptr_t head[12];
	struct fake_string *file, *name;
	uintptr_t others[8];
	int references;
};
struct fake_frame {
	uintptr_t words[9]; /* of the interpreter's frame */
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
extern GMT_HOOK unsigned long Py_Version;

#endif
