/*
 * fake_entries.c: the fake loader's entries. They jump, as optimised loaders do, to what fake_loader.c says. Weak: those
 * that are written in C there count.
 */
#ifdef __aarch64__
#define JUMP(to) "adrp x16, " to "\n\tldr x16, [x16, :lo12:" to "]\n\tbr x16"
#else
#define JUMP(to) "jmp *" to "(%rip)"
#endif
#define HOOK(name)                                                                                                     \
	__asm__(".text\n.weak " #name "\n.type " #name ", @function\n.hidden fake_entry_" #name "\n" #name                 \
		":\n\t" JUMP("fake_entry_" #name) "\n.size " #name ", .-" #name "\n");
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
