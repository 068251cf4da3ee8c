/* record.h: tells gpumemtop's tests what the eBPF program would tell of a call, and what libgcc makes of its stack. */
#ifndef RECORD_H
#define RECORD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Stands for a function of OpenCL: writes its caller's registers, stack and frames to standard output. */
void capture(const char *name);

/* Ends the list, and waits until standard input is closed: the mappings must be there while they are read. */
void finish(void);

/* nest.c, another library */
int through(int (*function)(int), int value, int depth);
int chosen(int value);
extern void (*choosing)(void); /* called while chosen is being looked up */

#ifdef __cplusplus
}
#endif

#endif
