/*
 * train: a small network learning by gradient descent, one batch a step, the way a training library on OpenCL does it:
 * weights stay, the activations and gradients of a step are temporaries whose sizes are no powers of two, and the
 * loss of every step is read back.
 *
 *	train [-t] [STEPS] [SIZE]     SIZE: bytes of the largest activation; the batch follows from it
 */
#include "common.h"

#include <stdlib.h>

enum { INPUTS = 97, HIDDEN = 331, MIDDLE = 211, OUTPUTS = 10, LAYERS = 3 };

static const int widths[LAYERS + 1] = {INPUTS, HIDDEN, MIDDLE, OUTPUTS};

static const char *const source =
	"/* out[row][o] = sum over i of in[row][i] * weights[i][o], squashed */\n"
	"__kernel void forward(__global const float *in, __global const float *weights, __global float *out,\n"
	"		int inputs, int outputs) {\n"
	"	int o = get_global_id(0) % outputs, row = get_global_id(0) / outputs;\n"
	"	float sum = 0.0f;\n"
	"	for (int i = 0; i < inputs; i++) sum += in[row * inputs + i] * weights[i * outputs + o];\n"
	"	out[row * outputs + o] = sum / (1.0f + fabs(sum));\n"
	"}\n"
	"__kernel void error_of(__global const float *out, __global const float *wanted, __global float *error) {\n"
	"	int i = get_global_id(0);\n"
	"	error[i] = out[i] - wanted[i];\n"
	"}\n"
	"/* error of the layer before: error times weights, times the slope of the squashing */\n"
	"__kernel void backward(__global const float *error, __global const float *weights, __global const float *in,\n"
	"		__global float *before, int inputs, int outputs) {\n"
	"	int i = get_global_id(0) % inputs, row = get_global_id(0) / inputs;\n"
	"	float sum = 0.0f, slope = 1.0f - fabs(in[row * inputs + i]);\n"
	"	for (int o = 0; o < outputs; o++) sum += error[row * outputs + o] * weights[i * outputs + o];\n"
	"	before[row * inputs + i] = sum * slope * slope;\n"
	"}\n"
	"__kernel void gradient(__global const float *error, __global const float *in, __global float *slopes,\n"
	"		int inputs, int outputs, int batch) {\n"
	"	int o = get_global_id(0) % outputs, i = get_global_id(0) / outputs;\n"
	"	float sum = 0.0f;\n"
	"	for (int row = 0; row < batch; row++) sum += error[row * outputs + o] * in[row * inputs + i];\n"
	"	slopes[i * outputs + o] = sum / batch;\n"
	"}\n"
	"__kernel void learn(__global float *weights, __global const float *slopes, float rate) {\n"
	"	int i = get_global_id(0);\n"
	"	weights[i] -= rate * slopes[i];\n"
	"}\n"
	"__kernel void loss_of(__global const float *error, __global float *loss, int count) {\n"
	"	float sum = 0.0f;\n"
	"	for (int i = 0; i < count; i++) sum += error[i] * error[i];\n"
	"	loss[0] = sum / count;\n"
	"}\n";

struct network {
	const struct gpu *gpu;
	cl_program program;
	cl_kernel forward, error_of, backward, gradient, learn, loss_of;
	cl_mem weights[LAYERS];
	cl_mem inputs, wanted; /* the training data: one batch */
	int batch;
};

/* One call site: a function that creates one buffer of count floats. */
#define FLOATS(name)                                                                                                     \
	static __attribute__((noinline)) cl_mem name(const struct gpu *gpu, size_t floats)                             \
	{                                                                                                              \
		cl_int status;                                                                                         \
		cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, floats * sizeof(float), NULL, &status); \
		CHECK(status);                                                                                         \
		return buffer;                                                                                         \
	}

FLOATS(create_activation)
FLOATS(create_error)
FLOATS(create_error_before)
FLOATS(create_gradient)
FLOATS(create_loss)

/* A buffer that holds random numbers in -scale to scale from the start. */
static __attribute__((noinline)) cl_mem create_filled(const struct gpu *gpu, size_t floats, uint64_t seed, float scale)
{
	float *values = allocate(floats * sizeof *values);
	uint32_t *bits = allocate(floats * sizeof *bits);
	fill_random(bits, floats * sizeof *bits, seed);
	for (size_t i = 0; i < floats; i++)
		values[i] = scale * ((float)(bits[i] >> 8) / 8388608.0f - 1.0f);
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, floats * sizeof *values,
				       values, &status);
	CHECK(status);
	free(bits);
	free(values);
	return buffer;
}

static size_t layer_weights(int layer)
{
	return (size_t)widths[layer] * (size_t)widths[layer + 1];
}

static struct network network_create(const struct gpu *gpu, int batch)
{
	cl_program program = gpu_build(gpu, source);
	struct network network = {
		.gpu = gpu,
		.program = program,
		.forward = gpu_kernel(program, "forward"),
		.error_of = gpu_kernel(program, "error_of"),
		.backward = gpu_kernel(program, "backward"),
		.gradient = gpu_kernel(program, "gradient"),
		.learn = gpu_kernel(program, "learn"),
		.loss_of = gpu_kernel(program, "loss_of"),
		.inputs = create_filled(gpu, (size_t)batch * INPUTS, 1, 1.0f),
		.wanted = create_filled(gpu, (size_t)batch * OUTPUTS, 2, 0.5f),
		.batch = batch,
	};
	for (int layer = 0; layer < LAYERS; layer++)
		network.weights[layer] = create_filled(gpu, layer_weights(layer), 3 + (uint64_t)layer, 0.1f);
	return network;
}

