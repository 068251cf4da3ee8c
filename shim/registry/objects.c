/* objects.c: see objects.h; table.h has the tables. */
#define _GNU_SOURCE
#include "objects.h"

#include "table.h"

/*
 * Most entries of a table, so that a program that leaks objects does not make us leak without bound: 80 MB for events with a
 * pool, 12 MB without; 65 MB for kernels of ten arguments.
 */
#define MANY (1u << 18)
#define FEW (1u << 16) /* of objects that cost the driver far more than us */

GMT_TABLE(contexts, gmt_context, 256, sizeof(struct gmt_context), FEW);
GMT_TABLE(queues, gmt_queue, 1024, sizeof(struct gmt_object), FEW); /* gmt_queue_recycle clears the rest */
GMT_TABLE(kernels, gmt_kernel, 4096, sizeof(struct gmt_kernel), MANY);
GMT_TABLE(events, gmt_event, 1 << 18, offsetof(struct gmt_event, of.wait), MANY); /* of.waits says which waits are valid */
GMT_TABLE(command_buffers, gmt_command_buffer, 64, sizeof(struct gmt_command_buffer), FEW);
GMT_TABLE(programs, gmt_counted, 1024, sizeof(struct gmt_counted), FEW);
GMT_TABLE(samplers, gmt_counted, 256, sizeof(struct gmt_counted), FEW);

struct gmt_context *gmt_context_find(cl_context handle)
{
	return (struct gmt_context *)gmt_table_find(&contexts, handle);
}

struct gmt_context *gmt_context_add(cl_context handle)
{
	struct gmt_context *context = (struct gmt_context *)gmt_table_add(&contexts, handle, false);
	if (context) {
		atomic_store(&context->references, 1);
		atomic_store(&context->life.holds, 1);
	}
	return context;
}

void gmt_context_uncount(struct gmt_context *context)
{
	gmt_table_uncount(&contexts, &context->object);
}

bool gmt_context_remove(struct gmt_context *context)
{
	return gmt_table_remove(&contexts, &context->object, false);
}

struct gmt_queue *gmt_queue_find(cl_command_queue handle)
{
	static __thread struct gmt_queue *last __attribute__((tls_model("initial-exec")));
	if (gmt_likely(last && handle && atomic_load_explicit(&last->object.handle, memory_order_relaxed) == handle))
		return last;
	return last = (struct gmt_queue *)gmt_table_find(&queues, handle);
}

struct gmt_queue *gmt_queue_add(cl_command_queue handle)
{
	struct gmt_queue *queue = (struct gmt_queue *)gmt_table_add(&queues, handle, false);
	if (queue)
		atomic_store(&queue->references, 1);
	return queue;
}

bool gmt_queue_remove(struct gmt_queue *queue)
{
	return gmt_table_remove(&queues, &queue->object, false);
}

void gmt_queue_recycle(struct gmt_queue *queue)
{
	gmt_lock(&queue->lock); /* see complete_command in order/queue.c */
	/*
	 * Uses may still point to this entry: they see another id, or at worst a queue with pending commands. The id goes under this
	 * lock, or a completion of an old command that comes now would count for the next queue.
	 */
	atomic_store(&queue->object.id, 0);
	atomic_store(&queue->context, NULL);
	atomic_store(&queue->closed, false);
	atomic_store(&queue->enqueued, 0);
	atomic_store(&queue->done, 0);
	atomic_store(&queue->fence, 0);
	atomic_store(&queue->handed, 0);
	atomic_store(&queue->ours, 0);
	atomic_store(&queue->settled, 0);
	for (unsigned i = 0; i < GMT_WINDOW / 64; i++)
		atomic_store(&queue->after[i], 0);
	gmt_unlock(&queue->lock);
	gmt_table_recycle(&queues, &queue->object);
}

struct queue_visit {
	void (*visit)(struct gmt_queue *, void *);
	void *arg;
};

