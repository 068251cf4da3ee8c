/*
 * held.h: how many contexts, queues, programs, kernels, events, samplers and command buffers the program holds, by call
 * site. A site is a number for a type of object and a tag. Any thread may call these functions.
 */
#ifndef GMT_HELD_H
#define GMT_HELD_H

#include "../../internal/wire/event.h"
#include "../base/opencl.h"

/* The site of a type and a tag, from 1. Where there are too many, sites share that of tag 0. */
uint32_t gmt_held_site(enum gmtheld type, uint32_t tag);
/* A site created an object. time: now if the caller has just read the clock, else 0. */
void gmt_held_created(uint32_t site, uint64_t time);
/* It created one that no table has room for, so that its end will go unseen. */
void gmt_held_untracked(uint32_t site, uint64_t time);
/* The program gave up the last reference to an object of a site; 0: it was not counted. */
void gmt_held_released(uint32_t site);
/* Writes what is due; time: now. Events are written a hundred times a second at most, other objects at once. */
void gmt_held_tick(uint64_t time);
/* Writes all that has changed, and from here on each change at once: the process exits. */
void gmt_held_end(void);

#endif
