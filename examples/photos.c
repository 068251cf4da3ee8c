/*
 * photos: the program of make demo. It develops photographs as they come from a camera, twelve a second: blur, sharpen, count
 * the brightness, show. It is written as such programs are, and has five faults that gpumemtop finds:
 *
 *	keep_preview    keeps a preview of each bright photograph, and releases none
 *	create_lens     corrects the lens for the first photographs only, and stays until the end
 *	brightness      waits in a read for each photograph, before the next one can begin
 *	create_panorama asks once for more than a buffer may have
 *	the pool        has too low a limit for what one photograph needs: make demo sets it
 *
 *	photos [-t] [PHOTOGRAPHS] [SIZE]     SIZE: bytes of one photograph, a plane of floats
 */
#include "common.h"

#include <stdlib.h>
#include <time.h>

enum { WIDTH = 1024, BINS = 256, CORRECTED = 24, PREVIEW = 8, PER_SECOND = 12, BRIGHT = 100 };

static const char *const source =
	"float at(__global const float *p, int i, int count) { return p[clamp(i, 0, count - 1)]; }\n"
	"__kernel void correct(__global float *photo, __global const float *lens) {\n"
	"	int i = get_global_id(0);\n"
	"	photo[i] *= lens[4 * i] * lens[4 * i + 1] + lens[4 * i + 2] * lens[4 * i + 3];\n"
	"}\n"
	"__kernel void blur(__global const float *in, __global float *out, int width, int count) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = 0.5f * in[i] + 0.125f * (at(in, i - 1, count) + at(in, i + 1, count)\n"
	"		+ at(in, i - width, count) + at(in, i + width, count));\n"
	"}\n"
	"__kernel void sharpen(__global const float *photo, __global const float *blurred, __global float *out) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = clamp(2.0f * photo[i] - blurred[i], 0.0f, 255.0f);\n"
	"}\n"
	"__kernel void shrink(__global const float *in, __global float *out, int by) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = in[i * by];\n"
	"}\n"
	"__kernel void brightness(__global const float *in, __global uint *bins, uint part) {\n"
	"	uint bin = get_global_id(0);\n"
	"	float sum = 0.0f;\n"
	"	for (uint i = bin * part; i < (bin + 1) * part; i += 8) sum += pow(in[i], 2.2f);\n"
	"	bins[bin] = (uint)(sum / part / 32.0f);\n"
	"}\n";

struct studio {
	cl_program program;
	cl_kernel correct, blur, sharpen, shrink, brightness;
	cl_mem lens;
	size_t pixels;
};

SITE(create_lens)
SITE(create_photo)
SITE(create_blurred)
SITE(create_sharpened)
SITE(create_preview)
SITE(create_bins)

static struct studio open_studio(const struct gpu *gpu, size_t pixels)
{
	cl_program program = gpu_build(gpu, source);
	size_t size = 4 * pixels * sizeof(float);
	float *lens = allocate(size);
	for (size_t i = 0; i < 4 * pixels; i++)
		lens[i] = (float)(i / 4 % WIDTH) / WIDTH;
	struct studio s = {
		.program = program,
		.correct = gpu_kernel(program, "correct"),
		.blur = gpu_kernel(program, "blur"),
		.sharpen = gpu_kernel(program, "sharpen"),
		.shrink = gpu_kernel(program, "shrink"),
		.brightness = gpu_kernel(program, "brightness"),
		.lens = create_lens(gpu, size),
		.pixels = pixels,
	};
	CHECK(clEnqueueWriteBuffer(gpu->queue, s.lens, CL_TRUE, 0, size, lens, 0, NULL, NULL));
	free(lens);
	return s;
}

