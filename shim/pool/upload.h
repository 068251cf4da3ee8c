/* upload.h: fills a recycled block before the program gets it, for COPY_HOST_PTR and for --scrub. */
#ifndef GMT_UPLOAD_H
#define GMT_UPLOAD_H

#include "../../internal/wire/event.h"
#include "../registry/objects.h"

/* Bytes of one fill. NVIDIA's of 8 GiB never ends (580.159 on an H200); one of 4 GiB does. Less in tests. */
#ifndef GMT_FILL_MOST
#define GMT_FILL_MOST ((size_t)1 << 30)
#endif

/* Both return false if the first size bytes of handle could not be filled. */
bool gmt_upload_buffer(struct gmt_context *context, cl_mem handle, size_t size, const void *host);
bool gmt_scrub_buffer(struct gmt_context *context, cl_mem handle, size_t size);
/* The same for all of an image, which is no array if it has contents; host: with the pitches of desc. */
bool gmt_upload_image(struct gmt_context *context, cl_mem handle, const cl_image_desc *desc, const void *host);
/* Shared memory of a kind that the host can write, or shared virtual memory. */
bool gmt_scrub_pointer(struct gmt_context *context, enum gmtmemory kind, void *pointer, size_t size);
/* The elements of an image in each dimension, where arrays have one more. False: the driver does not say. */
bool gmt_image_region(cl_mem handle, size_t region[3]);
bool gmt_scrub_image(struct gmt_context *context, cl_mem handle, const cl_image_desc *desc);
/* Our queue of a context on its first device, NULL if there can be none. Who gets it calls gmt_upload_leave. */
cl_command_queue gmt_upload_queue(struct gmt_context *context);
void gmt_upload_leave(struct gmt_context *context);
/* Releases our queue of a context that sleeps or was terminated, unless another thread uses it, which then does. */
void gmt_upload_drop_queue(struct gmt_context *context);

#endif