static void visit_queue(struct gmt_object *o, void *arg)
{
	struct queue_visit *v = arg;
	v->visit((struct gmt_queue *)o, v->arg);
}

void gmt_queue_each(void (*visit)(struct gmt_queue *, void *), void *arg)
{
	gmt_table_each(&queues, visit_queue, &(struct queue_visit){visit, arg});
}

struct gmt_kernel *gmt_kernel_find(cl_kernel handle)
{
	static __thread struct gmt_kernel *last __attribute__((tls_model("initial-exec")));
	if (gmt_likely(last && handle && atomic_load_explicit(&last->object.handle, memory_order_relaxed) == handle))
		return last;
	return last = (struct gmt_kernel *)gmt_table_find(&kernels, handle);
}

struct gmt_kernel *gmt_kernel_add(cl_kernel handle, uint32_t arguments)
{
	uint64_t *argument = arguments ? calloc(arguments, sizeof *argument + 1) : NULL;
	if (arguments && !argument)
		return NULL;
	struct gmt_kernel *kernel = (struct gmt_kernel *)gmt_table_add(&kernels, handle, false);
	if (!kernel) {
		free(argument);
		return NULL;
	}
	kernel->argument = argument;
	kernel->kind = argument ? (uint8_t *)(argument + arguments) : NULL;
	kernel->arguments = arguments;
	atomic_store(&kernel->references, 1);
	return kernel;
}

void gmt_kernel_remove(struct gmt_kernel *kernel)
{
	uint64_t *argument = kernel->argument;
	if (gmt_table_remove(&kernels, &kernel->object, true))
		free(argument);
}

void gmt_events_begin(void)
{
	events.unordered = true;
	if (!gmt_follows_events())
		events.entry = events.cleared = offsetof(struct gmt_event, of);
}

struct gmt_event *gmt_event_find(cl_event handle)
{
	return (struct gmt_event *)gmt_table_find(&events, handle);
}

struct gmt_event *gmt_event_add(cl_event handle)
{
	struct gmt_event *event = (struct gmt_event *)gmt_table_add(&events, handle, false);
	if (event)
		atomic_store_explicit(&event->references, 1, memory_order_relaxed);
	return event;
}

bool gmt_event_remove(struct gmt_event *event)
{
	return gmt_table_remove(&events, &event->object, true);
}

struct gmt_command_buffer *gmt_command_buffer_find(cl_command_buffer_khr handle)
{
	return (struct gmt_command_buffer *)gmt_table_find(&command_buffers, handle);
}

struct gmt_command_buffer *gmt_command_buffer_add(cl_command_buffer_khr handle)
{
	struct gmt_command_buffer *buffer = (struct gmt_command_buffer *)gmt_table_add(&command_buffers, handle, false);
	if (buffer)
		atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
	return buffer;
}

bool gmt_command_buffer_remove(struct gmt_command_buffer *buffer)
{
	return gmt_table_remove(&command_buffers, &buffer->object, true);
}

static struct gmt_counted *add_counted(struct gmt_table *table, const void *handle)
{
	struct gmt_counted *counted = (struct gmt_counted *)gmt_table_add(table, handle, false);
	if (counted)
		atomic_store(&counted->references, 1);
	return counted;
}

struct gmt_counted *gmt_program_find(cl_program handle)
{
	return (struct gmt_counted *)gmt_table_find(&programs, handle);
}

struct gmt_counted *gmt_program_add(cl_program handle)
{
	return add_counted(&programs, handle);
}

bool gmt_program_remove(struct gmt_counted *program)
{
	return gmt_table_remove(&programs, &program->object, true);
}

struct gmt_counted *gmt_sampler_find(cl_sampler handle)
{
	return (struct gmt_counted *)gmt_table_find(&samplers, handle);
}

struct gmt_counted *gmt_sampler_add(cl_sampler handle)
{
	return add_counted(&samplers, handle);
}

bool gmt_sampler_remove(struct gmt_counted *sampler)
{
	return gmt_table_remove(&samplers, &sampler->object, true);
}
