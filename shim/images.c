/*
 * images.c: images share memory with buffers, and drivers may refuse to make one of a sub-buffer (PoCL 3.1 does). In
 * front of such a driver a buffer that is part of a slab would show, so there a program that can make images gets
 * buffers of their own. Whether it can is seen from what its files import, and from what it looks up.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <link.h>
#include <string.h>

_Atomic int gmt_images_wanted;
static _Atomic int looked;

/* What a file's dynamic section says of its symbols. */
struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *hash, *gnuhash;
};

static const void *at(const struct dl_phdr_info *file, ElfW(Addr) address)
{
	return (const void *)(address < file->dlpi_addr ? address + file->dlpi_addr : address);
}

static struct symbols symbols_of(const struct dl_phdr_info *file)
{
	struct symbols s = {0};
	const ElfW(Dyn) *entry = NULL;
	for (unsigned i = 0; i < file->dlpi_phnum; i++)
		if (file->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		switch (entry->d_tag) {
		case DT_SYMTAB:
			s.table = at(file, entry->d_un.d_ptr);
			break;
		case DT_STRTAB:
			s.names = at(file, entry->d_un.d_ptr);
			break;
		case DT_HASH:
			s.hash = at(file, entry->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			s.gnuhash = at(file, entry->d_un.d_ptr);
			break;
		default:
			break;
		}
	return s;
}

static bool makes_images(const char *name)
{
	return strncmp(name, "clCreateImage", strlen("clCreateImage")) == 0;
}

/* The GNU table holds only what a file defines, and says where that begins: what it imports stands before. */
static int look_into(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size, (void)unused;
	struct symbols s = symbols_of(file);
	uint32_t count = s.gnuhash ? s.gnuhash[1] : s.hash ? s.hash[1] : 0;
	for (uint32_t i = 1; s.table && s.names && i < count; i++)
		if (s.table[i].st_shndx == SHN_UNDEF && makes_images(s.names + s.table[i].st_name))
			return 1;
	return 0;
}

/* The driver makes images, but none of a sub-buffer. */
static bool refuses_in(cl_context context, uint32_t align)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 4};
	cl_buffer_region region = {align, 16};
	cl_int err = CL_SUCCESS;
	cl_mem whole = gmt_next.clCreateBuffer(context, 0, align + 16u, NULL, &err), images[2] = {NULL, NULL};
	if (!whole)
		return false;
	cl_mem part = gmt_next.clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	for (int i = 0; i < 2; i++) {
		desc.mem_object = i ? part : whole;
		images[i] = desc.mem_object && gmt_next.clCreateImage ? gmt_next.clCreateImage(context, 0, &format, &desc, NULL, &err) : NULL;
	}
	bool refused = images[0] && !images[1];
	cl_mem all[] = {images[0], images[1], part, whole};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i])
			gmt_next.clReleaseMemObject(all[i]);
	return refused;
}

/* Tried in a context of its own, because a driver may leave traces of what it has refused (PoCL 3.1 keeps a reference). */
static bool refuses(const struct gmt_context *context)
{
	cl_int err = CL_SUCCESS;
	cl_context own = gmt_next.clCreateContext(NULL, 1, &context->device, NULL, NULL, &err);
	bool refused = own && refuses_in(own, context->align);
	if (own)
		gmt_next.clReleaseContext(own);
	return refused;
}

bool gmt_images_of_parts(struct gmt_context *context)
{
	uint8_t images = atomic_load_explicit(&context->images, memory_order_relaxed);
	if (images != GMT_IMAGES_UNTRIED)
		return images == GMT_IMAGES_OF_PARTS;
	if (!atomic_exchange(&looked, 1) && dl_iterate_phdr(look_into, NULL))
		atomic_store(&gmt_images_wanted, 1);
	if (!atomic_load_explicit(&gmt_images_wanted, memory_order_relaxed))
		return true; /* so far */
	static _Atomic int known; /* of the first device: 1 + enum gmt_images */
	static _Atomic(cl_device_id) first;
	bool same = atomic_load(&known) && atomic_load(&first) == context->device;
	images = same ? (uint8_t)(atomic_load(&known) - 1) : refuses(context) ? GMT_IMAGES_OF_WHOLES : GMT_IMAGES_OF_PARTS;
	atomic_store(&context->images, images);
	if (!atomic_load(&known)) {
		atomic_store(&first, context->device);
		atomic_store(&known, 1 + images);
	}
	return images == GMT_IMAGES_OF_PARTS;
}
