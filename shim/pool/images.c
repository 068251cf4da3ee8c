/*
 * images.c: an image may share memory with a buffer, and with some drivers an image of a sub-buffer fails, or shows
 * other memory. In front of such a driver the program could notice sub-allocations, so a program that can create images gets
 * whole blocks. It can if its files import, or if it looks up, a function that creates images.
 */
#define _GNU_SOURCE
#include "images.h"

#include "../base/dispatch.h"
#include "../base/ring.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

_Atomic int gmt_images_wanted;
static _Atomic unsigned long long looked; /* how many files had been loaded when we looked last */

/* Relocations. We only need their symbols, so those with and without an addend look alike. */
struct relocations {
	const char *first;
	size_t bytes, each;
};

/* Where a file's dynamic section says that its symbols are. */
struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *hash, *gnuhash;
	struct relocations calls, rel, rela;
};

static const void *at(const struct dl_phdr_info *file, ElfW(Addr) address)
{
	return (const void *)(address < file->dlpi_addr ? address + file->dlpi_addr : address);
}

static void learn(struct symbols *s, const struct dl_phdr_info *file, const ElfW(Dyn) *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		s->table = at(file, entry->d_un.d_ptr);
		break;
	case DT_STRTAB:
		s->names = at(file, entry->d_un.d_ptr);
		break;
	case DT_HASH:
		s->hash = at(file, entry->d_un.d_ptr);
		break;
	case DT_GNU_HASH:
		s->gnuhash = at(file, entry->d_un.d_ptr);
		break;
	case DT_JMPREL:
		s->calls.first = at(file, entry->d_un.d_ptr);
		break;
	case DT_PLTRELSZ:
		s->calls.bytes = entry->d_un.d_val;
		break;
	case DT_PLTREL:
		s->calls.each = entry->d_un.d_val == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
		break;
	case DT_REL:
		s->rel.first = at(file, entry->d_un.d_ptr);
		break;
	case DT_RELSZ:
		s->rel.bytes = entry->d_un.d_val;
		break;
	case DT_RELA:
		s->rela.first = at(file, entry->d_un.d_ptr);
		break;
	case DT_RELASZ:
		s->rela.bytes = entry->d_un.d_val;
		break;
	default:
		break;
	}
}

static struct symbols symbols_of(const struct dl_phdr_info *file)
{
	struct symbols s = {.rel.each = sizeof(ElfW(Rel)), .rela.each = sizeof(ElfW(Rela))};
	const ElfW(Dyn) *entry = NULL;
	for (unsigned i = 0; i < file->dlpi_phnum; i++)
		if (file->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		learn(&s, file, entry);
	return s;
}

static bool creates_images(const char *name)
{
	return strncmp(name, "clCreateImage", strlen("clCreateImage")) == 0;
}

static bool imports(const struct symbols *s, size_t symbol)
{
	return s->table[symbol].st_shndx == SHN_UNDEF && creates_images(s->names + s->table[symbol].st_name);
}

static size_t symbol_of(const ElfW(Rel) *relocation)
{
	return __ELF_NATIVE_CLASS == 64 ? relocation->r_info >> 32 : relocation->r_info >> 8;
}

static bool relocates(const struct symbols *s, const struct relocations *r)
{
	for (size_t i = 0; r->first && r->each && i + r->each <= r->bytes; i += r->each)
		if (imports(s, symbol_of((const void *)(r->first + i))))
			return true;
	return false;
}

/*
 * The GNU hash table covers only the symbols that a file defines; the imported ones come before these. For a file that
 * defines nothing it does not say how many symbols there are, so we go through the relocations.
 */
static int look_into(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size, (void)unused;
	struct symbols s = symbols_of(file);
	uint32_t count = s.hash ? s.hash[1] : s.gnuhash ? s.gnuhash[1] : 0;
	if (!s.table || !s.names)
		return 0;
	for (uint32_t i = 1; i < count; i++)
		if (imports(&s, i))
			return 1;
	return count <= 1 && (relocates(&s, &s.calls) || relocates(&s, &s.rela) || relocates(&s, &s.rel));
}

/* The first file is enough: all have the same count. */
static int count_loaded(struct dl_phdr_info *file, size_t size, void *loaded)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof file->dlpi_adds)
		*(unsigned long long *)loaded = file->dlpi_adds;
	return 1;
}

