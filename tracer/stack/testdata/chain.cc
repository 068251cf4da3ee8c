// chain.cc: what C++ adds to chain.c.
#include "record.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

volatile int zero;

struct Shape {
	virtual ~Shape() = default;
	virtual int area(const std::function<int(int)> &ask) const = 0;
};

struct Square : Shape {
	int side = 3;
	std::vector<std::string> names = std::vector<std::string>(20, std::string(100, 'x'));
	~Square() override { capture("destructor"); }
	__attribute__((noinline)) int area(const std::function<int(int)> &ask) const override
	{
		volatile char room[5000];
		room[side] = 1;
		return ask(side) * side + room[side] + zero;
	}
};

// Realigned, with an array of variable size and a destructor.
__attribute__((noinline)) int aligned(int size)
{
	alignas(128) volatile char room[256];
	auto *more = static_cast<char *>(__builtin_alloca(static_cast<size_t>(size) * 7));
	std::unique_ptr<Shape> shape = std::make_unique<Square>();
	room[size] = more[0] = 1;
	int area = shape->area([&](int side) {
		capture("lambda");
		return side + room[size];
	});
	if (area > zero)
		throw std::runtime_error("unwound");
	return more[size];
}

__attribute__((noinline)) int caught(int size)
{
	try {
		return aligned(size);
	} catch (const std::exception &) {
		capture("catch");
	}
	return zero;
}

int back(int value) { return caught(value) + zero; }

} // namespace

int main()
{
	int value = through(back, 5, 2);
	std::thread([&] { value += back(7); }).join();
	std::vector<int> numbers{2, 1};
	std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
		capture("comparison");
		return a < b;
	});
	zero = value & 0;
	finish();
	return value + numbers[0];
}
