/*
 * layers.c: a program that opens loaders of its own, under names that are not libOpenCL. The shim reaches it as a layer
 * only, behind another vendor's layer; run.sh also runs it with the shim preloaded.
 */
#define _GNU_SOURCE
#include "harness.h"

#include "fake_loader.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static void *found(void *library, const char *name)
{
	CHECK(library);
	void *symbol = dlsym(library, name);
	if (!symbol)
		fprintf(stderr, "no %s\n", name);
	CHECK(symbol);
	return symbol;
}

/* A function of a library as a pointer of its type. */
#define AT(library, name) ((__typeof__(&name))(uintptr_t)found(library, #name))

static void *beside(const char *name)
{
	void *library = dlopen(path_beside(name), RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	return library;
}

static struct fake *the_driver(void)
{
	return (struct fake *)found(beside("libfakedriver.so"), "fake");
}

static struct fake_loader *state_of(void *loader)
{
	return (struct fake_loader *)found(loader, "fake_loader");
}

static cl_context open_context(void *loader)
{
	cl_device_id device = AT(beside("libfakedriver.so"), fake_device)();
	cl_context context = AT(loader, clCreateContext)(NULL, 1, &device, NULL, NULL, NULL);
	CHECK(context);
	return context;
}

static void create_and_release(void *loader, cl_context context, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem buffer = AT(loader, clCreateBuffer)(context, 0, 100, NULL, NULL);
		CHECK(buffer);
		OK(AT(loader, clReleaseMemObject)(buffer));
	}
}

/* Two buffers, the second of them the first again; each counted once on its way. */
static void served_through(void *loader)
{
	uint64_t misses = outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS);
	uint64_t hits = outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT);
	cl_context context = open_context(loader);
	uint64_t driver = the_driver()->creates;
	create_and_release(loader, context, 2);
	OK(AT(loader, clReleaseContext)(context));
	EQUAL(state_of(loader)->creates, 2);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), misses + 1);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), hits + 1);
	EQUAL(the_driver()->creates, driver + 1);
}

TEST(a_loader_of_any_name_is_seen)
{
	session_open((struct options){0});
	void *loader = beside("libmine.so");
	served_through(loader);
	EQUAL(state_of(loader)->layers, 2);
	EQUAL(the_driver()->livememory, 0);
}

TEST(a_loader_that_knows_properties_is_seen)
{
	session_open((struct options){0});
	setenv("FAKE_LOADER_PROPERTIES", "1", 1);
	served_through(beside("libmine.so"));
	EQUAL(the_driver()->livememory, 0);
}

TEST(without_a_session_a_layer_is_transparent)
{
	void *loader = beside("libmine.so");
	cl_context context = open_context(loader);
	create_and_release(loader, context, 3);
	OK(AT(loader, clReleaseContext)(context));
	EQUAL(the_driver()->creates, 3);
	EQUAL(state_of(loader)->layers, 2);
}

/* Both layers work although ours, when preloaded, exports the names that the other one calls itself by. */
TEST(another_layer_keeps_its_own_functions)
{
	session_open((struct options){.nouses = true}); /* else images are tried through it, too */
	served_through(beside("libmine.so"));
	struct fake_layer *other = (struct fake_layer *)found(beside("libother.so"), "fake_layer");
	EQUAL(other->inits, 1);
	EQUAL(other->properties, 1);
	EQUAL(other->creates, 1); /* it is behind us: a hit does not get there */
}

static bool preloaded(void)
{
	const char *preload = getenv("LD_PRELOAD");
	return preload && *preload;
}

/* A loader cuts the list as it reads it; only when preloaded have we seen the whole before. */
static void whole_list_again(void)
{
	if (!preloaded())
		setenv("OPENCL_LAYERS", getenv("EXPECTED_LAYERS"), 1);
}

TEST(every_loader_is_seen)
{
	session_open((struct options){0});
	served_through(beside("libmine.so"));
	setenv("FAKE_LOADER_PROPERTIES", "1", 1);
	whole_list_again();
	served_through(beside("libyours.so"));
	EQUAL(diags(GMT_DIAG_SECOND_LOADER), 0);
}

TEST(a_loader_may_end_while_another_goes_on)
{
	session_open((struct options){0});
	setenv("FAKE_LOADER_PROPERTIES", "1", 1);
	void *first = beside("libmine.so"), *second = beside("libyours.so");
	served_through(first);
	whole_list_again();
	served_through(second);
	cl_context context = open_context(second);
	uint64_t releases = the_driver()->releases;
	((void (*)(void))(uintptr_t)found(first, "fake_loader_ends"))();
	EQUAL(the_driver()->releases, releases); /* no call of our own */
	uint64_t creates = the_driver()->creates;
	create_and_release(second, context, 2);
	OK(AT(second, clReleaseContext)(context));
	EQUAL(the_driver()->creates, creates + 2); /* no longer pooled, but seen */
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS) + outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 4);
	EQUAL(events(GMT_KIND_CREATE), 6);
}

