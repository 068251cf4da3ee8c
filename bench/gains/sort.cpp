// Sorts numbers with Boost.Compute, which takes and gives back its temporary memory for each sort.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <boost/compute.hpp>

namespace compute = boost::compute;

int main(int, char **arguments)
{
	int rounds = std::atoi(arguments[1]);
	std::vector<unsigned> numbers(static_cast<size_t>(std::atoi(arguments[2])));
	compute::context context(compute::system::default_device());
	compute::command_queue queue(context, compute::system::default_device());
	unsigned sum = 0;
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < numbers.size(); i++)
			numbers[i] = static_cast<unsigned>(i) * 2654435761u;
		compute::vector<unsigned> there(numbers.begin(), numbers.end(), queue);
		compute::sort(there.begin(), there.end(), queue);
		compute::copy(there.begin(), there.end(), numbers.begin(), queue);
		sum += numbers[numbers.size() / 2];
	}
	std::printf("%u\n", sum);
}
