/*
 * common.h: what the example programs share: opening a device (gpu.c), checking errors, reading arguments and hashing
 * results (common.c, which needs no OpenCL).
 *
 * Buffers are created and released in the programs themselves, each in a function of its own: these functions are
 * the call sites that gpumemtop shows.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#ifndef CL_TARGET_OPENCL_VERSION /* programs that ask a driver for everything set a later one */
#define CL_TARGET_OPENCL_VERSION 120
#endif
#define _POSIX_C_SOURCE 200809L

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One device with a context and a queue. */
struct gpu {
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
};

/* The first device of the first platform. */
cl_device_id gpu_device(void);

/* Opens that device. properties are those of the queue. */
struct gpu gpu_open(cl_command_queue_properties properties);

/* Finishes the queue and releases what gpu_open created. */
void gpu_close(struct gpu *gpu);

/* Builds source for the device. On failure the build log goes to stderr and the program exits. */
cl_program gpu_build(const struct gpu *gpu, const char *source);

/* Looks a kernel up in a program. */
cl_kernel gpu_kernel(cl_program program, const char *name);

/* Sets every argument of a kernel: pairs of (size_t size, const void *value), ended by a size of 0. */
void gpu_arguments(cl_kernel kernel, ...);

/* Enqueues items work items on the queue and returns at once. */
void gpu_run(const struct gpu *gpu, cl_kernel kernel, size_t items);

/* Adds the contents of a buffer to a checksum, reading it in pieces; waits for the queue. */
uint64_t checksum_buffer(uint64_t hash, const struct gpu *gpu, cl_mem buffer, size_t size);

/* Ends the program with a message when an OpenCL call failed. */
#define CHECK(status) check_status((status), #status, __FILE__, __LINE__)
void check_status(cl_int status, const char *what, const char *file, int line);

/* Ends the program with a message: printf format, no newline needed. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The command line: PROGRAM [-t] [NUMBER | SIZE]... */
struct arguments {
	const char *program; /* for messages */
	bool timing;         /* -t: say on stderr how long the work took */
	int count;
	char **values;
	const char *usage;
};

/* Takes the options off the command line; at most limit words may follow. */
struct arguments arguments_read(int argc, char **argv, const char *usage, int limit);

/* The word at index as a count of at least 1, or fallback when it was not given. */
size_t arguments_count(const struct arguments *arguments, int index, size_t fallback);

/* The word at index as a size in bytes, with suffix K, M or G, rounded down to a multiple of 4; at least 4. */
size_t arguments_size(const struct arguments *arguments, int index, size_t fallback);

/* Whether the word at index is "merged": the program then follows gpumemtop advise. */
bool arguments_merged(const struct arguments *arguments, int index);

/* FNV-1a, 64 bits, a word of eight bytes at a time; what is left over at the end byte by byte. */
#define CHECKSUM_START 0xcbf29ce484222325ull
uint64_t checksum(uint64_t hash, const void *data, size_t size);

/* Fills data with numbers that depend on nothing but seed. */
void fill_random(void *data, size_t size, uint64_t seed);

/* CLOCK_MONOTONIC in ns. */
uint64_t now_ns(void);

/* Sleeps; us: less than a second. */
void pause_us(long us);

/* Says on stderr how long the work since start took, when -t was given. */
void report_time(const struct arguments *arguments, uint64_t start);

/* Prints the program's one line of output and flushes it. */
void print_checksum(const struct arguments *arguments, uint64_t hash);

/* Memory that is never NULL; free with free(). */
void *allocate(size_t size);

/* One call site: a function that creates one buffer. */
#define SITE(name)                                                                                                     \
	static __attribute__((noinline)) cl_mem name(const struct gpu *gpu, size_t size)                               \
	{                                                                                                              \
		cl_int status;                                                                                         \
		cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);                  \
		CHECK(status);                                                                                         \
		return buffer;                                                                                         \
	}

#endif
