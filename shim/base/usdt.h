/*
 * usdt.h: static probes, by which tools of eBPF see memory come and go in a program that has this library preloaded:
 *
 *   gpumemtop:alloc(object, size, requested, tag)   gpumemtop:free(object)
 *   otel_memory:alloc(object, size, size)           otel_memory:free(object)
 *
 * The object is a number, as in recordings, because handles are reused. Sizes are bytes: granted, and requested. The second pair
 * is OpenTelemetry's (ebpf-profiler, RFC 1672). It fires only if GPUMEMTOP_USDT is otel, because tools would list device memory
 * among the host's. A probe without a listener costs one read of its semaphore.
 */
#ifndef GMT_USDT_H
#define GMT_USDT_H

#include "opencl.h"

#include "../../internal/wire/event.h"

/* The kernel raises it while a tool listens. */
extern volatile uint16_t gmt_alloc_semaphore;
extern volatile uint16_t gmt_free_semaphore;
extern volatile uint16_t gmt_otel_alloc_semaphore;
extern volatile uint16_t gmt_otel_free_semaphore;

/* Reads the value of GPUMEMTOP_USDT. True if allocations must be watched even without session and flight log. */
bool gmt_usdt_begin(const char *wanted);

void gmt_usdt_created(const struct gmtevent *event) __attribute__((noinline));
void gmt_usdt_released(const struct gmtevent *event) __attribute__((noinline));

static inline bool gmt_usdt_allocs(void)
{
	return gmt_unlikely((gmt_alloc_semaphore | gmt_otel_alloc_semaphore) != 0);
}

static inline bool gmt_usdt_frees(void)
{
	return gmt_unlikely((gmt_free_semaphore | gmt_otel_free_semaphore) != 0);
}

#endif
