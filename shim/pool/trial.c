/*
 * trial.c: drivers get sub-buffers wrong in ways that the program would notice, so each is tried before the first
 * sub-allocation: on a queue of our own, which waits for no command of the program. Images are tried in a context of our own,
 * because a refusal may leave traces (PoCL 3.1 keeps a reference). On a GPU that context takes as long as a small program
 * (0.15 s on an H200), so it is made there only for a program that can create images; on the host's processor always, as slabs
 * depend on it (pool/alias.h). What kernels do with sub-buffers is not tried: to compile one would take as long as a program's
 * start.
 */
#define _GNU_SOURCE
#include "trial.h"

#include "../base/dispatch.h"
#include "../base/leak_check.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "images.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 }; /* bytes: four elements of an image */

/* A buffer with two sub-buffers, at multiples of at, and the expected contents of the buffer. */
struct sample {
	cl_context context;
	cl_device_id device;
	cl_command_queue queue;
	cl_mem whole, part[2];
	size_t at, size;
	unsigned char *want, *got;
	unsigned char *store; /* the host's memory that the buffer lies in; NULL: the driver's own */
	cl_uint idle;         /* references to the context before the first command */
	cl_uint images, kept; /* made so far; references to the context that each has left behind */
	bool old;
};

static cl_uint context_references(cl_context context)
{
	cl_uint count = 0;
	return gmt_driver.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL) == CL_SUCCESS ? count : 0;
}

/* The context's references once they are as expected: PoCL's commands complete before they release their queue. Waits 10 ms at most. */
static cl_uint settled_references(cl_context context, cl_uint expected)
{
	cl_uint count = context_references(context);
	for (int i = 0; i < 100 && count > expected; i++) {
		gmt_pause(100000);
		count = context_references(context);
	}
	return count;
}

static cl_mem create_part(const struct sample *s, size_t origin, size_t size)
{
	cl_buffer_region region = {origin, size};
	cl_int err = CL_SUCCESS;
	return gmt_driver.clCreateSubBuffer(s->whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
}

/* Creates the sample. All its pieces of PIECE bytes are different. */
static bool sample_open(struct sample *s)
{
	cl_int err = CL_SUCCESS;
	s->want = malloc(2 * s->size);
	if (!s->want)
		return false;
	s->got = s->want + s->size;
	for (size_t i = 0; i < s->size; i++)
		s->want[i] = (unsigned char)(i * 37 + i / 64 * 11);
	if (s->store)
		memcpy(s->store, s->want, s->size);
	s->queue = gmt_driver.clCreateCommandQueue(s->context, s->device, 0, &err);
	s->whole = gmt_driver.clCreateBuffer(s->context, s->store ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR, s->size,
					     s->store ? s->store : s->want, &err);
	for (size_t i = 0; s->whole && i < 2; i++)
		s->part[i] = create_part(s, (i + 1) * s->at, 3 * PIECE);
	s->idle = context_references(s->context);
	return s->queue && s->part[0] && s->part[1];
}

static void sample_close(const struct sample *s)
{
	cl_mem all[] = {s->part[0], s->part[1], s->whole};
	if (s->queue) {
		gmt_driver.clFinish(s->queue);
		gmt_driver.clReleaseCommandQueue(s->queue);
	}
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i])
			gmt_driver.clReleaseMemObject(all[i]);
	free(s->want);
}

static bool reads_as(const struct sample *s, cl_mem buffer, const unsigned char *want, size_t size)
{
	return gmt_driver.clEnqueueReadBuffer(s->queue, buffer, CL_TRUE, 0, size, s->got, 0, NULL, NULL) == CL_SUCCESS &&
	       memcmp(s->got, want, size) == 0;
}

static bool maps_as(const struct sample *s, cl_mem buffer, const unsigned char *want)
{
	cl_int err = CL_SUCCESS;
	void *mapped = gmt_driver.clEnqueueMapBuffer(s->queue, buffer, CL_TRUE, CL_MAP_READ, 0, PIECE, 0, NULL, NULL, &err);
	bool same = mapped && memcmp(mapped, want, PIECE) == 0;
	return mapped && gmt_driver.clEnqueueUnmapMemObject(s->queue, buffer, mapped, 0, NULL, NULL) == CL_SUCCESS && same;
}

/* Writes, fills and copies must be seen through the sub-buffers and through the whole. */
static bool parts_pass(struct sample *s)
{
	unsigned char *first = s->want + s->at, *second = s->want + 2 * s->at;
	memset(first + PIECE, 0x5a, PIECE);
	bool ok = gmt_driver.clEnqueueWriteBuffer(s->queue, s->part[0], CL_FALSE, PIECE, PIECE, first + PIECE, 0, NULL, NULL) == CL_SUCCESS;
	if (!s->old) {
		memset(first + 2 * PIECE, 0x33, PIECE);
		ok = ok && gmt_driver.clEnqueueFillBuffer(s->queue, s->part[0], first + 2 * PIECE, 1, 2 * PIECE, PIECE, 0, NULL, NULL) == CL_SUCCESS;
	}
	memcpy(second, first, PIECE);
	ok = ok && gmt_driver.clEnqueueCopyBuffer(s->queue, s->part[0], s->part[1], 0, 0, PIECE, 0, NULL, NULL) == CL_SUCCESS;
	return ok && reads_as(s, s->part[0], first, 3 * PIECE) && reads_as(s, s->whole, s->want, s->size) && maps_as(s, s->part[1], second);
}

