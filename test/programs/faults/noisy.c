/*
 * noisy: writes a megabyte to stderr while it works: 64-byte lines, numbered.
 *
 *	noisy [-t] [ITERATIONS] [SIZE]     ITERATIONS: lines
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINES_PER_BUFFER = 64 };

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	size_t lines = arguments_count(&arguments, 0, 16384);
	size_t size = arguments_size(&arguments, 1, 64u << 10);
	struct gpu gpu = gpu_open(0);
	uint64_t hash = CHECKSUM_START;
	for (size_t i = 0; i < lines; i++) {
		if (i % LINES_PER_BUFFER == 0)
			hash = work_once(&gpu, i, size, hash);
		fprintf(stderr, "%08zu noise noise noise noise noise noise noise noise noise.\n", i);
	}
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
