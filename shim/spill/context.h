/* context.h: what --spill knows of a context: which flags its driver takes, and what of ours lives in it. */
#ifndef GMT_SPILL_CONTEXT_H
#define GMT_SPILL_CONTEXT_H

#include "../base/dispatch.h"
#include "../registry/object.h"

#define GMT_SPILL_CLASSES 64

struct gmt_spill_context {
	struct gmt_object object;
	void *dispatch[2];           /* its first words, see struct gmt_spill_object */
	_Atomic uint32_t references; /* the program's */
	_Atomic uint32_t live;       /* virtual objects */
	_Atomic uint32_t made;       /* their real objects */
	size_t largest;  /* bytes that each of its devices takes in one buffer */
	size_t align;    /* bytes, of sub-buffers on all of its devices, a power of two */
	cl_device_id device;
	bool discrete; /* all its devices have memory of their own */
	bool old;      /* one of them is of before OpenCL 1.2 */
	bool hasty;    /* its driver is rusticl */
	_Atomic uint32_t lock;
	cl_command_queue queue; /* ours, while anything is live */
	_Atomic(cl_mem) dummy;  /* stands for buffers without a real object in arguments of kernels */
	_Atomic uint32_t classes; /* used entries of the next two */
	cl_mem_flags given[GMT_SPILL_CLASSES];
	cl_mem_flags reported[GMT_SPILL_CLASSES];
	/* Kernels do not keep what is in their arguments alive. Others do, and the driver gets its memory back once they have something else. */
	_Atomic bool free_arguments;
	bool addressed[GMT_SPILL_CLASSES]; /* the driver reports an address on the host */
};

struct gmt_spill_context *gmt_spill_context_find(cl_context handle);
/* The entry of flags that the driver has made a buffer with; GMT_SPILL_CLASSES: none yet. */
uint32_t gmt_spill_context_class(struct gmt_spill_context *context, cl_mem_flags flags);
/*
 * flags with the access that the driver gave a buffer without any: with CL_MEM_COPY_HOST_PTR beside them it may give none, and
 * sub-buffers inherit it.
 */
cl_mem_flags gmt_spill_context_access(struct gmt_spill_context *context, cl_mem_flags flags);
/* The driver made a buffer with flags. */
void gmt_spill_context_learn(struct gmt_spill_context *context, cl_mem_flags flags, cl_mem real);
/* One more virtual object. */
void gmt_spill_context_hold(struct gmt_spill_context *context);
/* One less. With the last one what is ours goes. */
void gmt_spill_context_drop(struct gmt_spill_context *context);
/* NULL: the driver made none. Under the residency lock. */
cl_command_queue gmt_spill_context_queue(struct gmt_spill_context *context);
cl_mem gmt_spill_context_dummy(struct gmt_spill_context *context);
void gmt_spill_override_contexts(struct gmt_functions *over);

/* Puts a function of ours over the driver's, if it has one. */
#define GMT_SPILL_OVER(over, name, function)                                                                           \
	do {                                                                                                           \
		if ((over)->name)                                                                                      \
			(over)->name = (function);                                                                     \
	} while (0)

#endif
