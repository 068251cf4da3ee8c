/*
 * room.h: whether the Go core fits into this process. The Go runtime ends the process when it cannot have a thread or
 * address space, so the shim makes sure of both before it loads the core.
 */
#ifndef GMT_ROOM_H
#define GMT_ROOM_H

#include <pthread.h>

/* Makes all threads that the core will need. Returns NULL, or why the core cannot be loaded; then no thread is left. */
const char *gmt_room_make(void);

/* Called by the core in place of pthread_create: runs the function on a thread that was made before the core was loaded. */
__attribute__((visibility("default")))
int gmt_room_give_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

#endif
