/*
 * conformance.h: checks of what the specification promises about memory objects. Each is made several times, so that a
 * pool has something to hand out again.
 */
#ifndef EXAMPLES_CONFORMANCE_H
#define EXAMPLES_CONFORMANCE_H

#define CL_TARGET_OPENCL_VERSION 300
#include "common.h"
#include "images.h"

/* What a check works with. */
struct bench {
	struct gpu gpu;
	cl_program program; /* kernels fill, add, slow and is_null: see main.c */
};

/* Says why a check fails: the text stays valid until the next call. */
const char *because(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends a check with what an OpenCL call answered, when that is not what it should have. */
#define WANT(code, expression)                                                                                         \
	do {                                                                                                           \
		cl_int answer_ = (expression);                                                                         \
		if (answer_ != (code))                                                                                 \
			return because("line %d: %s: %d instead of %d", __LINE__, #expression, answer_, (code));       \
	} while (0)
#define OK(expression) WANT(CL_SUCCESS, expression)

/* Ends a check when a condition does not hold. */
#define HOLDS(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return because("line %d: not %s", __LINE__, #condition);                                       \
	} while (0)

/* Passes on why something that a check uses has failed. */
#define PASS(expression)                                                                                               \
	do {                                                                                                           \
		const char *why_ = (expression);                                                                       \
		if (why_ != NULL)                                                                                      \
			return why_;                                                                                   \
	} while (0)

/* One check: NULL, or why it failed. */
typedef const char *(*check)(struct bench *bench);

/* Creates a buffer; NULL when it cannot be. All checks create theirs here. */
cl_mem new_buffer(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host);

/* Creates one of the kernels. */
cl_kernel new_kernel(const struct bench *bench, const char *name);

/* NULL when all count numbers of the buffer are value. */
const char *all_are(const struct gpu *gpu, cl_mem buffer, size_t count, cl_uint value);

/* Fills count numbers of the buffer with value. */
cl_int set_all(const struct gpu *gpu, cl_mem buffer, size_t count, cl_uint value);

/* Waits up to 10 s until *what is at least that. */
bool reaches(_Atomic int *what, int least);

/* The number of references, 0 when it cannot be asked. */
cl_uint references(cl_mem object);

/* references.c */
const char *get_buffer_info(struct bench *bench);
const char *retain_mem_object_single(struct bench *bench);
const char *retain_mem_object_multiple(struct bench *bench);
const char *retain_mem_object_set_kernel_arg(struct bench *bench);
const char *mem_object_destructor_callback(struct bench *bench);
const char *context_destructor_callback(struct bench *bench);
const char *new_buffers_are_new(struct bench *bench);
const char *array_info_size(struct bench *bench);

/* flight.c */
const char *release_during_execute(struct bench *bench);
const char *kernel_arg_changes(struct bench *bench);
const char *null_buffer_arg(struct bench *bench);
const char *user_events(struct bench *bench);
const char *release_in_event_callback(struct bench *bench);
const char *multiple_contexts(struct bench *bench);
const char *two_queues(struct bench *bench);
const char *parts_keep_the_whole(struct bench *bench);

/* contents.c */
const char *sub_buffers_read_write(struct bench *bench);
const char *sub_buffers_overlapping(struct bench *bench);
const char *buffer_map_read(struct bench *bench);
const char *buffer_map_write(struct bench *bench);
const char *mem_read_only_flags(struct bench *bench);
const char *mem_write_only_flags(struct bench *bench);
const char *mem_copy_host_flags(struct bench *bench);
const char *mem_use_host_flags(struct bench *bench);
const char *mem_alloc_ref_flags(struct bench *bench);
const char *buffer_migrate(struct bench *bench);
const char *halves_of_threads_migrate(struct bench *bench);
const char *mem_host_flags(struct bench *bench);
const char *allocations(struct bench *bench);

/* pictures.c */
const char *images_released_during_execute(struct bench *bench);
const char *new_images_are_new(struct bench *bench);
const char *image_copy_host_flags(struct bench *bench);
const char *images_of_two_queues(struct bench *bench);

/* addresses.c */
const char *new_svm_is_new(struct bench *bench);
const char *buffers_in_svm(struct bench *bench);
const char *svm_freed_in_turn(struct bench *bench);
const char *svm_of_two_queues(struct bench *bench);

/* Leaves buffers to be released by atexit and by a destructor, in use and not. */
void leave_to_exit(struct bench *bench);

#endif
