/* foreign.c: see foreign.h. May run in a child of vfork. */
#define _GNU_SOURCE
#include "foreign.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of our library, from the static linker */

/* Opens a program by its path, or in the folders of PATH if its name has no slash. -1: it is not there, or the pointer is wrong. */
static int open_program(const char *program)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char path[PATH_MAX];
	int fd = open(program, flags);
	if (fd < 0 && errno == EFAULT)
		return -1;
	const char *folders = strchr(program, '/') ? NULL : getenv("PATH");
	if (!folders)
		return fd;
	if (fd >= 0)
		close(fd);
	for (fd = -1; fd < 0 && *folders; folders += *folders == ':') {
		int length = (int)strcspn(folders, ":");
		if (snprintf(path, sizeof path, "%.*s/%s", length, folders, program) < (int)sizeof path && access(path, X_OK) == 0)
			fd = open(path, flags);
		folders += length;
	}
	return fd;
}

/* Whether a program's dynamic linker is musl's, which ends the program if a preloaded library needs glibc. */
static bool has_musl_linker(int fd, const ElfW(Ehdr) *header)
{
	static const char musl[] = "/ld-musl-";
	char name[128] = {0};
	ElfW(Phdr) segment = {0};
	for (unsigned i = 0; i < header->e_phnum && i < 64 && segment.p_type != PT_INTERP; i++)
		if (pread(fd, &segment, sizeof segment, (off_t)(header->e_phoff + i * sizeof segment)) != sizeof segment)
			return false;
	if (segment.p_type != PT_INTERP || pread(fd, name, sizeof name - 1, (off_t)segment.p_offset) <= 0)
		return false;
	const char *last = strrchr(name, '/');
	return last && strncmp(last, musl, strlen(musl)) == 0;
}

/* The interpreter of a script; NULL if the file is no script. */
static const char *interpreter_of(char *text)
{
	if (strncmp(text, "#!", 2) != 0)
		return NULL;
	text += 2 + strspn(text + 2, " \t");
	text[strcspn(text, " \t\n")] = '\0';
	return *text ? text : NULL;
}

bool gmt_is_foreign(const char *program)
{
	union {
		ElfW(Ehdr) elf;
		char text[256]; /* the bytes that the kernel reads of a script */
	} head;
	const ssize_t needed = offsetof(ElfW(Ehdr), e_version);
	for (int depth = 0; program && depth < 5; depth++) { /* as the kernel follows scripts */
		int fd = open_program(program);
		if (fd < 0)
			return false;
		memset(&head, 0, sizeof head);
		bool elf = pread(fd, &head, sizeof head - 1, 0) >= needed && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0;
		bool foreign = elf && (head.elf.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] ||
				       head.elf.e_machine != __ehdr_start.e_machine || has_musl_linker(fd, &head.elf));
		close(fd);
		if (elf)
			return foreign;
		program = interpreter_of(head.text);
	}
	return false;
}
