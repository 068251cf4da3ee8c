/*
 * objects.c: _dl_find_object, by which the compiler's unwinder, linked into this library, finds the tables of the code at an
 * address. glibc has it since 2.35. With an older glibc we search the loaded libraries, as unwinders did before.
 */
#define _GNU_SOURCE
#include "../base/opencl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* otherwise the compiler's unwinder does not call it */

typedef int find_object(void *, struct dl_find_object *);

int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((visibility("hidden")));

static find_object *theirs; /* NULL before our constructor, too */

__attribute__((constructor)) static void find_glibc_function(void)
{
	void *symbol = dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35");
	__builtin_memcpy(&theirs, &symbol, sizeof theirs);
}

static int find_in_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	struct dl_find_object *result = arg;
	uintptr_t address = (uintptr_t)result->dlfo_map_start; /* search_libraries stores it there */
	const void *tables = NULL;
	bool around = false;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;
		around |= part->p_type == PT_LOAD && address >= from && address - from < part->p_memsz;
		if (part->p_type == PT_GNU_EH_FRAME)
			tables = (const void *)from;
	}
	if (!around)
		return 0;
	result->dlfo_eh_frame = (void *)(uintptr_t)tables;
	return 1;
}

/* Fills in only the field that an unwinder reads, dlfo_eh_frame. */
static int search_libraries(void *address, struct dl_find_object *result)
{
	*result = (struct dl_find_object){.dlfo_map_start = address};
	return dl_iterate_phdr(find_in_library, result) && result->dlfo_eh_frame ? 0 : -1;
}

int _dl_find_object(void *address, struct dl_find_object *result)
{
	if (gmt_unlikely(!theirs))
		return search_libraries(address, result);
	int found = theirs(address, result);
#ifdef GMT_TEST_STACKS
	struct dl_find_object ours;
	if (search_libraries(address, &ours) == 0 ? found != 0 || ours.dlfo_eh_frame != result->dlfo_eh_frame : found == 0 && result->dlfo_eh_frame)
		abort();
#endif
	return found;
}

#endif
