/* finding.c: writes each mistake as it happens; the session folds repeats. */
#define _GNU_SOURCE
#include "finding.h"

#include "../base/call.h"
#include "../base/ring.h"
#include "freed_handles.h"

#include <string.h>

static void write_finding(enum gmtdiag code, const char *function, struct gmtdiagfields fields)
{
	fields.time = gmt_now();
	fields.diag = code;
	struct gmtevent event = gmtdiag_event(fields);
	gmt_ring_write_payload(&event, function, strlen(function));
}

static struct gmtdiagfields fields_about(const struct gmt_memory *memory)
{
	return (struct gmtdiagfields){
		.scope = gmt_context_id(memory->context), .tag = memory->object.tag, .object = memory->object.id, .bytes = memory->size,
	};
}

void gmt_finding(enum gmtdiag code, const char *function, const struct gmt_memory *memory, cl_int status)
{
	struct gmtdiagfields fields = fields_about(memory);
	fields.status = gmt_clamp16(status);
	write_finding(code, function, fields);
}

void gmt_finding_kernel(enum gmtdiag code, const char *function, const struct gmt_memory *memory, uint64_t kernel)
{
	struct gmtdiagfields fields = fields_about(memory);
	fields.kernel = kernel;
	write_finding(code, function, fields);
}

bool gmt_finding_freed_handle(enum gmtdiag code, const char *function, const void *handle)
{
	struct gmt_freed_handle freed;
	bool known = gmt_freed_handle_find(handle, &freed);
	if (known)
		write_finding(code, function, (struct gmtdiagfields){.tag = freed.tag, .object = freed.object, .bytes = freed.size});
	return known;
}

void gmt_finding_out_of_memory(const char *function, const struct gmt_memory *memory, uint64_t kernel, cl_int status)
{
	if (status != CL_MEM_OBJECT_ALLOCATION_FAILURE && status != CL_OUT_OF_RESOURCES && status != CL_OUT_OF_HOST_MEMORY)
		return;
	struct gmtdiagfields fields = memory ? fields_about(memory) : (struct gmtdiagfields){0};
	fields.status = gmt_clamp16(status);
	fields.kernel = kernel;
	write_finding(GMT_DIAG_OUT_OF_MEMORY, function, fields);
}

void gmt_finding_call_failed(const char *function, uint32_t tag, cl_int status)
{
	write_finding(GMT_DIAG_CALL_FAILED, function, (struct gmtdiagfields){.tag = tag, .status = gmt_clamp16(status)});
}

void gmt_finding_unknown_memory(const char *function, cl_int status)
{
	write_finding(GMT_DIAG_UNKNOWN_MEMORY, function, (struct gmtdiagfields){.status = gmt_clamp16(status)});
}

bool gmt_finding_released(const struct gmt_memory *memory, const char *function)
{
	if (gmt_likely(atomic_load_explicit(&memory->references, memory_order_relaxed) > 0))
		return false;
	bool pooled = atomic_load(&memory->pooled);
	if (pooled || memory->block) /* else a sub-buffer keeps it alive in the driver, where the call may succeed */
		gmt_finding(GMT_DIAG_USE_AFTER_RELEASE, function, memory, pooled ? CL_INVALID_MEM_OBJECT : CL_SUCCESS);
	return pooled;
}
