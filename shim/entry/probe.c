/*
 * probe.c: answers questions of gpumemtop about a machine. doctor asks which devices it has, attach where drivers keep
 * their extension functions.
 *
 * If the environment has GPUMEMTOP_PROBE, the library prints its answer on stdout when the process exits. For "opencl":
 * OpenCL's platforms and devices. For "extensions", followed by names of functions with spaces between them: the file in
 * which each platform has these, and their offsets from the file's beginning in memory. For any other value: whether a library
 * of that name loads. Each line is written at once, so that a driver that crashes loses only its own lines; tabs separate
 * the fields. The library waits for the exit because drivers may start threads that load libraries, and those would wait
 * forever for a constructor of ours. In all other processes this file does nothing.
 */
#define _GNU_SOURCE
#include "../base/call.h"
#include "../base/dispatch.h"
#include "../base/session.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBED_MAX 32 /* platforms, and devices of each */
#define TEXT_MAX 512
#define EXTENSIONS "extensions "

static const char *wanted;

/* The OpenCL library's own functions, not our hooks of the same names. */
static struct {
	cl_int(CL_API_CALL *platforms)(cl_uint, cl_platform_id *, cl_uint *);
	cl_int(CL_API_CALL *platform)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
	cl_int(CL_API_CALL *devices)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
	cl_int(CL_API_CALL *device)(cl_device_id, cl_device_info, size_t, void *, size_t *);
	cl_int(CL_API_CALL *loader)(cl_uint, size_t, void *, size_t *); /* clGetICDLoaderInfoOCLICD, or NULL */
	void *(CL_API_CALL *extension)(cl_platform_id, const char *);
} cl;

__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
	char line[4 * TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	size_t length = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
	line[length++] = '\n';
	if (write(STDOUT_FILENO, line, length) < 0)
		_exit(1); /* the reader is gone */
}

/* Replaces control characters in a driver's text, so that it is one field. */
static const char *replace_controls(char *text, cl_int status)
{
	if (status != CL_SUCCESS)
		return "";
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return text;
}

static void find_function(void *library, const char *name, void *function)
{
	void *symbol = gmt_real_dlsym()(library, name);
	memcpy(function, &symbol, sizeof symbol);
}

static const char *platform_text(cl_platform_id platform, cl_platform_info what, char *text)
{
	text[0] = text[TEXT_MAX - 1] = 0;
	return replace_controls(text, cl.platform(platform, what, TEXT_MAX - 1, text, NULL));
}

static const char *device_text(cl_device_id device, cl_device_info what, char *text)
{
	text[0] = text[TEXT_MAX - 1] = 0;
	return replace_controls(text, cl.device(device, what, TEXT_MAX - 1, text, NULL));
}

static unsigned long long device_number(cl_device_id device, cl_device_info what, size_t size)
{
	cl_ulong wide = 0;
	cl_uint narrow = 0;
	void *value = size == sizeof wide ? (void *)&wide : (void *)&narrow;
	if (cl.device(device, what, size, value, NULL) != CL_SUCCESS)
		return 0;
	return size == sizeof wide ? wide : narrow;
}

static void print_device(cl_device_id device)
{
	char name[TEXT_MAX], driver[TEXT_MAX], version[TEXT_MAX];
	print_line("device\t%s\t%s\t%s\t%llu\t%llu\t%llu", device_text(device, CL_DEVICE_NAME, name),
	     device_text(device, CL_DRIVER_VERSION, driver), device_text(device, CL_DEVICE_VERSION, version),
	     device_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong)),
	     device_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong)),
	     device_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint)));
}

static void print_platform(cl_platform_id platform)
{
	char name[TEXT_MAX], version[TEXT_MAX];
	print_line("platform\t%s\t%s", platform_text(platform, CL_PLATFORM_NAME, name),
	     platform_text(platform, CL_PLATFORM_VERSION, version));
	cl_device_id devices[PROBED_MAX];
	cl_uint count = 0;
	cl_int status = cl.devices(platform, CL_DEVICE_TYPE_ALL, PROBED_MAX, devices, &count);
	if (status != CL_SUCCESS)
		print_line("error\tclGetDeviceIDs returned %d", status);
	for (cl_uint i = 0; status == CL_SUCCESS && i < count && i < PROBED_MAX; i++)
		print_device(devices[i]);
}

