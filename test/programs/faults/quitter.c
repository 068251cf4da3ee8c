/*
 * quitter: leaves by _exit in the middle of its work, with buffers alive and no exit handler run.
 *
 *	quitter [-t] [STATUS]     STATUS: 1 to 255, default 7
 */
#include "work.h"

#include <unistd.h>

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[STATUS]", 1);
	int status = (int)(arguments_count(&arguments, 0, 7) & 0xff);
	struct gpu gpu = gpu_open(0);
	uint64_t hash = work(&gpu, 20, 64u << 10);
	(void)create_worked(&gpu, 4096); /* never released */
	print_checksum(&arguments, hash);
	_exit(status);
}
