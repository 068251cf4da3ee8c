/* usdt.c: see usdt.h. */
#define _GNU_SOURCE
#include "usdt.h"

#include "../../internal/wire/event_access.h"

#include <string.h>

#define SEMAPHORE __attribute__((section(".probes"), used))
SEMAPHORE volatile uint16_t gmt_alloc_semaphore;
SEMAPHORE volatile uint16_t gmt_free_semaphore;
SEMAPHORE volatile uint16_t gmt_otel_alloc_semaphore;
SEMAPHORE volatile uint16_t gmt_otel_free_semaphore;

static bool otel;

/*
 * A place for a breakpoint, and the note that describes it, in the layout of SystemTap's sdt.h, version 3: the addresses of the
 * probe, of .stapsdt.base (which says by how much prelink has moved them) and of the semaphore; provider, name, and
 * where each argument is.
 */
#define PROBE(provider, name, semaphore, places, ...)                                                                               \
	__asm__ volatile("990: nop\n"                                                                                                \
			 ".pushsection .note.stapsdt, \"\", %%note\n"                                                                \
			 ".balign 4\n"                                                                                               \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"                                                                      \
			 "991: .asciz \"stapsdt\"\n"                                                                                 \
			 "992: .balign 4\n"                                                                                          \
			 "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                                         \
			 ".asciz \"" provider "\"\n"                                                                                 \
			 ".asciz \"" name "\"\n"                                                                                     \
			 ".asciz \"" places "\"\n"                                                                                   \
			 "994: .balign 4\n"                                                                                          \
			 ".popsection\n"                                                                                             \
			 ".ifndef _.stapsdt.base\n"                                                                                  \
			 ".pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n"                                   \
			 ".weak _.stapsdt.base\n"                                                                                    \
			 ".hidden _.stapsdt.base\n"                                                                                  \
			 "_.stapsdt.base: .space 1\n"                                                                                \
			 ".size _.stapsdt.base, 1\n"                                                                                 \
			 ".popsection\n"                                                                                             \
			 ".endif\n"                                                                                                  \
			 :                                                                                                           \
			 : __VA_ARGS__)

bool gmt_usdt_begin(const char *wanted)
{
	otel = wanted && strcmp(wanted, "otel") == 0;
	return wanted && *wanted;
}

void gmt_usdt_created(const struct gmtevent *event)
{
	uint64_t object = gmtcreate_object(event), size = gmtcreate_granted(event), requested = gmtcreate_requested(event);
	uint64_t tag = gmtcreate_tag(event);
	if (gmtcreate_status(event) != 0 || size == 0) /* a sub-buffer has no memory of its own */
		return;
	if (gmt_alloc_semaphore)
		PROBE("gpumemtop", "alloc", "gmt_alloc_semaphore", "8@%0 8@%1 8@%2 8@%3", "r"(object), "r"(size), "r"(requested), "r"(tag));
	if (otel && gmt_otel_alloc_semaphore)
		PROBE("otel_memory", "alloc", "gmt_otel_alloc_semaphore", "8@%0 8@%1 8@%1", "r"(object), "r"(size));
}

void gmt_usdt_released(const struct gmtevent *event)
{
	uint64_t object = gmtrelease_object(event);
	if (gmtrelease_status(event) != 0 || gmtrelease_references(event) > 0 || gmtrelease_outcome(event) == GMT_OUTCOME_PINNED ||
	    gmtrelease_memory(event) == GMT_MEMORY_SUBBUFFER)
		return;
	if (gmt_free_semaphore)
		PROBE("gpumemtop", "free", "gmt_free_semaphore", "8@%0", "r"(object));
	if (otel && gmt_otel_free_semaphore)
		PROBE("otel_memory", "free", "gmt_otel_free_semaphore", "8@%0", "r"(object));
}
