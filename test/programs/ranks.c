/*
 * ranks: an MPI program. Every rank computes its part of a table on a device of its own, with buffers that it creates and
 * releases in its loop; the parts are summed up across the ranks, and the first rank prints the sum.
 *
 *	mpirun -n 4 ranks [-t] [ITERATIONS] [SIZE]
 */
#define OMPI_SKIP_MPICXX 1
#include "common.h"

#include <mpi.h>
#include <stdlib.h>

static const char source[] =
	"__kernel void scatter(__global uint *out, uint rank, uint step)\n"
	"{\n"
	"	uint i = (uint)get_global_id(0);\n"
	"	out[i] = (i ^ rank * 0x9e3779b9u) * (2u * step + 1u);\n"
	"}\n"
	"__kernel void gather(__global const uint *in, __global uint *out)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	out[i] = in[i] ^ in[i] >> 15;\n"
	"}\n";

SITE(create_scattered)
SITE(create_gathered)

/* One step of one rank: two buffers, two kernels, a checksum of the result. */
static uint64_t compute(const struct gpu *gpu, cl_kernel kernels[2], cl_uint rank, cl_uint step, size_t size, uint64_t hash)
{
	cl_mem scattered = create_scattered(gpu, size);
	gpu_arguments(kernels[0], sizeof scattered, &scattered, sizeof rank, &rank, sizeof step, &step, (size_t)0);
	gpu_run(gpu, kernels[0], size / sizeof(cl_uint));
	cl_mem gathered = create_gathered(gpu, size);
	gpu_arguments(kernels[1], sizeof scattered, &scattered, sizeof gathered, &gathered, (size_t)0);
	gpu_run(gpu, kernels[1], size / sizeof(cl_uint));
	hash = checksum_buffer(hash, gpu, gathered, size);
	CHECK(clReleaseMemObject(scattered));
	CHECK(clReleaseMemObject(gathered));
	return hash;
}

int main(int argc, char **argv)
{
	if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
		fail("cannot start MPI");
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	size_t iterations = arguments_count(&arguments, 0, 50);
	size_t size = arguments_size(&arguments, 1, 1u << 20);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);

	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernels[] = {gpu_kernel(program, "scatter"), gpu_kernel(program, "gather")};
	uint64_t start = now_ns(), sum = 0;
	for (size_t step = 0; step < iterations; step++) {
		uint64_t hash = compute(&gpu, kernels, (cl_uint)rank, (cl_uint)step, size, CHECKSUM_START), all;
		MPI_Allreduce(&hash, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		sum = checksum(sum, &all, sizeof all);
	}
	report_time(&arguments, start);

	for (int i = 0; i < 2; i++)
		CHECK(clReleaseKernel(kernels[i]));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	if (rank == 0)
		print_checksum(&arguments, sum);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
