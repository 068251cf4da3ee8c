/* entries.h: what the libraries around the entry tests export. */
#ifndef ENTRIES_H
#define ENTRIES_H

#define ENTRY_EXPORT __attribute__((visibility("default")))
enum { DOOR_NEIGHBOUR = 1, DOOR_BEHIND = 2 };

/* Each library's own answer. The second name looks like OpenCL, the third is one that the shim hooks. */
ENTRY_EXPORT int gmt_entry_probe(void);
ENTRY_EXPORT int clEntryProbe(void);
#ifndef DOORS_WITH_OPENCL
ENTRY_EXPORT int clCreateBuffer(void);
#endif

/* What dlsym(RTLD_NEXT, name) finds, asked by the neighbour. */
ENTRY_EXPORT void *gmt_entry_next(const char *name);
/* What dlsym(RTLD_DEFAULT, name) finds, asked by the neighbour. */
ENTRY_EXPORT void *gmt_entry_default(const char *name);

#endif
