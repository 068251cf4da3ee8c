// Solves a system with ViennaCL by conjugate gradients, again and again.
#define VIENNACL_WITH_OPENCL 1
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/norm_2.hpp>
#include <viennacl/vector.hpp>

int main(int, char **arguments)
{
	int rounds = std::atoi(arguments[1]);
	unsigned size = static_cast<unsigned>(std::atoi(arguments[2]));
	std::vector<std::map<unsigned, float>> rows(size);
	for (unsigned i = 0; i < size; i++) {
		rows[i][i] = 4;
		if (i > 0)
			rows[i][i - 1] = rows[i - 1][i] = -1;
	}
	viennacl::compressed_matrix<float> matrix;
	viennacl::copy(rows, matrix);
	float sum = 0;
	for (int round = 0; round < rounds; round++) {
		viennacl::vector<float> right = viennacl::scalar_vector<float>(size, 1.0f + static_cast<float>(round));
		viennacl::vector<float> found = viennacl::linalg::solve(matrix, right, viennacl::linalg::cg_tag(1e-5, 20));
		viennacl::vector<float> rest = viennacl::linalg::prod(matrix, found) - right;
		sum += viennacl::linalg::norm_2(rest) < 1 ? 1.0f : 0.0f;
	}
	std::printf("%g of %d solved\n", static_cast<double>(sum), rounds);
}