/* Uploads a photograph, and returns it sharpened. */
static cl_mem develop(const struct gpu *gpu, const struct studio *s, const float *pixels, bool correct)
{
	cl_int width = WIDTH, count = (cl_int)s->pixels;
	size_t size = s->pixels * sizeof(float);
	cl_mem photo = create_photo(gpu, size), blurred = create_blurred(gpu, size), sharpened = create_sharpened(gpu, size);
	CHECK(clEnqueueWriteBuffer(gpu->queue, photo, CL_TRUE, 0, size, pixels, 0, NULL, NULL));
	if (correct) {
		gpu_arguments(s->correct, sizeof photo, &photo, sizeof s->lens, &s->lens, (size_t)0);
		gpu_run(gpu, s->correct, s->pixels);
	}
	gpu_arguments(s->blur, sizeof photo, &photo, sizeof blurred, &blurred, sizeof width, &width, sizeof count, &count, (size_t)0);
	gpu_run(gpu, s->blur, s->pixels);
	gpu_arguments(s->sharpen, sizeof photo, &photo, sizeof blurred, &blurred, sizeof sharpened, &sharpened, (size_t)0);
	gpu_run(gpu, s->sharpen, s->pixels);
	CHECK(clReleaseMemObject(photo));
	CHECK(clReleaseMemObject(blurred));
	return sharpened;
}

/* Returns how bright a photograph is, and extends a checksum by its parts. */
static cl_uint brightness(const struct gpu *gpu, const struct studio *s, cl_mem photo, uint64_t *hash)
{
	cl_uint part = (cl_uint)(s->pixels / BINS), bins[BINS], sum = 0;
	cl_mem counts = create_bins(gpu, sizeof bins);
	gpu_arguments(s->brightness, sizeof photo, &photo, sizeof counts, &counts, sizeof part, &part, (size_t)0);
	gpu_run(gpu, s->brightness, BINS);
	CHECK(clEnqueueReadBuffer(gpu->queue, counts, CL_TRUE, 0, sizeof bins, bins, 0, NULL, NULL));
	CHECK(clReleaseMemObject(counts));
	*hash = checksum(*hash, bins, sizeof bins);
	for (size_t i = 0; i < BINS; i++)
		sum += bins[i];
	return sum / BINS;
}

/* Keeps a preview for later, which never comes. */
static void keep_preview(const struct gpu *gpu, const struct studio *s, cl_mem photo)
{
	cl_int by = PREVIEW;
	cl_mem preview = create_preview(gpu, s->pixels / PREVIEW * sizeof(float));
	gpu_arguments(s->shrink, sizeof photo, &photo, sizeof preview, &preview, sizeof by, &by, (size_t)0);
	gpu_run(gpu, s->shrink, s->pixels / PREVIEW);
}

/* Tries to put a panorama together from all photographs at once, and does without where the device refuses. */
static void create_panorama(const struct gpu *gpu)
{
	cl_ulong most = 0;
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL));
	cl_mem panorama = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, 2 * most, NULL, NULL);
	if (panorama != NULL)
		CHECK(clReleaseMemObject(panorama));
}

static void wait_for_camera(uint64_t due)
{
	for (uint64_t now; (now = now_ns()) < due;)
		nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = (long)(due - now < 100000000 ? due - now : 100000000)}, NULL);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[PHOTOGRAPHS] [SIZE]", 2);
	size_t photographs = arguments_count(&arguments, 0, 540);
	size_t pixels = arguments_size(&arguments, 1, 4u << 20) / sizeof(float);

	struct gpu gpu = gpu_open(0);
	struct studio studio = open_studio(&gpu, pixels);
	float *frame = allocate(pixels * sizeof *frame);
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < photographs; i++) {
		for (size_t x = 0; x < pixels; x++)
			frame[x] = (float)((x * 7 + i * 31) % 256) * (i % 4 == 3 ? 1.0f : 0.5f);
		cl_mem photo = develop(&gpu, &studio, frame, i < CORRECTED);
		if (brightness(&gpu, &studio, photo, &hash) > BRIGHT)
			keep_preview(&gpu, &studio, photo);
		CHECK(clReleaseMemObject(photo));
		if (i == photographs / 3)
			create_panorama(&gpu);
		wait_for_camera(start + (i + 1) * 1000000000 / PER_SECOND);
	}
	report_time(&arguments, start);

	CHECK(clReleaseMemObject(studio.lens));
	cl_kernel kernels[] = {studio.correct, studio.blur, studio.sharpen, studio.shrink, studio.brightness};
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		CHECK(clReleaseKernel(kernels[i]));
	CHECK(clReleaseProgram(studio.program));
	gpu_close(&gpu);
	free(frame);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
