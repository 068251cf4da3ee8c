/* mapping.h: the pointers that sub-allocations, and the program's sub-buffers of these, are mapped to. */
#ifndef GMT_MAPPING_H
#define GMT_MAPPING_H

#include "../base/opencl.h"

void gmt_mapping_add(cl_mem handle, const void *pointer);
/* Whether a pointer is a mapping of the handle. Also true if the driver knows better, or there are more mappings than we keep. */
bool gmt_mapping_known(cl_mem handle, const void *pointer);
void gmt_mapping_remove(cl_mem handle, const void *pointer);

#endif
