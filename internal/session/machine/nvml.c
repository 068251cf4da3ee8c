#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#define PROCESSES 256 /* of a device */
#define NVML_SUCCESS 0
#define NVML_ERROR_NO_PERMISSION 4
#define NVML_ERROR_INSUFFICIENT_SIZE 7

struct process_info {
	unsigned int pid;
	unsigned long long bytes; /* all bits set: not available */
	unsigned int instance, compute_instance;
};

struct pci_info {
	char legacy_id[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

typedef struct nvml_device *device_handle;

struct memory_info {
	unsigned long long total, unused, used;
};

static struct {
	int (*memory)(device_handle, struct memory_info *); /* NULL: not there */
	int (*init)(void);
	int (*count)(unsigned int *);
	int (*handle)(unsigned int, device_handle *);
	int (*pci)(device_handle, struct pci_info *);
	int (*compute)(device_handle, unsigned int *, struct process_info *);
} nvml;

static void find(void *library, const char *name, void *place)
{
	*(void **)place = dlsym(library, name);
}

int nvml_load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return ENOENT;
	find(handle, "nvmlInit_v2", &nvml.init);
	find(handle, "nvmlDeviceGetCount_v2", &nvml.count);
	find(handle, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle);
	find(handle, "nvmlDeviceGetPciInfo_v3", &nvml.pci);
	find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.compute);
	if (!nvml.compute) /* drivers before 510 */
		find(handle, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml.compute);
	find(handle, "nvmlDeviceGetMemoryInfo", &nvml.memory);
	if (!nvml.init || !nvml.count || !nvml.handle || !nvml.pci || !nvml.compute)
		return ENOSYS;
	return nvml.init() == NVML_SUCCESS ? 0 : ENODEV;
}

static unsigned long long address_of(const struct pci_info *pci)
{
	return (unsigned long long)pci->domain << 16 | (pci->bus & 255) << 8 | (pci->device & 31) << 3;
}

/* Adds what processes have on one device. */
static int uses_of(device_handle device, struct nvml_use *uses, int room)
{
	static struct process_info infos[PROCESSES];
	struct pci_info pci;
	unsigned int count = PROCESSES;
	if (nvml.pci(device, &pci) != NVML_SUCCESS)
		return -EIO;
	int status = nvml.compute(device, &count, infos);
	if (status == NVML_ERROR_NO_PERMISSION)
		return -EACCES;
	if (status == NVML_ERROR_INSUFFICIENT_SIZE)
		return -E2BIG;
	if (status != NVML_SUCCESS || count > PROCESSES)
		return -EIO;
	int written = 0;
	for (unsigned int i = 0; i < count && written < room; i++) {
		struct nvml_use *use = &uses[written++];
		use->device = address_of(&pci);
		use->pid = infos[i].pid;
		use->unread = infos[i].bytes == ~0ull;
		use->bytes = use->unread ? 0 : infos[i].bytes;
	}
	return written;
}

int nvml_uses(struct nvml_use *uses, int room)
{
	unsigned int devices = 0;
	int written = 0;
	if (nvml.count(&devices) != NVML_SUCCESS)
		return -EIO;
	for (unsigned int i = 0; i < devices; i++) {
		device_handle device;
		if (nvml.handle(i, &device) != NVML_SUCCESS)
			return -EIO;
		int added = uses_of(device, uses + written, room - written);
		if (added < 0)
			return added;
		written += added;
	}
	return written;
}

int nvml_memory(unsigned long long device, unsigned long long *total, unsigned long long *unused)
{
	unsigned int devices = 0;
	if (!nvml.memory || nvml.count(&devices) != NVML_SUCCESS)
		return ENOSYS;
	for (unsigned int i = 0; i < devices; i++) {
		device_handle handle;
		struct pci_info pci;
		struct memory_info info;
		if (nvml.handle(i, &handle) != NVML_SUCCESS || nvml.pci(handle, &pci) != NVML_SUCCESS || address_of(&pci) != device)
			continue;
		if (nvml.memory(handle, &info) != NVML_SUCCESS)
			return EIO;
		*total = info.total;
		*unused = info.unused;
		return 0;
	}
	return ENODEV;
}
