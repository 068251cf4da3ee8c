/* flight_ends.h: has every end of the process that we can notice write the flight log. */
#ifndef GMT_FLIGHT_ENDS_H
#define GMT_FLIGHT_ENDS_H

#include <signal.h>

/* Has the process's end write the flight log from here on. Called once. */
void gmt_flight_catch_ends(void);

/*
 * Has faults of our clock ignored where the program has no handler of SIGSEGV: the clock reads the processor's counter, and a
 * thread may lose the right to that unseen, by a system call of its own or through another process. Called once.
 */
void gmt_flight_catch_faults(void);

/*
 * The handler to install for one that the program asks for, and the one to show it. Where the default of a signal ends the
 * process, our handler stands in for it. The program does not see that.
 */
sighandler_t gmt_flight_handler_instead(int number, sighandler_t handler);
sighandler_t gmt_flight_handler_to_show(sighandler_t handler);

#endif
