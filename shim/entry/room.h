/*
 * room.h: whether the Go core fits into this process. The Go runtime ends the process when it cannot have a thread or
 * address space, so the shim gets both before it loads the core.
 */
#ifndef GMT_ROOM_H
#define GMT_ROOM_H

#include <pthread.h>

/* Makes all threads that the core will need. NULL, or why the core has to stay away; then nothing is left of the attempt. */
const char *gmt_room_make(void);

/* The core calls it in place of pthread_create: it gives a thread that was made before the core was loaded. */
__attribute__((visibility("default")))
int gmt_room_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

#endif
