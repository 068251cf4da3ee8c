/*
 * mapped: creates and releases buffers from code in an executable mapping of a file, as a plugin's, and from code in no file, to
 * which it gives many names in /tmp/perf-PID.map, as a compiler at run time does. It waits for the end of its input in between.
 *
 *	mapped FILE [NAMES] [CREATES]
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 64 << 10, AT = 0x1010 };

typedef cl_mem creator(cl_context, cl_mem_flags, size_t, void *, cl_int *);

/* Code that calls clCreateBuffer with the arguments that it gets itself; at: in a mapping of the file, or of none if -1. */
static creator *make_code(int file)
{
#ifdef __x86_64__
	unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
	creator *function = clCreateBuffer;
	char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
	if (room == MAP_FAILED)
		fail("mapped: no mapping");
	memcpy(code + 6, &function, sizeof function);
	memcpy(room + AT, code, sizeof code);
	void *begin = room + AT;
	memcpy(&function, &begin, sizeof function);
	return function;
#else
	(void)file;
	fail("mapped: it has no code for this machine");
#endif
}

static void write_names(const char *path, creator *code, size_t count)
{
	uintptr_t begin = 0;
	memcpy(&begin, &code, sizeof begin);
	FILE *names = fopen(path, "w");
	if (!names)
		fail("mapped: cannot write %s", path);
	for (size_t i = 0; i < count; i++)
		fprintf(names, "%zx 40 a_function_of_number_%zu\n", (size_t)begin - i % 2 * i, i);
	if (fclose(names) != 0)
		fail("mapped: cannot write %s", path);
}

static void create(const struct gpu *gpu, creator *code, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cl_int status;
		cl_mem buffer = code(gpu->context, CL_MEM_READ_WRITE, 4096, NULL, &status);
		CHECK(status);
		CHECK(clReleaseMemObject(buffer));
	}
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "FILE [NAMES] [CREATES]", 3);
	size_t names = arguments_count(&arguments, 1, 1000), creates = arguments_count(&arguments, 2, 100);
	int file = open(arguments.count ? arguments.values[0] : argv[0], O_RDONLY | O_CLOEXEC);
	if (file < 0)
		fail("mapped: it needs a file to read");
	creator *in_file = make_code(file), *in_none = make_code(-1);
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	write_names(path, in_none, names);
	struct gpu gpu = gpu_open(0);
	puts("ready");
	fflush(stdout);
	(void)getchar(); /* what is to watch is there */
	create(&gpu, in_file, creates);
	create(&gpu, in_none, creates);
	while (getchar() != EOF)
		continue;
	gpu_close(&gpu);
	unlink(path);
	print_checksum(&arguments, checksum(CHECKSUM_START, &creates, sizeof creates));
	return EXIT_SUCCESS;
}
