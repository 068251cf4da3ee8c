/* hook_program.c: programs and samplers, which are only counted. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "../entry/start.h"
#include "../registry/finding.h"
#include "../registry/objects.h"

#include <stdatomic.h>
#include <stdlib.h>

static void note_program_created(cl_program handle, const char *function, cl_int status, const struct gmt_caller *caller)
{
	struct gmt_counted *program = gmt_program_add(handle);
	if (handle)
		gmt_count_object(program ? &program->object : NULL, GMT_HELD_PROGRAM, caller);
	else
		gmt_call_failed(function, status, caller);
}

static void note_sampler_created(cl_sampler handle, const char *function, cl_int status, const struct gmt_caller *caller)
{
	struct gmt_counted *sampler = gmt_sampler_add(handle);
	if (handle)
		gmt_count_object(sampler ? &sampler->object : NULL, GMT_HELD_SAMPLER, caller);
	else
		gmt_call_failed(function, status, caller);
}

/* A hook of a function that creates a program or sampler: ARGUMENTS as declared, then the values given to the driver. */
#define CREATES(type, created, name, ARGUMENTS, ...)                                                                     \
	GMT_HOOK type name ARGUMENTS                                                                                      \
	{                                                                                                                 \
		if (!gmt_enter_untimed())                                                                                 \
			return gmt_driver.name(__VA_ARGS__);                                                              \
		errcode = GMT_STATUS(errcode);                                                                            \
		type handle = gmt_driver.name(__VA_ARGS__);                                                               \
		created(handle, #name, *errcode, &GMT_CALLER);                                                            \
		gmt_leave();                                                                                              \
		return handle;                                                                                            \
	}

CREATES(cl_program, note_program_created, clCreateProgramWithSource,
	(cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *errcode),
	context, count, texts, lengths, errcode)
CREATES(cl_program, note_program_created, clCreateProgramWithBinary,
	(cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths, const unsigned char **binaries,
	 cl_int *status, cl_int *errcode),
	context, count, devices, lengths, binaries, status, errcode)
CREATES(cl_program, note_program_created, clCreateProgramWithBuiltInKernels,
	(cl_context context, cl_uint count, const cl_device_id *devices, const char *names, cl_int *errcode),
	context, count, devices, names, errcode)
CREATES(cl_program, note_program_created, clCreateProgramWithIL,
	(cl_context context, const void *code, size_t length, cl_int *errcode), context, code, length, errcode)
CREATES(cl_sampler, note_sampler_created, clCreateSampler,
	(cl_context context, cl_bool normalized, cl_addressing_mode addressing, cl_filter_mode filter, cl_int *errcode),
	context, normalized, addressing, filter, errcode)
CREATES(cl_sampler, note_sampler_created, clCreateSamplerWithProperties,
	(cl_context context, const cl_sampler_properties *properties, cl_int *errcode), context, properties, errcode)

typedef void(CL_CALLBACK *build_callback)(cl_program, void *);

/* A build with a callback. The call and the callback own it: the later of them frees it. */
struct build {
	build_callback notify;
	void *data;
	const char *function;
	cl_int failure; /* what the call would return */
	uint32_t site;
	_Atomic int owners;
	_Atomic bool reported; /* the failure has been written */
};

static void report_build_failure(struct build *build, cl_int status)
{
	if (!atomic_exchange(&build->reported, true))
		gmt_finding_call_failed(build->function, build->site, status);
}

static void drop_build(struct build *build)
{
	if (atomic_fetch_sub(&build->owners, 1) == 1)
		free(build);
}

static bool has_failed(cl_program program)
{
	enum { DEVICES = 64 };
	cl_device_id devices[DEVICES];
	size_t size = 0;
	if (gmt_driver.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, &size) != CL_SUCCESS)
		return false;
	for (size_t i = 0; i < size / sizeof *devices; i++) {
		cl_build_status status = CL_BUILD_SUCCESS;
		if (gmt_driver.clGetProgramBuildInfo(program, devices[i], CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL) == CL_SUCCESS &&
		    status == CL_BUILD_ERROR)
			return true;
	}
	return false;
}

