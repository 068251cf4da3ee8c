/*
 * queries: asks OpenCL everything about every kind of object, and for much that it must refuse, and prints the answers:
 * two runs of it print the same, so that runs with something in between can be compared. Buffers come and go in sizes
 * and with flags that let a pool hand out what there was before, also in a size a little less.
 *
 *	queries [lenient|parts]   lenient: less, for drivers that abort on what they must refuse
 *	                          parts: without what PoCL accepts by mistake, but not of a buffer that is part of another
 */
#include "queries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lenient, wholes;

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[lenient|parts]", 1);
	lenient = arguments.count == 1 && strcmp(arguments.values[0], "lenient") == 0;
	wholes = HAS_IMAGES && !(arguments.count == 1 && strcmp(arguments.values[0], "parts") == 0);
	struct gpu gpu = gpu_open(0);
	name_add(gpu.device, "device");
	name_add(gpu.context, "context");
	name_add(gpu.queue, "queue");
	print_references("at the beginning", &gpu);
	ask_memory(&gpu);
	ask_images(&gpu);
	if (!lenient) {
		refuse_creates(&gpu);
		refuse_commands(&gpu);
		refuse_rectangles(&gpu);
		refuse_others(&gpu);
		ask_others(&gpu); /* last: with a second queue and a user event a pool may have to do things differently */
	}
	ask_memory(&gpu);
	print_references("at the end", &gpu);
	gpu_close(&gpu);
	if (fflush(stdout) != 0)
		fail("queries: cannot write: %s", strerror(errno));
	return EXIT_SUCCESS;
}
