/*
 * images.h: comes after common.h in those that create images. Built with WITHOUT_IMAGES they have none, as on a device that
 * cannot, and do not even import what creates them: where images of sub-buffers fail, as on rusticl, gpumemtop gives parts
 * of slabs only to such programs.
 */
#ifndef EXAMPLES_IMAGES_H
#define EXAMPLES_IMAGES_H

#include <CL/cl.h>

#ifdef WITHOUT_IMAGES
enum { HAS_IMAGES = 0 };

/* Refuses as OpenCL does for a device that has no images. */
static inline cl_mem no_image(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
			      const cl_image_format *format, const cl_image_desc *description, void *host, cl_int *code)
{
	(void)context, (void)properties, (void)flags, (void)format, (void)description, (void)host;
	*code = CL_INVALID_OPERATION;
	return NULL;
}

#define clCreateImage(context, flags, format, description, host, code) \
	no_image(context, NULL, flags, format, description, host, code)
#define clCreateImageWithProperties no_image
#else
enum { HAS_IMAGES = 1 };
#endif

#endif
