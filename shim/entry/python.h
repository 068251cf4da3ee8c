/* python.h: the lines of Python that a call comes from. */
#ifndef GMT_PYTHON_H
#define GMT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a function of Python is. */
struct gmt_python_line {
	void *code; /* the function's code object, held by its frame */
	uint64_t line;
};

/* This thread runs Python: the functions below may be called until it returns to it. */
bool gmt_python_runs(void);
/* An address in the interpreter. */
bool gmt_python_holds(uintptr_t address);
/* Stores the lines that this thread is in, innermost first, and returns how many. */
unsigned gmt_python_lines(struct gmt_python_line *lines, unsigned most);
/* Stores file NUL function, and returns its bytes, 0 if they are unknown. Keeps the code object for good, so that no other has its address. */
size_t gmt_python_name(void *code, char *text, size_t size);
/* Looks for an interpreter, if none is known. */
void gmt_python_look(void);

#endif
