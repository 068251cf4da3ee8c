/*
 * pipeline: edge detection on a stream of frames, after Canny. Every frame goes through ten buffers of five sizes,
 * each created in a function of its own, released as soon as its last use is enqueued; one result is read per frame.
 *
 *	pipeline [-t] [FRAMES] [SIZE]     SIZE: bytes of one plane of floats
 */
#include "common.h"

#include <stdlib.h>

enum { WIDTH = 1024, BINS = 256 };

static const char *const source =
	"__kernel void to_grey(__global const uchar *rgb, __global float *grey) {\n"
	"	uint i = get_global_id(0);\n"
	"	grey[i] = 0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2];\n"
	"}\n"
	"float at(__global const float *plane, int i, int count) { return plane[clamp(i, 0, count - 1)]; }\n"
	"__kernel void blur(__global const float *in, __global float *out, int width, int count) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = 0.25f * in[i] + 0.125f * (at(in, i - 1, count) + at(in, i + 1, count)\n"
	"		+ at(in, i - width, count) + at(in, i + width, count)) + 0.0625f * (at(in, i - width - 1, count)\n"
	"		+ at(in, i - width + 1, count) + at(in, i + width - 1, count) + at(in, i + width + 1, count));\n"
	"}\n"
	"__kernel void slope(__global const float *in, __global float *out, int step, int count) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = at(in, i + step, count) - at(in, i - step, count);\n"
	"}\n"
	"__kernel void length_of(__global const float *dx, __global const float *dy, __global float *out) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = fabs(dx[i]) + fabs(dy[i]);\n"
	"}\n"
	"__kernel void sector(__global const float *dx, __global const float *dy, __global uchar *out) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = fabs(dx[i]) > fabs(dy[i]) ? 1 : 0;\n"
	"}\n"
	"__kernel void thin(__global const float *in, __global const uchar *way, __global float *out, int width,\n"
	"		int count) {\n"
	"	int i = get_global_id(0), step = way[i] ? 1 : width;\n"
	"	out[i] = in[i] >= at(in, i - step, count) && in[i] >= at(in, i + step, count) ? in[i] : 0.0f;\n"
	"}\n"
	"__kernel void threshold(__global const float *in, __global uchar *out) {\n"
	"	int i = get_global_id(0);\n"
	"	out[i] = in[i] > 96.0f ? 255 : in[i] > 48.0f ? 128 : 0;\n"
	"}\n"
	"__kernel void count_edges(__global const uchar *in, __global uint *out, uint part) {\n"
	"	uint bin = get_global_id(0), sum = 0;\n"
	"	for (uint i = bin * part; i < (bin + 1) * part; i++) sum += in[i];\n"
	"	out[bin] = sum;\n"
	"}\n";

/* Each stage of the pipeline has its kernel; blur's two slopes share one. */
struct stages {
	cl_program program;
	cl_kernel to_grey, blur, slope, length_of, sector, thin, threshold, count_edges;
};

SITE(create_frame)
SITE(create_grey)
SITE(create_blurred)
SITE(create_horizontal)
SITE(create_vertical)
SITE(create_magnitude)
SITE(create_direction)
SITE(create_thinned)
SITE(create_edges)
SITE(create_counts)

static struct stages build_stages(const struct gpu *gpu)
{
	cl_program program = gpu_build(gpu, source);
	return (struct stages){
		.program = program,
		.to_grey = gpu_kernel(program, "to_grey"),
		.blur = gpu_kernel(program, "blur"),
		.slope = gpu_kernel(program, "slope"),
		.length_of = gpu_kernel(program, "length_of"),
		.sector = gpu_kernel(program, "sector"),
		.thin = gpu_kernel(program, "thin"),
		.threshold = gpu_kernel(program, "threshold"),
		.count_edges = gpu_kernel(program, "count_edges"),
	};
}

static void release_stages(struct stages *stages)
{
	cl_kernel kernels[] = {stages->to_grey, stages->blur, stages->slope,     stages->length_of,
			       stages->sector,  stages->thin, stages->threshold, stages->count_edges};
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		CHECK(clReleaseKernel(kernels[i]));
	CHECK(clReleaseProgram(stages->program));
}

