/* fake_ext.c: extension functions. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <string.h>

static cl_mem intel_buffer(cl_context context, const cl_mem_properties_intel *properties, cl_mem_flags flags, size_t size,
			   void *host, cl_int *errcode)
{
	return clCreateBufferWithProperties(context, (const cl_mem_properties *)properties, flags, size, host, errcode);
}

static cl_int migrate(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_mem_migration_flags_ext flags, cl_uint waits,
		      const cl_event *list, cl_event *event)
{
	return clEnqueueMigrateMemObjects(queue, count, memories, flags, waits, list, event);
}

static cl_command_buffer_khr new_recording(cl_uint count, const cl_command_queue *queues,
					   const cl_command_buffer_properties_khr *properties, cl_int *errcode)
{
	FAKE_LOCKED;
	(void)properties;
	bool valid = count && queues && fake_alive(queues[0], FAKE_QUEUE);
	if (errcode)
		*errcode = valid ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
	if (!valid)
		return NULL;
	cl_command_buffer_khr buffer = fake_new(FAKE_RECORDING, sizeof *buffer);
	buffer->queue = queues[0];
	fake_hold(queues[0]);
	return buffer;
}

static cl_int retain_recording(cl_command_buffer_khr buffer)
{
	return fake_retain(buffer, FAKE_RECORDING, CL_INVALID_COMMAND_BUFFER_KHR);
}

static cl_int release_recording(cl_command_buffer_khr buffer)
{
	return fake_release(buffer, FAKE_RECORDING, CL_INVALID_COMMAND_BUFFER_KHR);
}

void fake_record(cl_command_buffer_khr buffer, cl_mem memory)
{
	FAKE_LOCKED;
	if (!fake_alive(buffer, FAKE_RECORDING) || !fake_alive(memory, FAKE_MEMORY) || buffer->memories == FAKE_USES)
		fake_fail("this cannot be recorded");
	buffer->owner[buffer->memories] = fake_root(memory)->owner;
	buffer->memory[buffer->memories++] = memory;
}

/* What is recorded runs on the last of the queues. */
static cl_int replay(cl_uint count, cl_command_queue *queues, cl_command_buffer_khr buffer, cl_uint waits, const cl_event *list,
		     cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(buffer, FAKE_RECORDING))
		return CL_INVALID_COMMAND_BUFFER_KHR;
	for (unsigned i = 0; i < buffer->memories; i++)
		if (fake_alive(buffer->memory[i], FAKE_MEMORY))
			fake.hazards += fake_root(buffer->memory[i])->owner != buffer->owner[i];
	cl_command_queue queue = count && queues ? queues[count - 1] : buffer->queue;
	return fake_submit(queue, CL_FALSE, buffer->memories, buffer->memory, waits, list, event);
}

static cl_int terminate(cl_context context)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	context->terminated = true;
	fake_fail_context(context, CL_CONTEXT_TERMINATED_KHR);
	return CL_SUCCESS;
}

static cl_int something(void)
{
	return CL_INVALID_OPERATION;
}

void *fake_extension(const char *name)
{
	typedef void (*function)(void);
	static const struct {
		const char *name;
		function address;
	} known[] = {
		{"clCreateBufferWithPropertiesINTEL", (function)intel_buffer},
		{"clEnqueueMigrateMemObjectEXT", (function)migrate},
		{"clCreateCommandBufferKHR", (function)new_recording},
		{"clRetainCommandBufferKHR", (function)retain_recording},
		{"clReleaseCommandBufferKHR", (function)release_recording},
		{"clEnqueueCommandBufferKHR", (function)replay},
		{"clTerminateContextKHR", (function)terminate},
		{"clEnqueueSomethingVENDOR", (function)something},
		{"clEnqueueWaitSemaphoresKHR", (function)something},
		{"clGetKernelSubGroupInfoKHR", (function)something},
		{"clSVMFreeWithPropertiesKHR", (function)something},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(known[i].name, name) == 0) {
			void *address;
			memcpy(&address, &known[i].address, sizeof address);
			return address;
		}
	}
	return fake_unified(name);
}