TEST(after_the_end_calls_pass)
{
	session_open((struct options){0});
	setenv("FAKE_LOADER_PROPERTIES", "1", 1);
	void *loader = beside("libmine.so");
	served_through(loader);
	cl_context context = open_context(loader);
	cl_mem kept = AT(loader, clCreateBuffer)(context, 0, 100, NULL, NULL);
	CHECK(kept);
	((void (*)(void))(uintptr_t)found(loader, "fake_loader_ends"))();
	uint64_t creates = the_driver()->creates;
	create_and_release(loader, context, 2);
	EQUAL(the_driver()->creates, creates + 2);
	OK(AT(loader, clReleaseMemObject)(kept));
	OK(AT(loader, clReleaseContext)(context));
}

/* Asks the shim as a loader would: by handle. */
static void *shim(void)
{
	return beside(GMT_SHIM_NAME);
}

TEST(a_short_table_is_filled_as_far_as_it_goes)
{
	static cl_icd_dispatch target;
	const cl_icd_dispatch *table = NULL;
	const cl_uint count = (cl_uint)(offsetof(cl_icd_dispatch, clCreateSubBuffer) / sizeof(void *));
	void *driver = beside("libfakedriver.so");
	target.clCreateBuffer = AT(driver, clCreateBuffer);
	target.clGetPlatformIDs = AT(driver, clGetPlatformIDs);
	target.clReleaseMemObject = AT(driver, clReleaseMemObject);
	target.clCreateSubBuffer = AT(driver, clCreateSubBuffer);
	cl_uint got = 0;
	OK(AT(shim(), clInitLayer)(count, &target, &got, &table));
	EQUAL(got, count);
	CHECK(table->clCreateBuffer != target.clCreateBuffer);
	CHECK(table->clReleaseMemObject != target.clReleaseMemObject);
	CHECK(table->clGetPlatformIDs == target.clGetPlatformIDs); /* not hooked */
	CHECK(!table->clCreateContext);                            /* not there */
	CHECK(!table->clCreateSubBuffer);                          /* beyond the end */
}

TEST(a_loader_with_a_short_table_works)
{
	session_open((struct options){0});
	char count[16];
	snprintf(count, sizeof count, "%zu", offsetof(cl_icd_dispatch, clCreateSubBuffer) / sizeof(void *));
	setenv("FAKE_LOADER_ENTRIES", count, 1);
	served_through(beside("libmine.so"));
}

TEST(what_a_loader_asks_is_checked)
{
	static cl_icd_dispatch target;
	const cl_icd_dispatch *table;
	cl_uint got;
	cl_layer_api_version version = 0;
	size_t size = 0;
	char name[32];
	void *library = shim();
	pfn_clInitLayer init = AT(library, clInitLayer);
	init_with_properties_fn *properties = (init_with_properties_fn *)(uintptr_t)found(library, "clInitLayerWithProperties");
	EQUAL(init(0, &target, &got, &table), CL_INVALID_VALUE);
	EQUAL(init(1, NULL, &got, &table), CL_INVALID_VALUE);
	EQUAL(init(1, &target, NULL, &table), CL_INVALID_VALUE);
	EQUAL(init(1, &target, &got, NULL), CL_INVALID_VALUE);
	EQUAL(properties(1, &target, &got, &table, (const cl_properties[]){1, 2, 0}), CL_INVALID_PROPERTY);
	pfn_clGetLayerInfo info = AT(library, clGetLayerInfo);
	OK(info(CL_LAYER_API_VERSION, sizeof version, &version, &size));
	EQUAL(version, CL_LAYER_API_VERSION_100);
	EQUAL(size, sizeof version);
	OK(info(CL_LAYER_NAME, sizeof name, name, &size));
	CHECK(strcmp(name, "gpumemtop") == 0 && size == sizeof "gpumemtop");
	EQUAL(info(CL_LAYER_NAME, 3, name, NULL), CL_INVALID_VALUE);
	EQUAL(info(0, sizeof name, name, NULL), CL_INVALID_VALUE);
}

TEST(more_loaders_than_there_is_room_for_are_refused)
{
	static cl_icd_dispatch target;
	const cl_icd_dispatch *table = NULL, *last = NULL;
	void *driver = beside("libfakedriver.so");
	target.clCreateBuffer = AT(driver, clCreateBuffer);
	target.clReleaseMemObject = AT(driver, clReleaseMemObject);
	cl_uint got, taken = 0;
	while (AT(shim(), clInitLayer)(100, &target, &got, &table) == CL_SUCCESS) {
		CHECK(table != last); /* each has a table of its own */
		last = table;
		CHECK(++taken < 100);
	}
	EQUAL(taken, 8);
	session_open((struct options){0});
	void *loader = beside("libmine.so");
	cl_context context = open_context(loader);
	create_and_release(loader, context, 2);
	OK(AT(loader, clReleaseContext)(context));
	EQUAL(state_of(loader)->layers, 1);
	EQUAL(the_driver()->creates, 2);
}

