/*
 * alias.c: see alias.h. In the driver, images and commands keep an alias alive, but an alias does not keep its slab alive, nor a
 * slab its store. So a store is freed with the last buffer over it: the driver reports its end once no command uses it.
 */
#define _GNU_SOURCE
#include "alias.h"

#include "../base/dispatch.h"

#include <stdlib.h>

#define PAGE 4096

struct gmt_store {
	_Atomic uint32_t users; /* buffers over it */
	struct gmt_context *context;
	cl_mem_flags flags; /* of each of them */
	char *bytes;
};

static void drop_store_user(struct gmt_store *store)
{
	if (atomic_fetch_sub(&store->users, 1) != 1)
		return;
	free(store->bytes);
	free(store);
}

static void CL_CALLBACK slab_ended(cl_mem handle, void *store)
{
	(void)handle;
	drop_store_user(store);
}

static void CL_CALLBACK alias_ended(cl_mem handle, void *data)
{
	(void)handle;
	struct gmt_store *store = data;
	atomic_fetch_sub_explicit(&store->context->pool.blocks, 1, memory_order_relaxed);
	drop_store_user(store);
}

/* The flags of buffers over a store: the program's, and those that the driver adds, such as the access (PoCL 3.1). */
static cl_mem_flags store_buffer_flags(cl_context context, cl_mem_flags flags)
{
	cl_int err = CL_SUCCESS;
	cl_mem plain = gmt_driver.clCreateBuffer(context, flags, 1, NULL, &err);
	if (plain) {
		gmt_driver.clGetMemObjectInfo(plain, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
		gmt_driver.clReleaseMemObject(plain);
	}
	return (flags & ~(cl_mem_flags)CL_MEM_ALLOC_HOST_PTR) | CL_MEM_USE_HOST_PTR;
}

struct gmt_store *gmt_store_new(struct gmt_context *context, size_t size, cl_mem_flags *flags, void **host)
{
	struct gmt_store *store = malloc(sizeof *store);
	if (!store || posix_memalign(host, PAGE, size) != 0) {
		free(store);
		return NULL;
	}
	*flags = store_buffer_flags((cl_context)atomic_load(&context->object.handle), *flags);
	atomic_init(&store->users, 1);
	store->context = context;
	store->flags = *flags;
	store->bytes = *host;
	return store;
}

/* False: the driver cannot report the end of handle, so this function has released handle. */
static bool set_end_callback(cl_mem handle, void(CL_CALLBACK *ended)(cl_mem, void *), struct gmt_store *store)
{
	if (gmt_driver.clSetMemObjectDestructorCallback && gmt_driver.clSetMemObjectDestructorCallback(handle, ended, store) == CL_SUCCESS)
		return true;
	gmt_driver.clReleaseMemObject(handle);
	return false;
}

bool gmt_store_serves(struct gmt_store *store, cl_mem slab)
{
	if (slab && set_end_callback(slab, slab_ended, store))
		return true;
	drop_store_user(store);
	return false;
}

cl_mem gmt_alias_of(struct gmt_memory *memory)
{
	struct gmt_store *store = memory->slab->store;
	cl_mem alias = atomic_load(&memory->alias), none = NULL;
	if (alias)
		return alias;
	cl_context context = (cl_context)atomic_load(&memory->context->object.handle);
	cl_int err = CL_SUCCESS;
	alias = gmt_driver.clCreateBuffer(context, store->flags, memory->size, store->bytes + memory->offset, &err);
	if (!alias)
		return NULL;
	atomic_fetch_add(&store->users, 1);
	atomic_fetch_add_explicit(&store->context->pool.blocks, 1, memory_order_relaxed); /* the program must not see it */
	if (!set_end_callback(alias, alias_ended, store)) {
		alias_ended(alias, store);
		return NULL;
	}
	if (atomic_compare_exchange_strong(&memory->alias, &none, alias))
		return alias;
	gmt_driver.clReleaseMemObject(alias); /* another thread was first */
	return none;
}

void gmt_alias_end(struct gmt_memory *memory)
{
	cl_mem alias = memory->slab->store ? atomic_exchange(&memory->alias, NULL) : NULL;
	if (alias)
		gmt_driver.clReleaseMemObject(alias);
}
