/* fake_nvml.c: NVIDIA's management library for a machine with two devices, as far as gpumemtop calls it. */
#include <stdlib.h>
#include <string.h>

struct process {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int instance, compute_instance;
};

struct pci {
	char legacy_id[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	static char devices[2];
	*device = &devices[index];
	devices[index] = (char)index;
	return 0;
}

int nvmlDeviceGetPciInfo_v3(const char *device, struct pci *pci)
{
	memset(pci, 0, sizeof *pci);
	pci->domain = *device ? 1 : 0;
	pci->bus = *device ? 0xc1 : 0x41;
	return 0;
}

int nvmlDeviceGetMemoryInfo(const char *device, unsigned long long info[3])
{
	info[0] = 80ull << 30;
	info[1] = *device ? 1ull << 30 : 70ull << 30;
	info[2] = info[0] - info[1];
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const char *device, unsigned int *count, struct process *list)
{
	const char *status = getenv("FAKE_NVML_STATUS");
	if (status)
		return atoi(status);
	if (*count < 2)
		return 7;
	*count = *device ? 1 : 2;
	list[0] = (struct process){.pid = 7, .bytes = *device ? 64ull << 20 : 512ull << 20};
	list[1] = (struct process){.pid = 8, .bytes = ~0ull};
	return 0;
}
