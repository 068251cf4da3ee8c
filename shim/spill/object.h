/*
 * object.h: virtual objects. With --spill the cl_mem of a buffer is ours. The driver's object behind it, the real one, is
 * created at the first use, and may go to host memory and come back while no command uses it.
 *
 * A buffer moves with all its sub-buffers and images that are made of them: it is their root. What belongs to a root is under its lock, which is held for a few
 * instructions. Whether it has a real object changes only under the residency lock (residency.h) and the root's.
 */
#ifndef GMT_SPILL_OBJECT_H
#define GMT_SPILL_OBJECT_H

#include "../base/opencl.h"

struct gmt_spill_queue;
struct gmt_spill_context;

/* The last command on one queue that used a root. */
struct gmt_spill_last {
	struct gmt_spill_queue *queue;
	uint64_t id, position;
};
#define GMT_SPILL_LASTS 6
#define GMT_SPILL_GAPS 6

struct gmt_spill_ending {
	struct gmt_spill_ending *next;
	void(CL_CALLBACK *notify)(cl_mem, void *);
	void *data;
};

/* Format and description with which an image was created on its parent. */
struct gmt_spill_image {
	cl_image_format format;
	cl_image_desc desc;
};

struct gmt_spill_object {
	/* What ICD loaders find in each object: the table of its driver, and in newer drivers the loader's own data. */
	void *dispatch[2];
	_Atomic uint64_t serial;     /* never used again; 0: the object is free */
	_Atomic uint32_t references; /* the program's */
	_Atomic uint32_t holds;      /* 1 for all of these, and those of sub-buffers, mappings and images */
	_Atomic uint32_t children;   /* sub-buffers and images */
	_Atomic uint32_t parts;      /* of a root: those of them that have a real one */
	struct gmt_spill_object *root, *parent; /* parent: NULL of a root */
	struct gmt_spill_context *context;
	size_t size, origin;   /* origin: in its parent */
	struct gmt_spill_image *image; /* NULL: it is a buffer or a sub-buffer */
	cl_mem_flags flags;    /* as given */
	_Atomic cl_mem_flags reported; /* of what has a parent, by the driver; 0: it was not asked yet */
	_Atomic uint32_t lock; /* of a root: what follows, of its sub-buffers, too */
	cl_mem real;           /* NULL: it has none now */
	uint32_t made;         /* counts the real objects so far */
	bool leaving;          /* its contents are on their way to the host */
	/* Only of a root from here on. */
	bool contents;         /* something was written: they must be kept */
	bool clean;            /* the host's copy is the same */
	bool fixed;            /* it must stay: we cannot make its images again, or not follow its commands */
	bool taken;            /* its memory was, at least once */
	bool many;             /* used on more queues than fit */
	uint32_t pins;         /* calls that are using it */
	uint32_t maps;
	uint32_t lasts;
	struct gmt_spill_last last[GMT_SPILL_LASTS];
	uint64_t tick;         /* of its last use, see next.h */
	uint32_t gaps;         /* how many there were so far */
	uint32_t gap[GMT_SPILL_GAPS]; /* between two uses: the latest ones */
	void *host;            /* room for its contents; NULL: none yet */
	uint64_t id;           /* in records; 0: not known yet */
	uint32_t tag;
	/* Under the residency lock. */
	struct gmt_spill_object *next, *previous; /* roots that have a real object */
	bool chosen;                              /* to leave soon, see choose.c */
	struct gmt_spill_object *child, *sibling; /* sub-buffers and images of a root */
	struct gmt_spill_object *ended;           /* in the list of those that have ended */
	_Atomic(struct gmt_spill_ending *) endings; /* callbacks, latest first */
};

/* Reserves the addresses of all objects. False: there is no room for them. */
bool gmt_spill_objects_begin(void);
/* Whether handle is, or was, one of ours. No memory is read. */
bool gmt_spill_is_ours(const void *handle);
/* The object of a handle that is valid; NULL for all others, of the driver or not. */
struct gmt_spill_object *gmt_spill_find(cl_mem handle);
/* A new object with one reference; NULL: there are too many. */
struct gmt_spill_object *gmt_spill_object_new(struct gmt_spill_context *context);
/* From here on the handle is invalid; it is used again late. */
void gmt_spill_object_free(struct gmt_spill_object *object);
/* An object has no hold left, and its memory has gone back. */
void gmt_spill_count_ending(void);
void gmt_spill_count_ended(void);
/* Whether memory of such an object has gone back since seen, which it sets, or is on its way: it is in no list. */
bool gmt_spill_has_any_ended(uint64_t *seen);

/* The driver's handle for the program's, which may be the driver's; while the object is pinned. */
cl_mem gmt_spill_real_handle(cl_mem handle);

static inline cl_mem gmt_spill_handle(struct gmt_spill_object *object)
{
	return (cl_mem)(void *)object;
}

#endif
