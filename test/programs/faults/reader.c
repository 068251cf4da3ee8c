/*
 * reader: sends everything on stdin through a buffer and prints the checksum of what comes back.
 *
 *	reader [-t] < FILE
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 64 << 10 };

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "< FILE", 0);
	struct gpu gpu = gpu_open(0);
	unsigned char *host = allocate(PIECE);
	uint64_t hash = CHECKSUM_START;
	for (size_t got; (got = fread(host, 1, PIECE, stdin)) > 0;) {
		cl_mem buffer = create_worked(&gpu, PIECE);
		CHECK(clEnqueueWriteBuffer(gpu.queue, buffer, CL_TRUE, 0, got, host, 0, NULL, NULL));
		hash = checksum_buffer(hash, &gpu, buffer, got);
		CHECK(clReleaseMemObject(buffer));
	}
	if (ferror(stdin))
		fail("%s: cannot read stdin", arguments.program);
	free(host);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