/* Prints name and version of a loader that has ocl-icd's query for them: 2 asks for the version, 3 for the name. */
static void print_loader(void *library)
{
	char version[TEXT_MAX] = "", name[TEXT_MAX] = "";
	Dl_info info = {0};
	if (!dladdr(*(void **)(void *)&cl.platforms, &info) || !info.dli_fname)
		info.dli_fname = "";
	void *(CL_API_CALL *extension)(const char *);
	find_function(library, "clGetExtensionFunctionAddress", &extension);
	void *function = extension ? extension("clGetICDLoaderInfoOCLICD") : NULL;
	memcpy(&cl.loader, &function, sizeof function);
	if (cl.loader) {
		replace_controls(version, cl.loader(2, TEXT_MAX - 1, version, NULL));
		replace_controls(name, cl.loader(3, TEXT_MAX - 1, name, NULL));
	}
	print_line("loader\t%s\t%s\t%s", info.dli_fname, name, version);
}

static void print_extension(cl_platform_id platform, const char *name)
{
	void *address = cl.extension(platform, name);
	Dl_info info = {0};
	if (address && dladdr(address, &info) && info.dli_fname && info.dli_fbase)
		print_line("extension\t%s\t%s\t%lu", name, info.dli_fname,
		     (unsigned long)((const char *)address - (const char *)info.dli_fbase));
}

static void print_extensions(cl_platform_id platform)
{
	char name[TEXT_MAX];
	for (const char *at = wanted + strlen(EXTENSIONS); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (length && length < sizeof name) {
			memcpy(name, at, length);
			name[length] = 0;
			print_extension(platform, name);
		}
		at += length;
	}
}

static void each_platform(void (*visit)(cl_platform_id))
{
	cl_platform_id platforms[PROBED_MAX];
	cl_uint count = 0;
	cl_int status = cl.platforms(PROBED_MAX, platforms, &count);
	if (status != CL_SUCCESS)
		print_line("error\tclGetPlatformIDs returned %d", status);
	for (cl_uint i = 0; status == CL_SUCCESS && i < count && i < PROBED_MAX; i++)
		visit(platforms[i]);
}

static void *open_opencl(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		print_line("error\t%s", dlerror());
		return NULL;
	}
	find_function(library, "clGetPlatformIDs", &cl.platforms);
	find_function(library, "clGetPlatformInfo", &cl.platform);
	find_function(library, "clGetDeviceIDs", &cl.devices);
	find_function(library, "clGetDeviceInfo", &cl.device);
	find_function(library, "clGetExtensionFunctionAddressForPlatform", &cl.extension);
	if (cl.platforms && cl.platform && cl.devices && cl.device)
		return library;
	print_line("error\tlibOpenCL.so.1 lacks OpenCL's functions");
	return NULL;
}

static void probe_opencl(void)
{
	void *library = open_opencl();
	if (!library)
		return;
	print_loader(library);
	each_platform(print_platform);
}

static void probe_extensions(void)
{
	if (!open_opencl())
		return;
	if (cl.extension)
		each_platform(print_extensions);
	else
		print_line("error\tlibOpenCL.so.1 is older than OpenCL 1.2 and hands out no functions of a platform");
}

static void run_probe(void)
{
	gmt_inside = 1;
	print_line("preloaded");
	if (strcmp(wanted, "opencl") == 0)
		probe_opencl();
	else if (strncmp(wanted, EXTENSIONS, strlen(EXTENSIONS)) == 0)
		probe_extensions();
	else if (!dlopen(wanted, RTLD_NOW | RTLD_LOCAL))
		print_line("error\t%s", dlerror());
	print_line("end");
	_exit(0); /* without unloading drivers, which may hang or crash */
}

__attribute__((constructor)) static void look_for_probe(void)
{
	wanted = secure_getenv(GMT_PROBE_ENV);
	if (wanted)
		atexit(run_probe);
}
