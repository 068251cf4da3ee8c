/*
 * fake_entries.c: the fake loader's entries. They jump, as optimised loaders do, to what fake_loader.c says. Weak: those
 * that are written in C there count.
 */
#define HOOK(name)                                                                                                     \
	__asm__(".text\n.weak " #name "\n.type " #name ", @function\n.hidden fake_entry_" #name "\n" #name                 \
		":\n\tjmp *fake_entry_" #name "(%rip)\n.size " #name ", .-" #name "\n");
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
