/* clear.c: see clear.h. The commands wait for no event: an earlier command on the block, if any, is on the same queue and runs first. */
#define _GNU_SOURCE
#include "clear.h"

#include "../base/dispatch.h"
#include "upload.h"

/* On an out-of-order queue a barrier makes the next commands wait. */
static bool order_before_next(cl_command_queue queue, bool inorder, cl_int filled, cl_event event)
{
	bool ok = filled == CL_SUCCESS;
	if (inorder || !ok)
		return ok;
	ok = gmt_driver.clEnqueueBarrierWithWaitList(queue, 1, &event, NULL) == CL_SUCCESS;
	if (!ok)
		gmt_driver.clWaitForEvents(1, &event);
	gmt_driver.clReleaseEvent(event);
	return true;
}

bool gmt_clear_buffer(cl_command_queue queue, bool inorder, cl_mem buffer, size_t size)
{
	const unsigned char zero = 0;
	bool ok = true;
	for (size_t at = 0; at < size && ok; at += GMT_FILL_MOST) {
		size_t length = size - at < GMT_FILL_MOST ? size - at : GMT_FILL_MOST;
		cl_event event = NULL;
		cl_int err = gmt_driver.clEnqueueFillBuffer(queue, buffer, &zero, 1, at, length, 0, NULL, inorder ? NULL : &event);
		ok = order_before_next(queue, inorder, err, event);
	}
	return ok;
}

/* A colour of zeroes is all zero in each format. */
bool gmt_clear_image(cl_command_queue queue, bool inorder, cl_mem image)
{
	const cl_uint colour[4] = {0};
	const size_t origin[3] = {0};
	size_t region[3];
	cl_event event = NULL;
	if (!gmt_driver.clEnqueueFillImage || !gmt_image_region(image, region))
		return false;
	cl_int err = gmt_driver.clEnqueueFillImage(queue, image, colour, origin, region, 0, NULL, inorder ? NULL : &event);
	return order_before_next(queue, inorder, err, event);
}
