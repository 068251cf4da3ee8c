/* clear.h: zeroes a block on a queue of the program, before the command that the program enqueues next. */
#ifndef GMT_CLEAR_H
#define GMT_CLEAR_H

#include "../base/opencl.h"

#include <stdbool.h>

/* Both return false if the driver refused. inorder: the queue needs no barrier before the next command. */
bool gmt_clear_buffer(cl_command_queue queue, bool inorder, cl_mem buffer, size_t size);
bool gmt_clear_image(cl_command_queue queue, bool inorder, cl_mem image);

#endif