static cl_mem create_image_of(struct sample *s, cl_mem buffer)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = PIECE / 4, .mem_object = buffer};
	cl_int err = CL_SUCCESS;
	cl_mem image = gmt_driver.clCreateImage ? gmt_driver.clCreateImage(s->context, 0, &format, &desc, NULL, &err) : NULL;
	s->images += image != NULL;
	return image;
}

/*
 * PoCL 3.1 forgets a context's reference with each image of a buffer. A context of ours that stays would show: PoCL aborts when a
 * context that it could not make is released, as clinfo does, if another one is there.
 */
static void release_context(const struct sample *s)
{
	cl_uint forgotten = s->images * s->kept;
	if (forgotten > 0 && settled_references(s->context, 1 + forgotten) == 1 + forgotten)
		for (cl_uint i = 0; i < forgotten; i++)
			gmt_driver.clReleaseContext(s->context);
	gmt_driver.clReleaseContext(s->context);
}

static bool image_shows(const struct sample *s, cl_mem image, const unsigned char *want)
{
	const size_t origin[3] = {0, 0, 0}, region[3] = {PIECE / 4, 1, 1};
	return gmt_driver.clEnqueueReadImage(s->queue, image, CL_TRUE, origin, region, 0, 0, s->got, 0, NULL, NULL) == CL_SUCCESS &&
	       memcmp(s->got, want, PIECE) == 0;
}

/* The image must show bytes that are written through the sub-buffer, and the sub-buffer those written through the image. */
static bool alias_passes(struct sample *s, cl_mem image)
{
	const size_t origin[3] = {0, 0, 0}, region[3] = {PIECE / 4, 1, 1};
	unsigned char *first = s->want + s->at;
	bool ok = image_shows(s, image, first);
	memset(first, 0x77, PIECE);
	ok = ok && gmt_driver.clEnqueueWriteBuffer(s->queue, s->part[0], CL_FALSE, 0, PIECE, first, 0, NULL, NULL) == CL_SUCCESS &&
	     image_shows(s, image, first);
	memset(first, 0x44, PIECE);
	ok = ok && gmt_driver.clEnqueueWriteImage(s->queue, image, CL_FALSE, origin, region, 0, 0, first, 0, NULL, NULL) == CL_SUCCESS;
	return ok && reads_as(s, s->part[0], first, 3 * PIECE) && reads_as(s, s->whole, s->want, s->size);
}

/* Whether a device is the host's processor. */
static bool is_processor(cl_device_id device)
{
	cl_device_type type = 0;
	return gmt_driver.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL) == CL_SUCCESS && type & CL_DEVICE_TYPE_CPU;
}

/*
 * Only for a device that is the host's processor: there all of it is the same memory at the same address, also for kernels. With
 * --spill the driver's buffers move.
 */
static bool aliases_pass(struct sample *like)
{
	struct sample s = {.context = like->context, .device = like->device, .at = like->at, .size = like->size, .old = like->old};
	void *store = NULL;
	if (gmt_session.config.spill || !is_processor(s.device) || posix_memalign(&store, s.at, s.size) != 0)
		return false;
	s.store = store;
	bool ok = sample_open(&s) && parts_pass(&s);
	cl_int err = CL_SUCCESS;
	cl_mem alias = ok ? gmt_driver.clCreateBuffer(s.context, CL_MEM_USE_HOST_PTR, 3 * PIECE, s.store + s.at, &err) : NULL;
	cl_mem image = alias ? create_image_of(like, alias) : NULL;
	ok = image && alias_passes(&s, image);
	if (image)
		gmt_driver.clReleaseMemObject(image);
	if (alias)
		gmt_driver.clReleaseMemObject(alias);
	sample_close(&s);
	free(store);
	return ok;
}

/*
 * PoCL 1.4 (Ubuntu 20.04) crashes when an image of a buffer is read, and 1.1 (18.04) then frees it; 1.6 (Debian 11) does neither.
 * A program that makes no such images must not crash for ours.
 */
static bool is_early_pocl(cl_device_id device)
{
	char version[256] = "", driver[64] = "";
	if (gmt_driver.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL) != CL_SUCCESS ||
	    gmt_driver.clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL) != CL_SUCCESS || !strstr(version, " pocl "))
		return false;
	char *point = NULL;
	unsigned long major = strtoul(driver, &point, 10), minor = *point == '.' ? strtoul(point + 1, NULL, 10) : 0;
	return major < 1 || (major == 1 && minor < 6);
}

