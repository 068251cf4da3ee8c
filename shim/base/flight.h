/*
 * flight.h: the flight log. A process with GPUMEMTOP_LOG in its environment that has no session counts its events itself and
 * leaves one record of them when it ends.
 */
#ifndef GMT_FLIGHT_LOG_H
#define GMT_FLIGHT_LOG_H

#include "../../internal/wire/flight.h"
#include "opencl.h"

/* Begins to count, for a record in a folder. False: not possible, and nothing has changed. */
bool gmt_flight_begin(const char *folder);
/*
 * Writes the record if this process has a flight log, to a temporary file that it renames. It takes 0.2 ms with 4,095 call sites
 * on an idle processor. Any thread and any signal handler may call it.
 */
void gmt_flight_write(int status, int signal);
/* Writes the record again if anything has changed since. */
void gmt_flight_write_again(void);

#endif
