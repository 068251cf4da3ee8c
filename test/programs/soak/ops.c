/* ops.c: which operations a seed stands for, and running one. */
#include "soak.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

uint64_t mix(uint64_t x) /* the output function of splitmix64 */
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return mix(*state);
}

size_t below(struct thread *t, size_t limit)
{
	return (size_t)(draw(&t->random) >> 11) % limit;
}

bool once_in(struct thread *t, size_t n)
{
	return below(t, n) == 0;
}

/* How often an operation is drawn, its name in a listing, and what runs it. */
static const struct kind {
	const char *name;
	unsigned weight;
	void (*run)(struct thread *t, const struct op *op);
} kinds[] = {
	{"create", 22, op_create},
	{"release", 12, op_release},
	{"kernel", 14, op_kernel},
	{"slow", 12, op_slow},
	{"overtake", 8, op_overtake},
	{"again", 4, op_again},
	{"clone", 3, op_clone},
	{"native", 2, op_native},
	{"write", 8, op_write},
	{"read", 8, op_read},
	{"fill", 5, op_fill},
	{"copy", 8, op_copy},
	{"copyrect", 4, op_copy_rect},
	{"hostrect", 5, op_host_rect},
	{"migrate", 2, op_migrate},
	{"sub", 6, op_sub},
	{"image", 3, op_image},
	{"texels", 3, op_texels},
	{"imagecopy", 6, op_image_copy},
	{"imagekernel", 3, op_image_kernel},
	{"imagemap", 3, op_image_map},
	{"svm", 6, op_svm},
	{"svmkernel", 3, op_svm_kernel},
	{"map", 6, op_map},
	{"unmap", 3, op_unmap},
	{"retain", 4, op_retain},
	{"handoff", 4, op_handoff},
	{"reap", 3, op_reap},
	{"destructor", 3, op_destructor},
	{"callback", 4, op_event_callback},
	{"events", 4, op_events},
	{"fail", 3, op_fail},
	{"opengate", 6, op_open_gate},
	{"finish", 2, op_finish},
	{"flush", 3, op_flush},
	{"wait", 2, op_wait},
	{"poll", 2, op_poll},
	{"marker", 2, op_marker},
	{"barrier", 2, op_barrier},
	{"query", 6, op_query},
	{"bad", 6, op_bad},
	{"queue", 2, op_renew_queue},
	{"latequeue", 2, op_late_queue},
	{"retainqueue", 2, op_retain_queue},
	{"context", 1, op_renew_context},
	{"side", 1, op_side_context},
	{"stream", 1, op_stream},
	{"large", 1, op_large},
	{"far", 4, op_far},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static unsigned kind_draw(uint64_t *random)
{
	unsigned total = 0, at = 0;
	for (unsigned i = 0; i < KINDS; i++)
		total += kinds[i].weight;
	unsigned left = (unsigned)(draw(random) >> 33) % total;
	while (left >= kinds[at].weight)
		left -= kinds[at++].weight;
	return at;
}

struct op op_make(const struct options *options, unsigned number)
{
	uint64_t random = mix(options->seed) ^ mix(number + 1u);
	struct op op = {.number = number, .thread = number / options->ops};
	op.kind = kind_draw(&random);
	op.a = (unsigned)(draw(&random) >> 33) % SLOTS;
	op.b = (unsigned)(draw(&random) >> 33) % SLOTS;
	op.queue = (unsigned)(draw(&random) >> 33) % options->queues;
	op.random = draw(&random);
	return op;
}

void op_print(const struct op *op)
{
	printf("%u thread %u %s slot %u slot %u queue %u\n", op->number, op->thread, kinds[op->kind].name, op->a, op->b,
	       op->queue);
}

void op_run(struct thread *t, const struct op *drawn)
{
	struct op here = *drawn, *op = &here;
	here.queue %= t->queues; /* some come late */
	atomic_store(&t->op, op->number);
	t->random = op->random;
	note(t, "%s slot %u slot %u queue %u", kinds[op->kind].name, op->a, op->b, op->queue);
	observe(t, op->number);
	kinds[op->kind].run(t, op);
	pending_sweep(t, false);
}

static __attribute__((format(printf, 2, 0))) void say(const struct thread *t, const char *format, va_list list)
{
	char text[512];
	vsnprintf(text, sizeof text, format, list);
	fprintf(stderr, "soak: op %u (thread %u): %s\n", atomic_load(&t->op), t->index, text);
}

_Noreturn void broken(const struct thread *t, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(t, format, list);
	va_end(list);
	fflush(stderr);
	_exit(1);
}

void note(const struct thread *t, const char *format, ...)
{
	if (!t->options->trace)
		return;
	va_list list;
	va_start(list, format);
	say(t, format, list);
	va_end(list);
}

void must(const struct thread *t, cl_int status, const char *what)
{
	if (status != CL_SUCCESS)
		broken(t, "OpenCL error %d: %s", status, what);
}

void observe(struct thread *t, uint64_t value)
{
	t->hash = checksum(t->hash, &value, sizeof value);
	note(t, "observed %llu", (unsigned long long)value);
}
