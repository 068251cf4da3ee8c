/* doors.h: what the libraries around the door tests export. */
#ifndef DOORS_H
#define DOORS_H

#define DOOR_EXPORT __attribute__((visibility("default")))
enum { DOOR_NEIGHBOUR = 1, DOOR_BEHIND = 2 };

/* Each library's own answer. The second name looks like OpenCL, the third is one that the shim hooks. */
DOOR_EXPORT int gmt_door_probe(void);
DOOR_EXPORT int clDoorProbe(void);
#ifndef DOORS_WITH_OPENCL
DOOR_EXPORT int clCreateBuffer(void);
#endif

/* What dlsym(RTLD_NEXT, name) finds, asked by the neighbour. */
DOOR_EXPORT void *gmt_door_next(const char *name);
/* What dlsym(RTLD_DEFAULT, name) finds, asked by the neighbour. */
DOOR_EXPORT void *gmt_door_default(const char *name);

#endif