/* The driver may create images of buffers, but none of sub-buffers, or such that show other memory (as rusticl of Mesa 22.3). */
static enum gmt_parts try_images(struct sample *s)
{
	if (s->old) /* before OpenCL 1.2 there are no images of buffers */
		return GMT_PARTS_ALL;
	if (is_early_pocl(s->device))
		return GMT_PARTS_WITHOUT_IMAGES;
	cl_uint before = settled_references(s->context, s->idle);
	cl_mem of_whole = create_image_of(s, s->whole);
	if (!of_whole)
		return GMT_PARTS_ALL;
	gmt_driver.clReleaseMemObject(of_whole);
	cl_uint after = context_references(s->context);
	s->kept = after > before ? after - before : 0;
	cl_mem of_part = create_image_of(s, s->part[0]);
	bool shows = of_part && image_shows(s, of_part, s->want + s->at);
	if (of_part)
		gmt_driver.clReleaseMemObject(of_part);
	if (shows)
		return GMT_PARTS_ALL;
	return !of_part && aliases_pass(s) ? GMT_PARTS_ALIASED : GMT_PARTS_WITHOUT_IMAGES;
}

static enum gmt_parts try_parts(const struct gmt_context *like, bool images)
{
	cl_int err = CL_SUCCESS;
	uint32_t align = like->devices.align;
	struct sample s = {.device = like->devices.first, .at = align < 4 * PIECE ? 4 * PIECE : align, .old = like->devices.old};
	s.size = 2 * s.at + 3 * PIECE;
	if (images)
		s.context = gmt_driver.clCreateContext(NULL, 1, &s.device, NULL, NULL, &err);
	else
		s.context = (cl_context)atomic_load(&like->object.handle);
	if (!s.context)
		return GMT_PARTS_NONE;
	enum gmt_parts outcome = sample_open(&s) && parts_pass(&s) ? GMT_PARTS_IMAGES_UNTRIED : GMT_PARTS_NONE;
	if (images && outcome != GMT_PARTS_NONE)
		outcome = try_images(&s);
	sample_close(&s);
	if (images)
		release_context(&s);
	return outcome;
}

static void report_no_parts(const char *why, atomic_flag *said)
{
	if (!atomic_flag_test_and_set(said))
		gmt_diag(GMT_DIAG_WHOLE_BLOCKS, why);
}

/*
 * NVIDIA's driver gets sub-buffers right, but a kernel that uses one of 16 MiB takes 4 to 8 ms longer: programs ran up to 18
 * times slower (580.159 on an H200). The cost is not tried here, as that needs a kernel. PoCL's version ends with CUDA-sm_90.
 */
static bool is_slow(cl_device_id device)
{
	char version[64] = "";
	if (gmt_driver.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL) != CL_SUCCESS)
		return false;
	const char *kind = strrchr(version, ' ');
	return kind && strcmp(kind, " CUDA") == 0;
}

static enum gmt_parts find_out_parts(const struct gmt_context *context, bool images)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	if (is_slow(context->devices.first)) {
		report_no_parts("kernels take milliseconds for each sub-buffer on NVIDIA's driver", &said);
		return GMT_PARTS_NONE;
	}
	gmt_leak_check_off(); /* PoCL 3.1 leaks four bytes with each image of a buffer */
	enum gmt_parts outcome = try_parts(context, images || is_processor(context->devices.first));
	gmt_leak_check_on();
	if (outcome == GMT_PARTS_NONE)
		report_no_parts("this driver's sub-buffers do not hold their own bytes", &said);
	return outcome;
}

/* The outcome for the context's device: that of the process's first device if it is the same, else that of a new trial. */
static uint8_t trial_outcome(const struct gmt_context *context, bool images)
{
	static _Atomic int known; /* of the first device: enum gmt_parts */
	static _Atomic(cl_device_id) first;
	int before = atomic_load(&known);
	bool same = before && atomic_load(&first) == context->devices.first;
	if (same && !(images && before == GMT_PARTS_IMAGES_UNTRIED))
		return (uint8_t)before;
	enum gmt_parts outcome = find_out_parts(context, images);
	if (!before)
		atomic_store(&first, context->devices.first);
	if (!before || same)
		atomic_store(&known, outcome);
	return (uint8_t)outcome;
}

bool gmt_trial(struct gmt_context *context)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	uint8_t parts = atomic_load_explicit(&context->tried.parts, memory_order_relaxed);
	if (gmt_likely(parts > GMT_PARTS_WITHOUT_IMAGES || parts == GMT_PARTS_NONE))
		return parts != GMT_PARTS_NONE;
	bool images = gmt_images_can_be_made();
	if (parts == GMT_PARTS_UNTRIED || (images && parts == GMT_PARTS_IMAGES_UNTRIED)) {
		parts = trial_outcome(context, images);
		atomic_store(&context->tried.parts, parts);
	}
	if (parts != GMT_PARTS_WITHOUT_IMAGES || !images)
		return parts != GMT_PARTS_NONE; /* so far */
	report_no_parts("images of sub-buffers fail on this driver, and the program can create images", &said);
	atomic_store(&context->tried.parts, GMT_PARTS_NONE);
	return false;
}
