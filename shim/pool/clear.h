/* clear.h: zeroes a block on a queue of the program, before the command that the program enqueues next. */
#ifndef GMT_CLEAR_H
#define GMT_CLEAR_H

#include "../base/opencl.h"

#include <stdbool.h>

/* Both return false if the driver refused. inorder: what comes next on the queue runs after it anyway. */
bool gmt_clear(cl_command_queue queue, bool inorder, cl_mem buffer, size_t size);
bool gmt_clear_image(cl_command_queue queue, bool inorder, cl_mem image);

#endif