static void network_release(struct network *network)
{
	cl_kernel kernels[] = {network->forward,  network->error_of, network->backward,
			       network->gradient, network->learn,    network->loss_of};
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		CHECK(clReleaseKernel(kernels[i]));
	for (int layer = 0; layer < LAYERS; layer++)
		CHECK(clReleaseMemObject(network->weights[layer]));
	CHECK(clReleaseMemObject(network->inputs));
	CHECK(clReleaseMemObject(network->wanted));
	CHECK(clReleaseProgram(network->program));
}

static cl_mem run_forward(const struct network *network, int layer, cl_mem in)
{
	size_t count = (size_t)network->batch * (size_t)widths[layer + 1];
	cl_mem out = create_activation(network->gpu, count);
	gpu_arguments(network->forward, sizeof in, &in, sizeof(cl_mem), &network->weights[layer], sizeof out, &out,
		      sizeof(int), &widths[layer], sizeof(int), &widths[layer + 1], (size_t)0);
	gpu_run(network->gpu, network->forward, count);
	return out;
}

static cl_mem run_error(const struct network *network, cl_mem out)
{
	size_t count = (size_t)network->batch * OUTPUTS;
	cl_mem error = create_error(network->gpu, count);
	gpu_arguments(network->error_of, sizeof out, &out, sizeof(cl_mem), &network->wanted, sizeof error, &error,
		      (size_t)0);
	gpu_run(network->gpu, network->error_of, count);
	return error;
}

/* The error of the layer's inputs, computed from that of its outputs. */
static cl_mem run_backward(const struct network *network, int layer, cl_mem error, cl_mem in)
{
	size_t count = (size_t)network->batch * (size_t)widths[layer];
	cl_mem before = create_error_before(network->gpu, count);
	gpu_arguments(network->backward, sizeof error, &error, sizeof(cl_mem), &network->weights[layer], sizeof in, &in,
		      sizeof before, &before, sizeof(int), &widths[layer], sizeof(int), &widths[layer + 1], (size_t)0);
	gpu_run(network->gpu, network->backward, count);
	return before;
}

static void run_learn(const struct network *network, int layer, cl_mem error, cl_mem in)
{
	const float rate = 0.05f;
	size_t count = layer_weights(layer);
	cl_mem slopes = create_gradient(network->gpu, count);
	gpu_arguments(network->gradient, sizeof error, &error, sizeof in, &in, sizeof slopes, &slopes, sizeof(int),
		      &widths[layer], sizeof(int), &widths[layer + 1], sizeof(int), &network->batch, (size_t)0);
	gpu_run(network->gpu, network->gradient, count);
	gpu_arguments(network->learn, sizeof(cl_mem), &network->weights[layer], sizeof slopes, &slopes, sizeof rate,
		      &rate, (size_t)0);
	gpu_run(network->gpu, network->learn, count);
	CHECK(clReleaseMemObject(slopes));
}

static float read_loss(const struct network *network, cl_mem error)
{
	int count = network->batch * OUTPUTS;
	float value;
	cl_mem loss = create_loss(network->gpu, 1);
	gpu_arguments(network->loss_of, sizeof error, &error, sizeof loss, &loss, sizeof count, &count, (size_t)0);
	gpu_run(network->gpu, network->loss_of, 1);
	CHECK(clEnqueueReadBuffer(network->gpu->queue, loss, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL));
	CHECK(clReleaseMemObject(loss));
	return value;
}

/* One step of training; returns the loss before it. */
static float train_step(const struct network *network)
{
	cl_mem values[LAYERS + 1] = {network->inputs};
	for (int layer = 0; layer < LAYERS; layer++)
		values[layer + 1] = run_forward(network, layer, values[layer]);
	cl_mem error = run_error(network, values[LAYERS]);
	float loss = read_loss(network, error);
	for (int layer = LAYERS - 1; layer >= 0; layer--) {
		cl_mem before = layer > 0 ? run_backward(network, layer, error, values[layer]) : NULL;
		run_learn(network, layer, error, values[layer]);
		CHECK(clReleaseMemObject(error));
		CHECK(clReleaseMemObject(values[layer + 1]));
		error = before;
	}
	return loss;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[STEPS] [SIZE]", 2);
	size_t steps = arguments_count(&arguments, 0, 100);
	size_t batch = arguments_size(&arguments, 1, 128u << 10) / (HIDDEN * sizeof(float));
	if (batch < 1 || batch > 1u << 20)
		fail("%s: SIZE must be between %zu bytes and 1 GiB", arguments.program, HIDDEN * sizeof(float));

	struct gpu gpu = gpu_open(0);
	struct network network = network_create(&gpu, (int)batch);
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < steps; i++) {
		float loss = train_step(&network);
		hash = checksum(hash, &loss, sizeof loss);
	}
	for (int layer = 0; layer < LAYERS; layer++)
		hash = checksum_buffer(hash, &gpu, network.weights[layer], layer_weights(layer) * sizeof(float));
	report_time(&arguments, start);

	network_release(&network);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
