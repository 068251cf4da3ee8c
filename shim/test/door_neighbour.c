/* door_neighbour.c: a library that looks for the next definition of its own functions, as wrappers do. */
#define _GNU_SOURCE
#include "doors.h"

#include <dlfcn.h>

int gmt_door_probe(void)
{
	return DOOR_NEIGHBOUR;
}

int clDoorProbe(void)
{
	return DOOR_NEIGHBOUR;
}

void *gmt_door_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void *gmt_door_default(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}