/* Looks again when more files have been loaded. */
static bool wanted(void)
{
	unsigned long long loaded = 1;
	if (atomic_load_explicit(&gmt_images_wanted, memory_order_relaxed))
		return true;
	dl_iterate_phdr(count_loaded, &loaded);
	if (gmt_likely(atomic_load(&looked) == loaded))
		return false;
	bool found = dl_iterate_phdr(look_into, NULL) != 0;
	if (found)
		atomic_store(&gmt_images_wanted, 1);
	atomic_store(&looked, loaded);
	return found;
}

enum { TRIED = 16 }; /* bytes: four elements */

static cl_mem image_of(cl_context context, cl_mem buffer)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = TRIED / 4, .mem_object = buffer};
	cl_int err = CL_SUCCESS;
	return buffer && gmt_driver.clCreateImage ? gmt_driver.clCreateImage(context, 0, &format, &desc, NULL, &err) : NULL;
}

static bool shows(cl_context context, cl_device_id device, cl_mem image, const unsigned char *expected)
{
	const size_t origin[3] = {0, 0, 0}, region[3] = {TRIED / 4, 1, 1};
	unsigned char got[TRIED] = {0};
	cl_int err = CL_SUCCESS;
	cl_command_queue queue = gmt_driver.clCreateCommandQueue(context, device, 0, &err);
	if (!queue)
		return false;
	err = gmt_driver.clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, got, 0, NULL, NULL);
	gmt_driver.clReleaseCommandQueue(queue);
	return err == CL_SUCCESS && memcmp(got, expected, sizeof got) == 0;
}

/* The driver creates images of buffers, but none of sub-buffers, or such that show other memory (rusticl of Mesa 22.3 does). */
static bool fails_in(cl_context context, const struct gmt_context *like)
{
	unsigned char *contents = calloc(1, like->align + TRIED);
	if (!contents)
		return true;
	memset(contents + like->align, 0xa5, TRIED);
	cl_buffer_region region = {like->align, TRIED};
	cl_int err = CL_SUCCESS;
	cl_mem whole = gmt_driver.clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, like->align + TRIED, contents, &err);
	cl_mem part = whole ? gmt_driver.clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err) : NULL;
	cl_mem of_whole = image_of(context, whole), of_part = image_of(context, part);
	bool fails = of_whole && !(of_part && shows(context, like->device, of_part, contents + like->align));
	cl_mem all[] = {of_whole, of_part, part, whole};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i])
			gmt_driver.clReleaseMemObject(all[i]);
	free(contents);
	return fails;
}

/* Tries it in a separate context, because a refusal may leave traces (PoCL 3.1 keeps a reference). */
static bool fails(const struct gmt_context *context)
{
	cl_int err = CL_SUCCESS;
	cl_context own = gmt_driver.clCreateContext(NULL, 1, &context->device, NULL, NULL, &err);
	bool failed = own && fails_in(own, context);
	if (own)
		gmt_driver.clReleaseContext(own);
	return failed;
}

/* Once. */
static void write_failure(void)
{
	static atomic_flag written = ATOMIC_FLAG_INIT;
	if (!atomic_flag_test_and_set(&written))
		gmt_diag(GMT_DIAG_WHOLE_BLOCKS, "images of sub-buffers fail on this driver, and the program can create images");
}

bool gmt_images_allow_suballoc(struct gmt_context *context)
{
	uint8_t images = atomic_load_explicit(&context->images, memory_order_relaxed);
	if (images != GMT_IMAGES_UNTRIED)
		return images == GMT_IMAGES_OF_SUBBUFFERS;
	if (!wanted())
		return true; /* so far */
	static _Atomic int known; /* of the first device: 1 + enum gmt_images */
	static _Atomic(cl_device_id) first;
	bool same = atomic_load(&known) && atomic_load(&first) == context->device;
	images = same ? (uint8_t)(atomic_load(&known) - 1) : fails(context) ? GMT_IMAGES_OF_BUFFERS_ONLY : GMT_IMAGES_OF_SUBBUFFERS;
	atomic_store(&context->images, images);
	if (images == GMT_IMAGES_OF_BUFFERS_ONLY)
		write_failure();
	if (!atomic_load(&known)) {
		atomic_store(&first, context->device);
		atomic_store(&known, 1 + images);
	}
	return images == GMT_IMAGES_OF_SUBBUFFERS;
}
