/*
 * extensions: prints the extensions that platforms and devices list, fails where two lists of one differ, and calls the functions
 * of those that it finds there, as programs do that believe a list.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "common.h"

#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of each extension that has some which take memory or queues, and of the loader. */
static const struct {
	const char *extension, *function;
} known[] = {
	{"cl_khr_icd", "clIcdGetPlatformIDsKHR"},
	{"cl_khr_command_buffer", "clCreateCommandBufferKHR"},
	{"cl_khr_command_buffer", "clGetCommandBufferInfoKHR"},
	{"cl_khr_create_command_queue", "clCreateCommandQueueWithPropertiesKHR"},
	{"cl_khr_external_memory", "clEnqueueAcquireExternalMemObjectsKHR"},
	{"cl_khr_semaphore", "clCreateSemaphoreWithPropertiesKHR"},
	{"cl_khr_gl_sharing", "clGetGLContextInfoKHR"},
	{"cl_khr_gl_event", "clCreateEventFromGLsyncKHR"},
	{"cl_khr_egl_image", "clCreateFromEGLImageKHR"},
	{"cl_khr_il_program", "clCreateProgramWithILKHR"},
	{"cl_khr_suggested_local_work_size", "clGetKernelSuggestedLocalWorkSizeKHR"},
	{"cl_khr_terminate_context", "clTerminateContextKHR"},
	{"cl_ext_device_fission", "clCreateSubDevicesEXT"},
	{"cl_ext_migrate_memobject", "clEnqueueMigrateMemObjectEXT"},
	{"cl_intel_unified_shared_memory", "clSetKernelArgMemPointerINTEL"},
	{"cl_intel_create_buffer_with_properties", "clCreateBufferWithPropertiesINTEL"},
	{"cl_pocl_content_size", "clSetContentSizeBufferPoCL"},
};

/* Whether the word is in a list with spaces between. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

static void compare(const char *whose, const char *list, const cl_name_version *versions, size_t count)
{
	size_t words = 0;
	printf("%s: %s\n", whose, list);
	for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
		words++;
	for (size_t i = 0; i < count; i++)
		if (!lists(list, versions[i].name))
			fail("%s: %s has a version, but is not listed", whose, versions[i].name);
	if (words != count)
		fail("%s: %zu listed, %zu with versions", whose, words, count);
}

static void call_functions(cl_platform_id platform, const char *list)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (lists(list, known[i].extension) && !clGetExtensionFunctionAddressForPlatform(platform, known[i].function))
			fail("%s is listed, but there is no %s", known[i].extension, known[i].function);
}

/* As programs do that believe the list. */
static void make_command_buffer(cl_platform_id platform, const char *list)
{
	void *address = lists(list, "cl_khr_command_buffer") ? clGetExtensionFunctionAddressForPlatform(platform, "clCreateCommandBufferKHR") : NULL;
	clCreateCommandBufferKHR_fn create;
	cl_int status;
	if (!lists(list, "cl_khr_command_buffer"))
		return;
	memcpy(&create, &address, sizeof create);
	struct gpu gpu = gpu_open(0);
	create(1, &gpu.queue, NULL, &status);
	CHECK(status);
	puts("a command buffer");
}

int main(void)
{
	static char list[1 << 16];
	static cl_name_version versions[1024];
	size_t bytes = 0;
	cl_platform_id platform;
	cl_device_id device = gpu_device();
	CHECK(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
	CHECK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof list, list, NULL));
	CHECK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof versions, versions, &bytes));
	compare("platform", list, versions, bytes / sizeof *versions);
	call_functions(platform, list);
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, list, NULL));
	if (strlen(list) + 1 != bytes)
		fail("%zu bytes for a list of %zu", bytes, strlen(list));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof versions, versions, &bytes));
	compare("device", list, versions, bytes / sizeof *versions);
	call_functions(platform, list);
	make_command_buffer(platform, list);
	printf("the loader names itself: %d\n", clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD") != NULL);
	return EXIT_SUCCESS;
}
