/*
 * images.c: a program can create images of buffers if its files import, or if it looks up, a function for that. It may notice
 * sub-allocations then: see trial.c.
 */
#define _GNU_SOURCE
#include "images.h"

#include "../base/session.h"

#include <link.h>
#include <string.h>

_Atomic int gmt_images_wanted;
static _Atomic unsigned long long looked; /* how many files had been loaded when we looked last */

/* Relocations. We need only their symbols, so one type serves for those with and without an addend. */
struct relocations {
	const char *first;
	size_t bytes, each;
};

/* The addresses of a file's symbols, from its dynamic section. */
struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *hash, *gnuhash;
	struct relocations calls, rel, rela;
};

static const void *address_in_file(const struct dl_phdr_info *file, ElfW(Addr) address)
{
	return (const void *)(address < file->dlpi_addr ? address + file->dlpi_addr : address);
}

static void learn_dynamic_entry(struct symbols *s, const struct dl_phdr_info *file, const ElfW(Dyn) *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		s->table = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_STRTAB:
		s->names = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_HASH:
		s->hash = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_GNU_HASH:
		s->gnuhash = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_JMPREL:
		s->calls.first = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_PLTRELSZ:
		s->calls.bytes = entry->d_un.d_val;
		break;
	case DT_PLTREL:
		s->calls.each = entry->d_un.d_val == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
		break;
	case DT_REL:
		s->rel.first = address_in_file(file, entry->d_un.d_ptr);
		break;
	case DT_RELSZ:
		s->rel.bytes = entry->d_un.d_val;
		break;
	case DT_RELA:
		s->rela.first = address_in_file(file, entry->d_un.d_ptr);
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
		learn_dynamic_entry(&s, file, entry);
	return s;
}

bool gmt_images_is_create_name(const char *function)
{
	const char *rest = strncmp(function, "clCreateImage", strlen("clCreateImage")) == 0 ? function + strlen("clCreateImage") : "?";
	return !*rest || strcmp(rest, "WithProperties") == 0;
}

static bool imports_image_function(const struct symbols *s, size_t symbol)
{
	return s->table[symbol].st_shndx == SHN_UNDEF && gmt_images_is_create_name(s->names + s->table[symbol].st_name);
}

static size_t symbol_of_relocation(const ElfW(Rel) *relocation)
{
	return __ELF_NATIVE_CLASS == 64 ? relocation->r_info >> 32 : relocation->r_info >> 8;
}

static bool relocates_image_function(const struct symbols *s, const struct relocations *r)
{
	for (size_t i = 0; r->first && r->each && i + r->each <= r->bytes; i += r->each)
		if (imports_image_function(s, symbol_of_relocation((const void *)(r->first + i))))
			return true;
	return false;
}

/*
 * The GNU hash table covers only the symbols that a file defines; the imported ones come before these. For a file that
 * defines nothing it does not say how many symbols there are, so we go through the relocations.
 */
static int find_image_imports(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size, (void)unused;
	struct symbols s = symbols_of(file);
	uint32_t count = s.hash ? s.hash[1] : s.gnuhash ? s.gnuhash[1] : 0;
	if (!s.table || !s.names)
		return 0;
	for (uint32_t i = 1; i < count; i++)
		if (imports_image_function(&s, i))
			return 1;
	return count <= 1 && (relocates_image_function(&s, &s.calls) || relocates_image_function(&s, &s.rela) || relocates_image_function(&s, &s.rel));
}

/* The first file is enough: all have the same count. */
static int read_loaded_count(struct dl_phdr_info *file, size_t size, void *loaded)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof file->dlpi_adds)
		*(unsigned long long *)loaded = file->dlpi_adds;
	return 1;
}

bool gmt_images_can_be_made(void)
{
	unsigned long long loaded = 1;
	if (atomic_load_explicit(&gmt_images_wanted, memory_order_relaxed))
		return true;
	dl_iterate_phdr(read_loaded_count, &loaded);
	if (gmt_likely(atomic_load(&looked) == loaded))
		return false;
	bool found = dl_iterate_phdr(find_image_imports, NULL) != 0;
	if (found)
		atomic_store(&gmt_images_wanted, 1);
	atomic_store(&looked, loaded);
	return found;
}
