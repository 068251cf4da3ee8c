/* door_behind.c: a library behind another one, which also has a private function of an OpenCL name. */
#include "doors.h"

int gmt_door_probe(void)
{
	return DOOR_BEHIND;
}

int clDoorProbe(void)
{
	return DOOR_BEHIND;
}

int clCreateBuffer(void)
{
	return DOOR_BEHIND;
}
