/*
 * probe.c: what gpumemtop asks of a machine: doctor how it is, attach where drivers keep their extension functions.
 *
 * In a process whose environment has GPUMEMTOP_PROBE the library tells on stdout, when the process exits, what it
 * finds: OpenCL's platforms and devices for the word "opencl"; for "extensions" and names of functions behind it, with
 * spaces between them, in which file each platform has these, and how far behind that file's beginning in memory;
 * whether a library loads for anything else. Each line is written at once, so that a driver that crashes takes only its
 * own lines with it; fields have tabs between them. It is done at exit because drivers may start threads that load
 * libraries, which would wait for a constructor of ours for ever. In all other processes nothing here does anything.
 */
#define _GNU_SOURCE
#include "shim.h"

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

/* Functions of the OpenCL library itself, not those that we export. */
static struct {
	cl_int(CL_API_CALL *platforms)(cl_uint, cl_platform_id *, cl_uint *);
	cl_int(CL_API_CALL *platform)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
	cl_int(CL_API_CALL *devices)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
	cl_int(CL_API_CALL *device)(cl_device_id, cl_device_info, size_t, void *, size_t *);
	cl_int(CL_API_CALL *loader)(cl_uint, size_t, void *, size_t *); /* clGetICDLoaderInfoOCLICD, NULL where it is not */
	void *(CL_API_CALL *extension)(cl_platform_id, const char *);
} cl;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
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
		_exit(1); /* nobody reads */
}

/* Makes a text of a driver one field. */
static const char *field(char *text, cl_int status)
{
	if (status != CL_SUCCESS)
		return "";
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return text;
}

static void find(void *library, const char *name, void *function)
{
	void *symbol = gmt_real_dlsym()(library, name);
	memcpy(function, &symbol, sizeof symbol);
}

static const char *platform_text(cl_platform_id platform, cl_platform_info what, char *text)
{
	text[0] = text[TEXT_MAX - 1] = 0;
	return field(text, cl.platform(platform, what, TEXT_MAX - 1, text, NULL));
}

static const char *device_text(cl_device_id device, cl_device_info what, char *text)
{
	text[0] = text[TEXT_MAX - 1] = 0;
	return field(text, cl.device(device, what, TEXT_MAX - 1, text, NULL));
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

static void tell_device(cl_device_id device)
{
	char name[TEXT_MAX], driver[TEXT_MAX], version[TEXT_MAX];
	tell("device\t%s\t%s\t%s\t%llu\t%llu\t%llu", device_text(device, CL_DEVICE_NAME, name),
	     device_text(device, CL_DRIVER_VERSION, driver), device_text(device, CL_DEVICE_VERSION, version),
	     device_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong)),
	     device_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong)),
	     device_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint)));
}

static void tell_platform(cl_platform_id platform)
{
	char name[TEXT_MAX], version[TEXT_MAX];
	tell("platform\t%s\t%s", platform_text(platform, CL_PLATFORM_NAME, name),
	     platform_text(platform, CL_PLATFORM_VERSION, version));
	cl_device_id devices[PROBED_MAX];
	cl_uint count = 0;
	cl_int status = cl.devices(platform, CL_DEVICE_TYPE_ALL, PROBED_MAX, devices, &count);
	if (status != CL_SUCCESS)
		tell("error\tclGetDeviceIDs returned %d", status);
	for (cl_uint i = 0; status == CL_SUCCESS && i < count && i < PROBED_MAX; i++)
		tell_device(devices[i]);
}

/* Tells which loader it is. Some answer by an extension of ocl-icd's, of which 2 is the version and 3 the name. */
static void tell_loader(void *library)
{
	char version[TEXT_MAX] = "", name[TEXT_MAX] = "";
	Dl_info info = {0};
	if (!dladdr(*(void **)(void *)&cl.platforms, &info) || !info.dli_fname)
		info.dli_fname = "";
	void *(CL_API_CALL *extension)(const char *);
	find(library, "clGetExtensionFunctionAddress", &extension);
	void *function = extension ? extension("clGetICDLoaderInfoOCLICD") : NULL;
	memcpy(&cl.loader, &function, sizeof function);
	if (cl.loader) {
		field(version, cl.loader(2, TEXT_MAX - 1, version, NULL));
		field(name, cl.loader(3, TEXT_MAX - 1, name, NULL));
	}
	tell("loader\t%s\t%s\t%s", info.dli_fname, name, version);
}

static void tell_extension(cl_platform_id platform, const char *name)
{
	void *address = cl.extension(platform, name);
	Dl_info info = {0};
	if (address && dladdr(address, &info) && info.dli_fname && info.dli_fbase)
		tell("extension\t%s\t%s\t%lu", name, info.dli_fname,
		     (unsigned long)((const char *)address - (const char *)info.dli_fbase));
}

static void tell_extensions(cl_platform_id platform)
{
	char name[TEXT_MAX];
	for (const char *at = wanted + strlen(EXTENSIONS); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (length && length < sizeof name) {
			memcpy(name, at, length);
			name[length] = 0;
			tell_extension(platform, name);
		}
		at += length;
	}
}

static void each_platform(void (*tell_it)(cl_platform_id))
{
	cl_platform_id platforms[PROBED_MAX];
	cl_uint count = 0;
	cl_int status = cl.platforms(PROBED_MAX, platforms, &count);
	if (status != CL_SUCCESS)
		tell("error\tclGetPlatformIDs returned %d", status);
	for (cl_uint i = 0; status == CL_SUCCESS && i < count && i < PROBED_MAX; i++)
		tell_it(platforms[i]);
}

static void *open_opencl(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		tell("error\t%s", dlerror());
		return NULL;
	}
	find(library, "clGetPlatformIDs", &cl.platforms);
	find(library, "clGetPlatformInfo", &cl.platform);
	find(library, "clGetDeviceIDs", &cl.devices);
	find(library, "clGetDeviceInfo", &cl.device);
	find(library, "clGetExtensionFunctionAddressForPlatform", &cl.extension);
	if (cl.platforms && cl.platform && cl.devices && cl.device)
		return library;
	tell("error\tlibOpenCL.so.1 lacks OpenCL's functions");
	return NULL;
}

static void probe_opencl(void)
{
	void *library = open_opencl();
	if (!library)
		return;
	tell_loader(library);
	each_platform(tell_platform);
}

static void probe_extensions(void)
{
	if (!open_opencl())
		return;
	if (cl.extension)
		each_platform(tell_extensions);
	else
		tell("error\tlibOpenCL.so.1 is older than OpenCL 1.2 and hands out no functions of a platform");
}

static void probe(void)
{
	gmt_inside = 1;
	tell("preloaded");
	if (strcmp(wanted, "opencl") == 0)
		probe_opencl();
	else if (strncmp(wanted, EXTENSIONS, strlen(EXTENSIONS)) == 0)
		probe_extensions();
	else if (!dlopen(wanted, RTLD_NOW | RTLD_LOCAL))
		tell("error\t%s", dlerror());
	tell("end");
	_exit(0); /* a driver that cannot unload has told all that was asked */
}

__attribute__((constructor)) static void look_for_probe(void)
{
	wanted = secure_getenv(GMT_PROBE_ENV);
	if (wanted)
		atexit(probe);
}
