/*
 * threads.c: the linker puts this function in place of pthread_create. Go needs detached threads with a stack of the usual size; the
 * shim's threads are such.
 */
#include "../shim/entry/room.h"

/* Weak, so that "go build ./..." can link this package as a program, which cannot run. */
#pragma weak gmt_room_give_thread

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	return gmt_room_give_thread(thread, attributes, run, argument);
}
