/* hidden_references.h: the reference counts of contexts and queues, without what only the pool keeps alive. */
#ifndef GMT_HIDDEN_REFERENCES_H
#define GMT_HIDDEN_REFERENCES_H

#include "../registry/objects.h"

/* Return the references that the program must see; count: the driver's answer. */
cl_uint gmt_hidden_context_references(cl_context handle, cl_uint count);
cl_uint gmt_hidden_queue_references(struct gmt_queue *queue, cl_uint count);

#endif
