/*
 * nvml.h: the few functions of NVIDIA's management library that say how much memory a device and each process has. The
 * library is loaded when a process has such a device open, so nothing is linked. Layouts and names are those of nvml.h in
 * NVIDIA's deployment kit.
 */
#ifndef GPUMEMTOP_NVML_H
#define GPUMEMTOP_NVML_H

struct nvml_use {
	unsigned long long device; /* PCI address: domain << 16 | bus << 8 | device << 3 */
	unsigned long long bytes;
	unsigned int pid;
	int unread; /* 1: the driver does not say how much */
};

/* Loads the library; 0, or an errno. Not for two threads at a time, and neither is the next. */
int nvml_load(const char *library);

/* Fills in what processes have on all devices and returns how many entries it wrote, or a negative errno. */
int nvml_uses(struct nvml_use *uses, int room);

/* Fills in how much memory the device at a PCI address has and how much of it is free; 0, or an errno. */
int nvml_memory(unsigned long long device, unsigned long long *total, unsigned long long *unused);

#endif
