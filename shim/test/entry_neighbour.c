/* entry_neighbour.c: a library that looks for the next definition of its own functions, as wrappers do. */
#define _GNU_SOURCE
#include "entries.h"

#include <dlfcn.h>

int gmt_entry_probe(void)
{
	return DOOR_NEIGHBOUR;
}

int clEntryProbe(void)
{
	return DOOR_NEIGHBOUR;
}

void *gmt_entry_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void *gmt_entry_default(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}