/* Queries the build's status before gmt_callback_begin: after it, queries would count as the program's. */
static void CL_CALLBACK call_build_callback(cl_program program, void *data)
{
	struct build *build = data;
	if (program && !gmt_session_is_quiet() && has_failed(program))
		report_build_failure(build, build->failure);
	struct gmt_callback before = gmt_callback_begin();
	build->notify(program, build->data);
	gmt_callback_end(before);
	drop_build(build);
}

/* Replaces the program's callback by ours, which calls it. NULL: the program gave none. */
static struct build *wrap_callback(build_callback *notify, void **data, const char *function, cl_int failure, const struct gmt_caller *caller)
{
	struct build *ours = *notify ? malloc(sizeof *ours) : NULL;
	if (!ours)
		return NULL;
	*ours = (struct build){.notify = *notify, .data = *data, .function = function, .failure = failure, .site = gmt_site_of(caller), .owners = 2};
	*notify = call_build_callback;
	*data = ours;
	return ours;
}

/* Handles the return of the call. After an error the driver may still call back, so the callback's data stays allocated. */
static void note_build_returned(struct build *build, const char *function, cl_int status, const struct gmt_caller *caller)
{
	if (status != CL_SUCCESS && build)
		report_build_failure(build, status);
	else if (status != CL_SUCCESS)
		gmt_call_failed(function, status, caller);
	if (build)
		drop_build(build);
}

GMT_HOOK cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options, build_callback notify,
			       void *data)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clBuildProgram(program, count, devices, options, notify, data);
	struct build *build = wrap_callback(&notify, &data, __func__, CL_BUILD_PROGRAM_FAILURE, &GMT_CALLER);
	cl_int err = gmt_driver.clBuildProgram(program, count, devices, options, notify, data);
	note_build_returned(build, __func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clCompileProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options, cl_uint headers,
				 const cl_program *list, const char **names, build_callback notify, void *data)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCompileProgram(program, count, devices, options, headers, list, names, notify, data);
	struct build *build = wrap_callback(&notify, &data, __func__, CL_COMPILE_PROGRAM_FAILURE, &GMT_CALLER);
	cl_int err = gmt_driver.clCompileProgram(program, count, devices, options, headers, list, names, notify, data);
	note_build_returned(build, __func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

GMT_HOOK cl_program clLinkProgram(cl_context context, cl_uint count, const cl_device_id *devices, const char *options,
				  cl_uint programs, const cl_program *list, build_callback notify, void *data, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clLinkProgram(context, count, devices, options, programs, list, notify, data, errcode);
	struct build *build = wrap_callback(&notify, &data, __func__, CL_LINK_PROGRAM_FAILURE, &GMT_CALLER);
	errcode = GMT_STATUS(errcode);
	cl_program handle = gmt_driver.clLinkProgram(context, count, devices, options, programs, list, notify, data, errcode);
	note_build_returned(build, __func__, *errcode, &GMT_CALLER);
	if (handle)
		note_program_created(handle, __func__, *errcode, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainProgram(cl_program handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainProgram(handle);
	cl_int err = gmt_driver.clRetainProgram(handle);
	struct gmt_counted *program = err == CL_SUCCESS ? gmt_program_find(handle) : NULL;
	if (program)
		atomic_fetch_add(&program->references, 1);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseProgram(cl_program handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseProgram(handle);
	struct gmt_counted *program = gmt_program_find(handle);
	if (program && gmt_last_reference(&program->references))
		gmt_program_remove(program);
	cl_int err = gmt_driver.clReleaseProgram(handle);
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clRetainSampler(cl_sampler handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainSampler(handle);
	cl_int err = gmt_driver.clRetainSampler(handle);
	struct gmt_counted *sampler = err == CL_SUCCESS ? gmt_sampler_find(handle) : NULL;
	if (sampler)
		atomic_fetch_add(&sampler->references, 1);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseSampler(cl_sampler handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseSampler(handle);
	struct gmt_counted *sampler = gmt_sampler_find(handle);
	if (sampler && gmt_last_reference(&sampler->references))
		gmt_sampler_remove(sampler);
	cl_int err = gmt_driver.clReleaseSampler(handle);
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}
