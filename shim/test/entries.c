/* entries.c: a program that is not linked with OpenCL, with the shim preloaded: every way to dlopen it. */
#define _GNU_SOURCE
#define DOORS_WITH_OPENCL
#include "entries.h"
#include "harness.h"

#include <dlfcn.h>
#include <unistd.h>

#define FIND(library, name)                                                                                            \
	__typeof__(&name) name##_found;                                                                                \
	do {                                                                                                           \
		void *found = dlsym(library, #name);                                                                   \
		CHECK(found);                                                                                          \
		memcpy(&name##_found, &found, sizeof found);                                                           \
	} while (0)

/* The file name of the library that holds an address. */
static const char *home(const void *address)
{
	Dl_info info;
	CHECK(address && dladdr(address, &info));
	const char *slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static bool is_in(const void *address, const char *library)
{
	return strcmp(home(address), library) == 0;
}

static void *beside(const char *name)
{
	return dlopen(path_beside(name), RTLD_NOW | RTLD_LOCAL);
}

/* A program's first steps with what it opened: two buffers, the second of them the first again. */
static void served_through(void *library)
{
	CHECK(library);
	CHECK(is_in(dlsym(library, "clCreateBuffer"), GMT_SHIM_NAME));
	CHECK(!is_in(dlsym(library, "clGetPlatformIDs"), GMT_SHIM_NAME)); /* not hooked: untouched */
	FIND(library, clCreateContext);
	FIND(library, clReleaseContext);
	FIND(library, clCreateBuffer);
	FIND(library, clReleaseMemObject);
	FIND(library, fake_device);
	cl_device_id device = fake_device_found();
	cl_context context = clCreateContext_found(NULL, 1, &device, NULL, NULL, NULL);
	CHECK(context);
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject_found(clCreateBuffer_found(context, 0, 100, NULL, NULL)));
	OK(clReleaseContext_found(context));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 1);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 1);
}

TEST(opened_by_its_versioned_name)
{
	session_open((struct options){0});
	served_through(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL));
}

TEST(opened_by_its_plain_name)
{
	session_open((struct options){0});
	served_through(dlopen("libOpenCL.so", RTLD_LAZY | RTLD_LOCAL));
}

TEST(opened_by_an_absolute_path)
{
	session_open((struct options){0});
	served_through(beside("libOpenCL.so"));
}

TEST(opened_for_everybody)
{
	session_open((struct options){0});
	served_through(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL));
}

TEST(opened_without_a_session)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	FIND(library, clCreateUserEvent);
	cl_int err = 1;
	CHECK(!clCreateUserEvent_found(NULL, &err));
	EQUAL(err, CL_INVALID_CONTEXT);
}

TEST(nothing_happens_without_opencl)
{
	session_open((struct options){0});
	CHECK(!dlopen("libNoSuchOpenCL.so", RTLD_NOW));
	CHECK(dlsym(RTLD_DEFAULT, "malloc"));
	CHECK(!session_read());
}

TEST(what_is_missing_stays_missing)
{
	session_open((struct options){0});
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	dlerror();
	CHECK(!dlsym(library, "clNoSuchFunction"));
	CHECK(strstr(dlerror(), "clNoSuchFunction"));
	CHECK(!dlsym(library, "clHostMemAllocINTEL")); /* an extension is not exported */
	CHECK(!dlsym(library, "nothing"));
}

TEST(lookups_start_behind_the_library_that_asks)
{
	void *probe = gmt_entry_next("gmt_entry_probe");
	CHECK(is_in(probe, "libbehind.so"));
	CHECK(is_in(gmt_entry_next("clEntryProbe"), "libbehind.so"));
	CHECK(is_in(gmt_entry_next("clCreateBuffer"), "libbehind.so"));
	CHECK(is_in(gmt_entry_default("gmt_entry_probe"), "libneighbour.so"));
	CHECK(is_in(dlsym(RTLD_DEFAULT, "gmt_entry_probe"), "libneighbour.so"));
	CHECK(is_in(dlsym(RTLD_NEXT, "gmt_entry_probe"), "libneighbour.so"));
}

TEST(libraries_that_are_no_loader_are_left_alone)
{
	session_open((struct options){0});
	void *library = dlopen("libbehind.so", RTLD_NOW | RTLD_NOLOAD);
	CHECK(library);
	CHECK(is_in(dlsym(library, "clCreateBuffer"), "libbehind.so"));
	CHECK(!session_read());
}

TEST(a_second_loader_is_reported_and_left_alone)
{
	session_open((struct options){0});
	served_through(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL));
	void *second = beside("libOpenCL_second.so");
	CHECK(second);
	CHECK(is_in(dlsym(second, "clCreateBuffer"), "libOpenCL_second.so"));
	EQUAL(diags(GMT_DIAG_SECOND_LOADER), 1);
	CHECK(strstr(last_text(GMT_KIND_DIAG), "/libOpenCL_second.so"));
}

TEST(every_hook_is_found_and_nothing_else_is_exported)
{
	static const char *const hooks[] = {
#define HOOK(name) #name,
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	};
	session_open((struct options){0});
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL), *shim = beside(GMT_SHIM_NAME);
	CHECK(library && shim);
	for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
		CHECK(is_in(dlsym(library, hooks[i]), GMT_SHIM_NAME));
		bool preloaded = strcmp(hooks[i], "clGetPlatformInfo") != 0; /* see its hook */
		void *entry = dlsym(shim, hooks[i]);
		CHECK(preloaded ? is_in(entry, GMT_SHIM_NAME) : !entry);
	}
	CHECK(!dlsym(shim, "gmt_driver_now"));
	CHECK(!dlsym(shim, "gmt_session"));
	CHECK(!dlsym(shim, "clHostMemAllocINTEL"));
}
