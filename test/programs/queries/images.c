/* images.c: images of each type, also of buffers that a pool may have handed out before; pipes. */
#include "queries.h"

#include <stdio.h>
#include <string.h>

static const struct query image_queries[] = {
	QUERY(CL_IMAGE_FORMAT, ANSWER_BYTES),      QUERY(CL_IMAGE_ELEMENT_SIZE, ANSWER_NUMBER),
	QUERY(CL_IMAGE_ROW_PITCH, ANSWER_NUMBER),  QUERY(CL_IMAGE_SLICE_PITCH, ANSWER_NUMBER),
	QUERY(CL_IMAGE_WIDTH, ANSWER_NUMBER),      QUERY(CL_IMAGE_HEIGHT, ANSWER_NUMBER),
	QUERY(CL_IMAGE_DEPTH, ANSWER_NUMBER),      QUERY(CL_IMAGE_ARRAY_SIZE, ANSWER_NUMBER),
	QUERY(CL_IMAGE_BUFFER, ANSWER_HANDLES),    QUERY(CL_IMAGE_NUM_MIP_LEVELS, ANSWER_NUMBER),
	QUERY(CL_IMAGE_NUM_SAMPLES, ANSWER_NUMBER),
};

static const struct query pipe_queries[] = {
	QUERY(CL_PIPE_PACKET_SIZE, ANSWER_NUMBER),
	QUERY(CL_PIPE_MAX_PACKETS, ANSWER_NUMBER),
	QUERY(CL_PIPE_PROPERTIES, ANSWER_HEX),
};

GETTER(get_image, clGetImageInfo(AS(cl_mem, object), key, room, value, needed))
GETTER(get_pipe, clGetPipeInfo(AS(cl_mem, object), key, room, value, needed))

static const cl_image_format rgba = {CL_RGBA, CL_UNSIGNED_INT8};

static const struct shape {
	const char *name;
	cl_image_desc description;
} shapes[] = {
	{"1D", {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = 64}},
	{"1D array", {.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY, .image_width = 64, .image_array_size = 3}},
	{"2D", {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 16}},
	{"2D array", {.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY, .image_width = 64, .image_height = 16, .image_array_size = 3}},
	{"3D", {.image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 64, .image_height = 16, .image_depth = 2}},
};

static void ask_image(const char *label, cl_mem image)
{
	char text[128];
	ask_memory_object(label, image);
	snprintf(text, sizeof text, "%s, as an image", label);
	ASK(text, get_image, image, NULL, image_queries);
}

static void ask_shape(const struct gpu *gpu, const struct shape *shape)
{
	cl_int code;
	char label[64];
	cl_mem image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &rgba, &shape->description, NULL, &code);
	snprintf(label, sizeof label, "image %s", shape->name);
	printf("%s: %d %s\n", label, code, error_name(code));
	if (image == NULL)
		return;
	ask_image(label, image);
	CHECK(clReleaseMemObject(image));
}

/* Images of more or fewer bytes than the buffer's size. */
static void ask_image_of_buffer(const struct gpu *gpu, size_t size, size_t bytes, cl_mem_object_type type)
{
	cl_int code;
	char label[96];
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	name_add(buffer, "buffer of the image");
	cl_image_desc description = {.image_type = type, .image_width = bytes / 4, .mem_object = buffer};
	if (type == CL_MEM_OBJECT_IMAGE2D) {
		description.image_width = 8;
		description.image_height = bytes / 32;
		description.image_row_pitch = 32;
	}
	cl_mem image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &rgba, &description, NULL, &code);
	snprintf(label, sizeof label, "%s image of %zu bytes of a buffer of %zu", type == CL_MEM_OBJECT_IMAGE2D ? "2D" : "1D", bytes, size);
	printf("%s: %d %s\n", label, code, error_name(code));
	const bool whole = image != NULL && bytes <= size; /* one that reaches further is wrong enough */
	if (whole)
		ask_image(label, image);
	CHECK(clReleaseMemObject(buffer));
	snprintf(label, sizeof label, "image of a released buffer of %zu", size);
	if (whole)
		ask_image(label, image);
	if (image != NULL)
		CHECK(clReleaseMemObject(image));
	name_remove(buffer);
}

static void ask_pipes(const struct gpu *gpu)
{
	cl_int code;
	cl_mem pipe = clCreatePipe(gpu->context, CL_MEM_HOST_NO_ACCESS, 16, 64, NULL, &code);
	printf("pipe: %d %s\n", code, error_name(code));
	if (pipe == NULL)
		return;
	ask_memory_object("pipe", pipe);
	ASK("pipe", get_pipe, pipe, NULL, pipe_queries);
	CHECK(clReleaseMemObject(pipe));
}

void ask_images(const struct gpu *gpu)
{
	for (int round = 0; round < 4; round++) /* a pool has one of them from the third on */
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
			ask_shape(gpu, &shapes[i]);
	/* Just what there is, and a little more; each size after a larger one was released. */
	const size_t sizes[] = {4096, 4000, 4092, 2052, 64, 65536, 65000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const size_t whole = sizes[i] / 32 * 32;
		ask_image_of_buffer(gpu, sizes[i], sizes[i] / 4 * 4, CL_MEM_OBJECT_IMAGE1D_BUFFER);
		ask_image_of_buffer(gpu, sizes[i], sizes[i] / 4 * 4 + 4, CL_MEM_OBJECT_IMAGE1D_BUFFER);
		ask_image_of_buffer(gpu, sizes[i], whole, CL_MEM_OBJECT_IMAGE2D);
		ask_image_of_buffer(gpu, sizes[i], whole + 32, CL_MEM_OBJECT_IMAGE2D);
	}
	print_references("after images", gpu);
	ask_pipes(gpu);
}
