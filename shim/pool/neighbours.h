/*
 * neighbours.h: memory that other programs of this user keep idle, under this session or another one. The session asks their pools
 * (internal/session/neighbours.go).
 */
#ifndef GMT_NEIGHBOURS_H
#define GMT_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A create found no memory for need bytes. Waits for a bounded time. True: others have given some back.
 * The caller holds no lock.
 */
bool gmt_neighbours_relieve(uint64_t need);

#endif
