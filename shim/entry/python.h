/* python.h: the lines of Python from which a call comes. */
#ifndef GMT_PYTHON_H
#define GMT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of Python, and its function. */
struct gmt_python_line {
	void *code;         /* the function's code object, held by its frame */
	uintptr_t function; /* identifies the function; odd if it was read without the interpreter's lock */
	uint64_t line;
};

/* How the lines of the Python code that called can be read: not at all, under the interpreter's lock, or without it. */
enum gmt_python { GMT_PYTHON_NONE, GMT_PYTHON_LOCKED, GMT_PYTHON_UNLOCKED };
enum gmt_python gmt_python_on_thread(void);
/* Whether an address is in the interpreter. */
bool gmt_python_contains(uintptr_t address);
/* Stores the lines of this thread's Python frames, innermost first, and returns how many. */
unsigned gmt_python_lines(enum gmt_python runs, struct gmt_python_line *lines, unsigned most);
/*
 * Stores a line's file, a NUL and its function, and returns the bytes; 0: unknown. Under the lock it keeps the code object
 * forever, so that no other gets its address.
 */
size_t gmt_python_name(const struct gmt_python_line *line, char *text, size_t size);
/* Looks for an interpreter if none is known. */
void gmt_python_look_for_interpreter(void);

#endif
