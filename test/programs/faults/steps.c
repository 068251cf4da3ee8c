/*
 * steps: creates and releases a buffer per step and then writes the number of the step to a file, at its start: what
 * stands there has happened, however the program ends.
 *
 *	steps FILE [STEPS] [SIZE]
 */
#include "work.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("usage: %s FILE [STEPS] [SIZE]", argv[0]);
	int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		fail("%s: cannot write %s", argv[0], argv[1]);
	argv[1] = argv[0];
	struct arguments arguments = arguments_read(argc - 1, argv + 1, "[STEPS] [SIZE]", 2);
	size_t steps = arguments_count(&arguments, 0, 1000), size = arguments_size(&arguments, 1, 4096);
	struct gpu gpu = gpu_open(0);
	for (size_t step = 1; step <= steps; step++) {
		CHECK(clReleaseMemObject(create_worked(&gpu, size)));
		char text[24];
		int length = snprintf(text, sizeof text, "%zu\n", step);
		if (pwrite(file, text, (size_t)length, 0) != length)
			fail("%s: cannot write", arguments.program);
	}
	gpu_close(&gpu);
	print_checksum(&arguments, steps);
	return EXIT_SUCCESS;
}
