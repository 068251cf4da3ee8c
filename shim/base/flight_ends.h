/* flight_ends.h: sees to it that each end of the process that we can notice writes the flight log. */
#ifndef GMT_FLIGHT_ENDS_H
#define GMT_FLIGHT_ENDS_H

#include <signal.h>

/* From here on; once. */
void gmt_flight_ends(void);

/*
 * Our clock reads the processor's counter, and a thread may lose the right to that unseen, by its own machine instruction or by
 * another process: the fault is forgiven where the program has no handler of SIGSEGV. Once.
 */
void gmt_flight_forgives(void);

/*
 * Where the default of a signal ends the process, a handler of ours stands in for it. The program does not see that:
 * of what it installs and what it gets back, one is replaced by the other.
 */
sighandler_t gmt_flight_instead(int number, sighandler_t handler);
sighandler_t gmt_flight_shown(sighandler_t handler);

#endif
