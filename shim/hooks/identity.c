/*
 * identity.c: see identity.h. People and other tools know devices by their PCI address, but several devices of one card share
 * it; a UUID distinguishes these. If a driver has neither, a number by handle distinguishes devices within the process.
 */
#define _GNU_SOURCE
#include "identity.h"

#include "../base/dispatch.h"

#include <stdio.h>
#include <string.h>

#define UUID_KHR 0x106A
#define PCI_BUS_INFO_KHR 0x410F /* domain, bus, device, function */
#define PCI_BUS_ID_NV 0x4008
#define PCI_SLOT_ID_NV 0x4009
#define PCI_DOMAIN_ID_NV 0x400A
#define TOPOLOGY_AMD 0x4037
#define TOPOLOGY_BYTES 24 /* the last three bytes are bus, device and function */
#define TOPOLOGY_PCIE 1
#define HANDLES 16

/* Whether a driver answers a query with exactly that many bytes. */
static bool answers_exactly(cl_device_id device, cl_device_info what, void *value, size_t bytes)
{
	size_t got = 0;
	return gmt_driver.clGetDeviceInfo(device, what, bytes, value, &got) == CL_SUCCESS && got == bytes;
}

struct address {
	cl_uint domain, bus, device, function;
};

static bool find_pci_address(cl_device_id device, struct address *at)
{
	cl_uint slot = 0;
	unsigned char topology[TOPOLOGY_BYTES];
	if (answers_exactly(device, PCI_BUS_INFO_KHR, at, sizeof *at))
		return true;
	*at = (struct address){0};
	if (answers_exactly(device, PCI_BUS_ID_NV, &at->bus, sizeof at->bus) && answers_exactly(device, PCI_SLOT_ID_NV, &slot, sizeof slot)) {
		if (!answers_exactly(device, PCI_DOMAIN_ID_NV, &at->domain, sizeof at->domain))
			at->domain = 0;
		at->device = slot >> 3;
		at->function = slot & 7;
		return true;
	}
	cl_uint type = 0;
	if (!answers_exactly(device, TOPOLOGY_AMD, topology, sizeof topology))
		return false;
	memcpy(&type, topology, sizeof type);
	at->bus = topology[TOPOLOGY_BYTES - 3];
	at->device = topology[TOPOLOGY_BYTES - 2];
	at->function = topology[TOPOLOGY_BYTES - 1];
	return type == TOPOLOGY_PCIE;
}

/* The number of a handle, in the order of the devices' first contexts; 0: there are too many. */
static unsigned local_number(cl_device_id device)
{
	static _Atomic(cl_device_id) handles[HANDLES];
	for (unsigned i = 0; i < HANDLES; i++) {
		cl_device_id known = NULL;
		if (atomic_compare_exchange_strong(&handles[i], &known, device) || known == device)
			return i + 1;
	}
	return 0;
}

size_t gmt_identity_of_device(cl_device_id device, char *text, size_t room)
{
	struct address at;
	unsigned char uuid[16], none[16] = {0};
	int length = 0;
	if (room < 80) /* the longest text, with both */
		return 0;
	if (find_pci_address(device, &at))
		length = snprintf(text, room, "pci %04x:%02x:%02x.%x", at.domain, at.bus, at.device, at.function);
	if (answers_exactly(device, UUID_KHR, uuid, sizeof uuid) && memcmp(uuid, none, sizeof none) != 0) {
		length += snprintf(text + length, room - (size_t)length, "%suuid ", length ? " " : "");
		for (size_t i = 0; i < sizeof uuid; i++)
			length += snprintf(text + length, room - (size_t)length, "%02x", uuid[i]);
	}
	if (!length)
		length = snprintf(text, room, "local %u", local_number(device));
	return (size_t)length;
}
