/* entry_behind.c: a library behind another one, which also has a private function of an OpenCL name. */
#include "entries.h"

int gmt_entry_probe(void)
{
	return DOOR_BEHIND;
}

int clEntryProbe(void)
{
	return DOOR_BEHIND;
}

int clCreateBuffer(void)
{
	return DOOR_BEHIND;
}
