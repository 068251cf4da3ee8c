/* nest.c: a library between a program and its callee. */
#include "record.h"

#include <stddef.h>

void (*choosing)(void);

__attribute__((noinline)) int through(int (*function)(int), int value, int depth)
{
	volatile char room[48] = {(char)value};
	if (depth > 0)
		return through(function, value + 1, depth - 1) + room[0];
	return function(value) + room[0];
}

static int one(int value)
{
	return value + 1;
}

/* Runs in the dynamic linker, below the first caller of chosen. */
static int (*choose(void))(int)
{
	if (choosing)
		choosing();
	return one;
}

int chosen(int value) __attribute__((ifunc("choose")));
