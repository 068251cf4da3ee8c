/* python.h: the lines of Python that a call comes from. */
#ifndef GMT_PYTHON_H
#define GMT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a function of Python is. */
struct gmt_python_line {
	void *code;         /* the function's code object, held by its frame */
	uintptr_t function; /* which function: an odd number if it was read without the interpreter's lock */
	uint64_t line;
};

/* What can be learned of the Python that this thread runs, until it returns to it. */
enum gmt_python { GMT_PYTHON_NONE, GMT_PYTHON_LOCKED, GMT_PYTHON_UNLOCKED };
enum gmt_python gmt_python_runs(void);
/* An address in the interpreter. */
bool gmt_python_holds(uintptr_t address);
/* Stores the lines that this thread is in, innermost first, and returns how many. */
unsigned gmt_python_lines(enum gmt_python runs, struct gmt_python_line *lines, unsigned most);
/* Stores file NUL function, and returns its bytes, 0 if they are unknown. With the lock it keeps the code object for good, so that no other has its address. */
size_t gmt_python_name(const struct gmt_python_line *line, char *text, size_t size);
/* Looks for an interpreter, if none is known. */
void gmt_python_look(void);

#endif
