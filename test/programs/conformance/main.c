/*
 * conformance: checks what the specification promises about memory objects, each three times over; most have the names
 * of the Khronos tests that measure the same. Prints a line for each, and exits with 1 when one has failed.
 *
 *	conformance
 */
#include "conformance.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *source =
	"kernel void fill(global uint *data, uint value) { data[get_global_id(0)] = value; }\n"
	"kernel void add(global const uint *from, global uint *to, uint by) { to[get_global_id(0)] = from[get_global_id(0)] + by; }\n"
	"kernel void slow(global uint *data, uint rounds) {\n"
	"	uint x = data[get_global_id(0)];\n"
	"	for (uint i = 0; i < rounds; i++)\n"
	"		x = x * 1664525u + 1013904223u;\n"
	"	data[get_global_id(0)] = x;\n"
	"}\n"
	"kernel void is_null(global const uint *from, global uint *to) { to[get_global_id(0)] = from == 0; }\n";

static const struct {
	const char *name;
	check run;
} checks[] = {
#define CHECK_NAMED(name) {#name, name}
	CHECK_NAMED(get_buffer_info),
	CHECK_NAMED(retain_mem_object_single),
	CHECK_NAMED(retain_mem_object_multiple),
	CHECK_NAMED(retain_mem_object_set_kernel_arg),
	CHECK_NAMED(mem_object_destructor_callback),
	CHECK_NAMED(context_destructor_callback),
	CHECK_NAMED(new_buffers_are_new),
	CHECK_NAMED(array_info_size),
	CHECK_NAMED(sub_buffers_read_write),
	CHECK_NAMED(sub_buffers_overlapping),
	CHECK_NAMED(buffer_map_read),
	CHECK_NAMED(buffer_map_write),
	CHECK_NAMED(mem_read_only_flags),
	CHECK_NAMED(mem_write_only_flags),
	CHECK_NAMED(mem_copy_host_flags),
	CHECK_NAMED(mem_use_host_flags),
	CHECK_NAMED(mem_alloc_ref_flags),
	CHECK_NAMED(buffer_migrate),
	CHECK_NAMED(mem_host_flags),
	CHECK_NAMED(kernel_arg_changes),
	CHECK_NAMED(null_buffer_arg),
	CHECK_NAMED(release_during_execute),
	CHECK_NAMED(parts_keep_the_whole),
	CHECK_NAMED(images_released_during_execute),
	CHECK_NAMED(new_images_are_new),
	CHECK_NAMED(image_copy_host_flags),
	CHECK_NAMED(new_svm_is_new),
	CHECK_NAMED(buffers_in_svm),
	CHECK_NAMED(svm_freed_in_turn),
	CHECK_NAMED(allocations),
	/* From here on there are user events and second queues, with which a pool may have to be more careful. */
	CHECK_NAMED(release_in_event_callback),
	CHECK_NAMED(multiple_contexts),
	CHECK_NAMED(two_queues),
	CHECK_NAMED(halves_of_threads_migrate),
	CHECK_NAMED(images_of_two_queues),
	CHECK_NAMED(svm_of_two_queues),
	CHECK_NAMED(user_events),
};

const char *because(const char *format, ...)
{
	static char text[512];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	return text;
}

__attribute__((noinline)) cl_mem new_buffer(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host)
{
	return clCreateBuffer(gpu->context, flags, size, host, NULL);
}

cl_kernel new_kernel(const struct bench *bench, const char *name)
{
	return gpu_kernel(bench->program, name);
}

const char *all_are(const struct gpu *gpu, cl_mem buffer, size_t count, cl_uint value)
{
	const char *why = NULL;
	cl_uint *host = allocate(count * sizeof *host);
	cl_int code = clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, count * sizeof *host, host, 0, NULL, NULL);
	if (code != CL_SUCCESS)
		why = because("read: %d", code);
	for (size_t i = 0; i < count && why == NULL; i++)
		if (host[i] != value)
			why = because("number %zu of %zu is %u instead of %u", i, count, host[i], value);
	free(host);
	return why;
}

cl_int set_all(const struct gpu *gpu, cl_mem buffer, size_t count, cl_uint value)
{
	return clEnqueueFillBuffer(gpu->queue, buffer, &value, sizeof value, 0, count * sizeof value, 0, NULL, NULL);
}

bool reaches(_Atomic int *what, int least)
{
	for (int i = 0; i < 10000; i++) {
		if (*what >= least)
			return true;
		pause_us(1000);
	}
	return *what >= least;
}

cl_uint references(cl_mem object)
{
	cl_uint count = 0;
	return clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL) == CL_SUCCESS ? count : 0;
}

int main(int argc, char **argv)
{
	arguments_read(argc, argv, "", 0);
	struct bench bench = {.gpu = gpu_open(0)};
	bench.program = gpu_build(&bench.gpu, source);
	int failed = 0;
	for (int round = 1; round <= 3; round++) {
		for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
			const char *why = checks[i].run(&bench);
			printf("%s %s%s\n", checks[i].name, why ? "FAILED: " : "ok", why ? why : "");
			failed += why != NULL;
			if (fflush(stdout) != 0)
				fail("conformance: cannot write: %s", strerror(errno));
		}
	}
	leave_to_exit(&bench);
	return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
