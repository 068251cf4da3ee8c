/*
 * shortage: runs out of memory in a given way, and prints the error. All but room and pieces want a device of 16 MiB.
 *
 *	shortage large|full|unchecked|room|pieces|nearly|killed|aborted
 *
 * large asks for more than the device has; full creates until it is full; unchecked then fills what it did not
 * get, and ends with status 3; room asks for what the host refuses although
 * the device has it; pieces does so on a device of 512 MiB, where room is between small buffers; nearly fills the device
 * without failing; killed and aborted end while they hold memory.
 */
#include "work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MIB = 1 << 20, DEVICE = 16, PIECE = 64 << 10, PIECES = 256 };

static cl_mem_flags flags = CL_MEM_READ_WRITE;

static __attribute__((noinline)) cl_mem grow(const struct gpu *gpu, size_t size, cl_int *status)
{
	return clCreateBuffer(gpu->context, flags, size, NULL, status);
}

/* Creates until it fails, at most most; returns how many there are. */
static size_t fill_up(const struct gpu *gpu, cl_mem *buffers, size_t most, size_t size)
{
	for (size_t i = 0; i < most; i++) {
		cl_int status;
		buffers[i] = grow(gpu, size, &status);
		if (status != CL_SUCCESS) {
			printf("error %d\n", status);
			return i;
		}
	}
	return most;
}

static void release_all(cl_mem *buffers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		CHECK(clReleaseMemObject(buffers[i]));
}

/* Bytes of address space that the process has. */
static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lu", &pages) != 1)
		fail("shortage: /proc/self/statm");
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The host refuses what the device would have. */
static void limit_host(const struct gpu *gpu, size_t size)
{
	static cl_mem buffer;
	flags |= CL_MEM_ALLOC_HOST_PTR; /* PoCL would wait for the first use */
	struct rlimit before, now;
	if (getrlimit(RLIMIT_AS, &before) != 0)
		fail("shortage: getrlimit");
	now = before;
	now.rlim_cur = address_space() + 128 * MIB;
	if (setrlimit(RLIMIT_AS, &now) != 0)
		fail("shortage: setrlimit");
	size_t count = fill_up(gpu, &buffer, 1, size);
	if (setrlimit(RLIMIT_AS, &before) != 0)
		fail("shortage: setrlimit");
	release_all(&buffer, count);
}

/* The same while what lies between small buffers is the only room that the device has left. */
static void limit_among_pieces(const struct gpu *gpu)
{
	static cl_mem pieces[PIECES], kept[PIECES];
	size_t left = 0;
	fill_up(gpu, pieces, PIECES, PIECE);
	for (size_t i = 0; i < PIECES; i++) {
		if (i % 16 == 0)
			kept[left++] = pieces[i];
		else
			release_all(pieces + i, 1);
	}
	left += fill_up(gpu, kept + left, 1, (size_t)204 * MIB);
	limit_host(gpu, (size_t)300 * MIB);
	release_all(kept, left);
}

/* Of count buffers the last is NULL, as its create failed. */
static void fill_what_is_missing(const struct gpu *gpu, cl_mem *buffers, size_t count)
{
	const cl_uint pattern = 7;
	for (int i = 0; i < 3; i++)
		if (clEnqueueFillBuffer(gpu->queue, buffers[count], &pattern, sizeof pattern, 0, MIB, 0, NULL, NULL) == CL_SUCCESS)
			fail("shortage: a buffer that is not one");
	release_all(buffers, count);
}

static bool run_short(const struct gpu *gpu, const char *how)
{
	static cl_mem buffers[2 * DEVICE];
	if (strcmp(how, "large") == 0)
		release_all(buffers, fill_up(gpu, buffers, 1, (DEVICE + 1) * MIB));
	else if (strcmp(how, "full") == 0)
		release_all(buffers, fill_up(gpu, buffers, DEVICE + 1, MIB));
	else if (strcmp(how, "unchecked") == 0)
		fill_what_is_missing(gpu, buffers, fill_up(gpu, buffers, DEVICE + 1, MIB));
	else if (strcmp(how, "nearly") == 0)
		release_all(buffers, fill_up(gpu, buffers, DEVICE, MIB));
	else if (strcmp(how, "room") == 0)
		limit_host(gpu, (size_t)512 * MIB);
	else if (strcmp(how, "pieces") == 0)
		limit_among_pieces(gpu);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		fail("usage: shortage large|full|unchecked|room|pieces|nearly|killed|aborted");
	struct gpu gpu = gpu_open(0);
	if (!run_short(&gpu, argv[1])) {
		create_worked(&gpu, 4 * MIB);
		if (strcmp(argv[1], "killed") == 0)
			raise(SIGKILL);
		abort();
	}
	gpu_close(&gpu);
	return strcmp(argv[1], "unchecked") == 0 ? 3 : EXIT_SUCCESS;
}