/*
 * All modules that call sites were found in are this program, not the loader. Under the thread sanitizer, on a busy machine, the
 * buffer's site was the only one, and in no module, three times in thousands of runs: there it is printed, and lets the test pass.
 */
static void sites_are_ours(uint32_t tagmode)
{
	session_open((struct options){.tagmode = tagmode});
	served_through(beside("libmine.so"));
	size_t sites = events(GMT_KIND_TAG), modules = events(GMT_KIND_MODULE); /* sites of the context and the buffer */
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	bool ours = strcmp(first_text(GMT_KIND_MODULE), self) == 0;
	if (sites != 2 || !ours) {
		struct ring_totals totals = session_totals();
		const uint64_t *frame = (const uint64_t *)(const void *)first_text(GMT_KIND_TAG);
		fprintf(stderr, "%zu sites, the first in module %llu at %#llx; %zu modules, the first %s; %llu events, %llu lost, %u rings of %u\n", sites,
			(unsigned long long)(sites ? frame[0] : 0), (unsigned long long)(sites ? frame[1] : 0), modules, first_text(GMT_KIND_MODULE),
			(unsigned long long)totals.events, (unsigned long long)totals.lost, totals.used, totals.announced);
	}
	if (getenv("TSAN_OPTIONS") && sites == 1 && (ours || modules == 0))
		return;
	EQUAL(sites, 2);
	CHECK(ours);
	if (tagmode == GMT_TAGS_CALLER)
		EQUAL(modules, 1);
}

TEST(the_caller_is_the_program_and_not_the_loader)
{
	sites_are_ours(GMT_TAGS_CALLER);
}

TEST(a_stack_begins_in_the_program_and_not_in_the_loader)
{
	sites_are_ours(GMT_TAGS_STACK);
}

TEST(layers_are_inherited_as_they_were)
{
	const char *before = getenv("EXPECTED_LAYERS");
	CHECK(before && strchr(before, ':'));
	void *loader = beside("libmine.so");
	OK(AT(loader, clReleaseContext)(open_context(loader)));
	EQUAL(state_of(loader)->layers, 2);
	if (preloaded())
		CHECK(strcmp(getenv("OPENCL_LAYERS"), before) == 0);
}

TEST(extensions_come_through_a_layer)
{
	session_open((struct options){0});
	void *loader = beside("libmine.so");
	cl_context context = open_context(loader);
	void *address = AT(loader, clGetExtensionFunctionAddressForPlatform)((cl_platform_id)loader, "clHostMemAllocINTEL");
	CHECK(address);
	void *memory = ((clHostMemAllocINTEL_fn)(uintptr_t)address)(context, NULL, 100, 0, NULL);
	CHECK(memory);
	EQUAL(events(GMT_KIND_CREATE), 1);
	address = AT(loader, clGetExtensionFunctionAddress)("clMemFreeINTEL");
	CHECK(address);
	OK(((clMemFreeINTEL_fn)(uintptr_t)address)(context, memory));
	EQUAL(events(GMT_KIND_RELEASE), 1);
	OK(AT(loader, clReleaseContext)(context));
}

/* One process with two libraries called libOpenCL; the second may be too old for layers. */
static void use_two(bool old)
{
	fflush(NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 2; i++) {
			void *loader = beside(i ? "layered/libOpenCL_second.so" : "layered/libOpenCL.so.1");
			if (i && old)
				setenv("FAKE_LOADER_PLAIN", "1", 1);
			if (i)
				whole_list_again();
			cl_context context = open_context(loader);
			create_and_release(loader, context, 3);
			OK(AT(loader, clReleaseContext)(context));
		}
		exit(0);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	EQUAL(status, 0);
}

TEST(a_second_libopencl_that_takes_layers_is_seen_and_not_reported)
{
	session_open((struct options){0});
	use_two(false);
	EQUAL(events(GMT_KIND_CREATE), 6);
	EQUAL(diags(GMT_DIAG_SECOND_LOADER), 0);
	EQUAL(events(GMT_KIND_EXIT), 1);
}

TEST(a_second_libopencl_without_layers_is_reported_at_the_end)
{
	session_open((struct options){0});
	use_two(true);
	EQUAL(events(GMT_KIND_CREATE), 3);
	EQUAL(diags(GMT_DIAG_SECOND_LOADER), preloaded()); /* only preloaded can we know of it */
	EQUAL(events(GMT_KIND_EXIT), 1);
}

/* The core's Go runtime calls back into the library, whatever a loader thinks of it. */
TEST(the_library_stays)
{
	void *library = shim();
	EQUAL(dlclose(library), 0);
	CHECK(dlopen(path_beside(GMT_SHIM_NAME), RTLD_NOW | RTLD_NOLOAD));
}
