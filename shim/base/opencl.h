/* opencl.h: the OpenCL headers with every version and extension that the hooks cover, and the macros of every file. */
#ifndef GMT_OPENCL_H
#define GMT_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMT_HOOK __attribute__((visibility("default")))
#define gmt_likely(x) __builtin_expect(!!(x), 1)
#define gmt_unlikely(x) __builtin_expect(!!(x), 0)

#endif
