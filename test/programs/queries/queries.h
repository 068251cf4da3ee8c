/*
 * queries.h: what the parts of the queries program share: asking any kind of object everything, in every way that the
 * specification allows, and names for handles, so that two runs print the same.
 */
#ifndef EXAMPLES_QUERIES_H
#define EXAMPLES_QUERIES_H

#define CL_TARGET_OPENCL_VERSION 300
#include "common.h"
#include "images.h"

/* How the answer to a query is printed. */
enum answer {
	ANSWER_NUMBER,  /* cl_uint, cl_ulong, size_t, cl_bool by their size; also a list of one of them */
	ANSWER_HEX,     /* bits */
	ANSWER_HANDLES, /* handles or pointers, by name */
	ANSWER_TEXT,
	ANSWER_BYTES,   /* anything else, byte by byte */
	ANSWER_PRESENT, /* changes from run to run: only whether it is there */
};

/* One thing that can be asked. */
struct query {
	const char *name;
	cl_uint key;
	enum answer answer;
};

#define QUERY(key, answer) {#key, (key), (answer)}

/* clGet*Info of one kind of object; second is the device where the function takes one. */
typedef cl_int (*get_info)(const void *object, const void *second, cl_uint key, size_t room, void *value, size_t *needed);

/* All clGet*Info functions look alike: (object[, second], key, room, value, needed). */
#define GETTER(name, call)                                                                                             \
	static cl_int name(const void *object, const void *second, cl_uint key, size_t room, void *value, size_t *needed) \
	{                                                                                                              \
		(void)second;                                                                                          \
		return call;                                                                                           \
	}
#define AS(type, object) ((type)(uintptr_t)(object))

struct object {
	const char *label; /* begins each line */
	get_info get;
	const void *handle, *second;
};

/* Asks an object all of list and something unknown; prints a line for each. */
void ask_all(const struct object *object, const struct query *list, size_t count);

#define ASK(label, get, handle, second, list)                                                                          \
	ask_all(&(struct object){(label), (get), (handle), (second)}, (list), sizeof(list) / sizeof *(list))

/* From now on handle is printed as name, which must live on. The latest name counts. */
void name_add(const void *handle, const char *name);

/* Forgets a handle that is about to be released. */
void name_remove(const void *handle);

/* The name of a handle: "NULL", "other" for one that has none. */
const char *name_of(const void *handle);

/* Asks less: what drivers abort on, or before OpenCL 3.0 do not have, is left out. */
extern bool lenient, wholes;

/* The name of an error code, or "?". */
const char *error_name(cl_int code);

/* Prints one row of the error table. */
void print_error(const char *label, const char *function, const char *what, cl_int code);

/* The number of references that a context or a queue shows, once a driver's own threads have let go of theirs. */
void print_references(const char *moment, const struct gpu *gpu);

/*
 * A driver's threads let go of what a command used a little after clFinish. Counts an object's references every
 * millisecond, a limited number of times, until there are no more than are due; returns the least of the counts.
 */
cl_uint least_references(cl_uint (*count)(const void *object), const void *object, cl_uint due, int looks);

/* Waits until a buffer has no more references than are due. */
void settle(cl_mem buffer, cl_uint references);

/* Creates a buffer: the one place of these programs, so that what it gets was released by it before. */
cl_mem create_buffer(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host);

/* Memory of every kind, fresh and after others have come and gone. */
void ask_memory(const struct gpu *gpu);

/* Images of each type, of buffers too; pipes. */
void ask_images(const struct gpu *gpu);

/* Everything about one memory object. */
void ask_memory_object(const char *label, cl_mem handle);

/* Platform, device, context, queue, program, kernel, events. */
void ask_others(const struct gpu *gpu);

/* What creates and commands answer when they are asked for what cannot be. */
void refuse_creates(const struct gpu *gpu);
void refuse_commands(const struct gpu *gpu);
void refuse_rectangles(const struct gpu *gpu);
void refuse_others(const struct gpu *gpu);

#endif
