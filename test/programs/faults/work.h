/*
 * work.h: a little OpenCL work for the programs that misbehave around it.
 */
#ifndef EXAMPLES_FAULTS_WORK_H
#define EXAMPLES_FAULTS_WORK_H

#include "common.h"

/* Creates a buffer: the one call site of these programs. */
cl_mem create_worked(const struct gpu *gpu, size_t size);

/* Creates, fills, reads and releases a buffer; returns the checksum extended by what was read. */
uint64_t work_once(const struct gpu *gpu, size_t number, size_t size, uint64_t hash);

/* Does that as often as asked. */
uint64_t work(const struct gpu *gpu, size_t iterations, size_t size);

#endif
