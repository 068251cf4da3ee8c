/* extensions.c: see extensions.h. A program that finds an extension in a list calls its functions without a further look. */
#define _GNU_SOURCE
#include "extensions.h"

#include <stdlib.h>
#include <string.h>

/*
 * Extension functions that take no memory object and make no command that uses one unseen. Any other would get a handle that
 * is not the driver's, so programs find that the driver does not have it.
 */
static bool is_harmless(const char *name)
{
	static const char *const known[] = {
		"clIcdGetPlatformIDsKHR", "clIcdGetFunctionAddressForPlatformKHR", "clIcdSetPlatformDispatchDataKHR",
		"clGetICDLoaderInfoOCLICD",
		"clCreateProgramWithILKHR", "clGetKernelSubGroupInfoKHR", "clGetKernelSuggestedLocalWorkSizeKHR",
		"clGetKernelSuggestedLocalWorkSizeINTEL", "clCreateSubDevicesEXT", "clRetainDeviceEXT", "clReleaseDeviceEXT",
		"clGetGLContextInfoKHR", "clTerminateContextKHR", "clHostMemAllocINTEL", "clDeviceMemAllocINTEL",
		"clSharedMemAllocINTEL", "clMemFreeINTEL", "clMemBlockingFreeINTEL", "clGetMemAllocInfoINTEL",
		"clEnqueueMemcpyINTEL", "clEnqueueMemFillINTEL", "clEnqueueMemsetINTEL", "clEnqueueMigrateMemINTEL",
		"clEnqueueMemAdviseINTEL", "clLogMessagesToSystemLogAPPLE", "clLogMessagesToStdoutAPPLE",
		"clLogMessagesToStderrAPPLE",
	};
	for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static bool is_core(const char *name)
{
	static const char *const core[] = {
#define HOOK(function) #function,
#define HOOK_EXTENSION(function)
#include "../base/hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	};
	for (size_t i = 0; name && i < sizeof core / sizeof core[0]; i++)
		if (strcmp(name, core[i]) == 0)
			return true;
	return false;
}

static void *get_extension_function(const char *name)
{
	return is_harmless(name) || is_core(name) ? gmt_bare.clGetExtensionFunctionAddress(name) : NULL;
}

static void *get_platform_extension_function(cl_platform_id platform, const char *name)
{
	return is_harmless(name) || is_core(name) ? gmt_bare.clGetExtensionFunctionAddressForPlatform(platform, name) : NULL;
}

/* Those of the Khronos registry, and of drivers, that have other functions; with what their names begin with. */
static bool is_withheld(const char *name)
{
	static const char *const begins[] = {
		"cl_arm_import_memory", "cl_arm_shared_virtual_memory", "cl_ext_image_requirements_info", "cl_ext_migrate_memobject",
		"cl_img_generate_mipmap", "cl_img_use_gralloc_ptr", "cl_intel_accelerator", "cl_intel_create_buffer_with_properties",
		"cl_intel_d3d9_media_sharing", "cl_intel_dx9_media_sharing", "cl_intel_program_scope_host_pipe",
		"cl_intel_sharing_format_query", "cl_intel_unified_shared_memory", "cl_intel_va_api_media_sharing",
		"cl_khr_command_buffer", "cl_khr_create_command_queue", "cl_khr_d3d10_sharing", "cl_khr_d3d11_sharing",
		"cl_khr_dx9_media_sharing", "cl_khr_egl_event", "cl_khr_egl_image", "cl_khr_external_memory",
		"cl_khr_external_semaphore", "cl_khr_gl_event", "cl_khr_semaphore", "cl_nv_create_buffer", "cl_nv_d3d",
		"cl_pocl_content_size", "cl_qcom_ext_host_ptr",
	};
	for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* What is left of a list of names with spaces between; returns its bytes with the end. */
static size_t remove_withheld_names(char *list, size_t bytes)
{
	char *to = list;
	list[bytes - 1] = 0;
	for (const char *name = list; *name;) {
		size_t length = strcspn(name, " ");
		length += name[length] == ' ';
		if (!is_withheld(name)) {
			memmove(to, name, length);
			to += length;
		}
		name += length;
	}
	*to = 0;
	return (size_t)(to - list) + 1;
}

/* What is left of a list of names with versions; returns its bytes. */
static size_t remove_withheld_versions(char *list, size_t bytes)
{
	cl_name_version one;
	size_t kept = 0;
	for (size_t at = 0; at + sizeof one <= bytes; at += sizeof one) {
		memcpy(&one, list + at, sizeof one);
		if (is_withheld(one.name))
			continue;
		memcpy(list + kept, &one, sizeof one);
		kept += sizeof one;
	}
	return kept;
}

/* A query of the driver, of a platform or a device. */
typedef cl_int query(void *object, cl_uint what, size_t room, void *value, size_t *needed);

static cl_int query_platform(void *object, cl_uint what, size_t room, void *value, size_t *needed)
{
	return gmt_bare.clGetPlatformInfo(object, what, room, value, needed);
}

static cl_int query_device(void *object, cl_uint what, size_t room, void *value, size_t *needed)
{
	return gmt_bare.clGetDeviceInfo(object, what, room, value, needed);
}

static cl_int answer_extension_list(query *ask, void *object, cl_uint what, size_t (*left)(char *, size_t), size_t room, void *value, size_t *needed)
{
	size_t bytes = 0;
	cl_int err = ask(object, what, 0, NULL, &bytes);
	char *all = err == CL_SUCCESS && bytes ? malloc(bytes) : NULL;
	if (!all)
		return ask(object, what, room, value, needed);
	err = ask(object, what, bytes, all, NULL);
	if (err == CL_SUCCESS)
		bytes = left(all, bytes);
	if (err == CL_SUCCESS && value && room < bytes)
		err = CL_INVALID_VALUE;
	if (err == CL_SUCCESS && value)
		memcpy(value, all, bytes);
	if (err == CL_SUCCESS && needed)
		*needed = bytes;
	free(all);
	return err;
}

static cl_int get_platform_info(cl_platform_id platform, cl_platform_info what, size_t room, void *value, size_t *needed)
{
	if (what == CL_PLATFORM_EXTENSIONS)
		return answer_extension_list(query_platform, platform, what, remove_withheld_names, room, value, needed);
	if (what == CL_PLATFORM_EXTENSIONS_WITH_VERSION)
		return answer_extension_list(query_platform, platform, what, remove_withheld_versions, room, value, needed);
	return gmt_bare.clGetPlatformInfo(platform, what, room, value, needed);
}

static cl_int get_device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	if (what == CL_DEVICE_EXTENSIONS)
		return answer_extension_list(query_device, device, what, remove_withheld_names, room, value, needed);
	if (what == CL_DEVICE_EXTENSIONS_WITH_VERSION)
		return answer_extension_list(query_device, device, what, remove_withheld_versions, room, value, needed);
	return gmt_bare.clGetDeviceInfo(device, what, room, value, needed);
}

void gmt_spill_override_extensions(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clGetExtensionFunctionAddress, get_extension_function);
	GMT_SPILL_OVER(over, clGetExtensionFunctionAddressForPlatform, get_platform_extension_function);
	GMT_SPILL_OVER(over, clGetPlatformInfo, get_platform_info);
	GMT_SPILL_OVER(over, clGetDeviceInfo, get_device_info);
}
