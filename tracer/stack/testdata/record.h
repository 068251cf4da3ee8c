/* record.h: prints, for tests, the sample that the eBPF program would make of a call, and libgcc's stack for it. */
#ifndef RECORD_H
#define RECORD_H

#ifdef __cplusplus
extern "C" {
#endif

/* In place of an OpenCL function: writes its caller's registers, stack and frames to standard output. */
void capture(const char *name);

/* Ends the list, and waits until standard input is closed, so that the mappings can be read. */
void finish(void);

/* nest.c, another library */
int through(int (*function)(int), int value, int depth);
int chosen(int value);
extern void (*choosing)(void); /* called while chosen is being looked up */

#ifdef __cplusplus
}
#endif

#endif