/* Uploads a frame and returns it as a blurred plane. */
static cl_mem smooth(const struct gpu *gpu, const struct stages *stages, const unsigned char *frame, size_t pixels)
{
	cl_int width = WIDTH, count = (cl_int)pixels;
	cl_mem rgb = create_frame(gpu, 3 * pixels);
	CHECK(clEnqueueWriteBuffer(gpu->queue, rgb, CL_FALSE, 0, 3 * pixels, frame, 0, NULL, NULL));
	cl_mem grey = create_grey(gpu, pixels * sizeof(float));
	gpu_arguments(stages->to_grey, sizeof rgb, &rgb, sizeof grey, &grey, (size_t)0);
	gpu_run(gpu, stages->to_grey, pixels);
	CHECK(clReleaseMemObject(rgb));
	cl_mem blurred = create_blurred(gpu, pixels * sizeof(float));
	gpu_arguments(stages->blur, sizeof grey, &grey, sizeof blurred, &blurred, sizeof width, &width, sizeof count,
		      &count, (size_t)0);
	gpu_run(gpu, stages->blur, pixels);
	CHECK(clReleaseMemObject(grey));
	return blurred;
}

/* Takes a blurred plane and returns its ridges: the strength of the slope where that is a local maximum. */
static cl_mem ridges(const struct gpu *gpu, const struct stages *stages, cl_mem blurred, size_t pixels)
{
	cl_int width = WIDTH, one = 1, count = (cl_int)pixels;
	size_t plane = pixels * sizeof(float);
	cl_mem dx = create_horizontal(gpu, plane), dy = create_vertical(gpu, plane);
	gpu_arguments(stages->slope, sizeof blurred, &blurred, sizeof dx, &dx, sizeof one, &one, sizeof count, &count,
		      (size_t)0);
	gpu_run(gpu, stages->slope, pixels);
	gpu_arguments(stages->slope, sizeof blurred, &blurred, sizeof dy, &dy, sizeof width, &width, sizeof count, &count,
		      (size_t)0);
	gpu_run(gpu, stages->slope, pixels);
	CHECK(clReleaseMemObject(blurred));
	cl_mem magnitude = create_magnitude(gpu, plane), direction = create_direction(gpu, pixels);
	gpu_arguments(stages->length_of, sizeof dx, &dx, sizeof dy, &dy, sizeof magnitude, &magnitude, (size_t)0);
	gpu_run(gpu, stages->length_of, pixels);
	gpu_arguments(stages->sector, sizeof dx, &dx, sizeof dy, &dy, sizeof direction, &direction, (size_t)0);
	gpu_run(gpu, stages->sector, pixels);
	CHECK(clReleaseMemObject(dx));
	CHECK(clReleaseMemObject(dy));
	cl_mem thinned = create_thinned(gpu, plane);
	gpu_arguments(stages->thin, sizeof magnitude, &magnitude, sizeof direction, &direction, sizeof thinned, &thinned,
		      sizeof width, &width, sizeof count, &count, (size_t)0);
	gpu_run(gpu, stages->thin, pixels);
	CHECK(clReleaseMemObject(magnitude));
	CHECK(clReleaseMemObject(direction));
	return thinned;
}

/* Takes the ridges, marks the edges, and returns the checksum extended by how many there are in each part. */
static uint64_t count(const struct gpu *gpu, const struct stages *stages, cl_mem thinned, size_t pixels, uint64_t hash)
{
	cl_uint part = (cl_uint)(pixels / BINS), counts[BINS];
	cl_mem edges = create_edges(gpu, pixels);
	gpu_arguments(stages->threshold, sizeof thinned, &thinned, sizeof edges, &edges, (size_t)0);
	gpu_run(gpu, stages->threshold, pixels);
	CHECK(clReleaseMemObject(thinned));
	cl_mem bins = create_counts(gpu, sizeof counts);
	gpu_arguments(stages->count_edges, sizeof edges, &edges, sizeof bins, &bins, sizeof part, &part, (size_t)0);
	gpu_run(gpu, stages->count_edges, BINS);
	CHECK(clReleaseMemObject(edges));
	CHECK(clEnqueueReadBuffer(gpu->queue, bins, CL_TRUE, 0, sizeof counts, counts, 0, NULL, NULL));
	CHECK(clReleaseMemObject(bins));
	return checksum(hash, counts, sizeof counts);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[FRAMES] [SIZE]", 2);
	size_t frames = arguments_count(&arguments, 0, 12);
	size_t pixels = arguments_size(&arguments, 1, 32u << 20) / sizeof(float);

	struct gpu gpu = gpu_open(0);
	struct stages stages = build_stages(&gpu);
	unsigned char *frame = allocate(3 * pixels + 8);
	fill_random(frame, 3 * pixels, 1);
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < frames; i++) {
		frame[i % pixels] = (unsigned char)i; /* no two frames are the same */
		cl_mem blurred = smooth(&gpu, &stages, frame, pixels);
		cl_mem thinned = ridges(&gpu, &stages, blurred, pixels);
		hash = count(&gpu, &stages, thinned, pixels, hash);
	}
	report_time(&arguments, start);

	release_stages(&stages);
	gpu_close(&gpu);
	free(frame);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
