/*
 * crash: prints its checksum, then dies of SIGSEGV with buffers alive.
 *
 *	crash [-t] [ITERATIONS] [SIZE]
 */
#include "work.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	struct gpu gpu = gpu_open(0);
	uint64_t hash =
		work(&gpu, arguments_count(&arguments, 0, 20), arguments_size(&arguments, 1, 64u << 10));
	(void)create_worked(&gpu, 4096); /* never released */
	print_checksum(&arguments, hash);
	volatile int *volatile nowhere = NULL;
	*nowhere = 1;
	return EXIT_SUCCESS;
}
