/*
 * temporaries: programs of several shapes, each in a process of its own, that hold SIZE bytes in buffers at most. Each line
 * of output says how many creates of one failed, and how many buffers had lost what was written to their ends. With the
 * number of a shape, from 1, only that one, in this process.
 *
 *	temporaries [SIZE] [SHAPE]
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 4096, SITES = 4 };

/* Creates a buffer, or releases the one that an earlier step created. */
struct step {
	size_t size; /* 0: a release */
	size_t of;   /* what it releases, or the call site */
};

/* A program, in units of its own until it is scaled. */
struct script {
	struct step steps[STEPS];
	size_t count, now, need;
	size_t live[STEPS], lives; /* creates, in their order */
	uint32_t random;
};

/* A number below most, the same each time (xorshift). */
static size_t below(struct script *s, size_t most)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random % most;
}

static size_t create(struct script *s, size_t size, size_t site)
{
	if (s->count == STEPS)
		fail("temporaries: too many steps");
	s->steps[s->count] = (struct step){size, site};
	s->live[s->lives++] = s->count;
	s->now += size;
	s->need = s->now > s->need ? s->now : s->need;
	return s->count++;
}

/* Releases the live buffer at a place in their order. */
static void release_at(struct script *s, size_t at)
{
	size_t number = s->live[at];
	s->steps[s->count++] = (struct step){0, number};
	s->now -= s->steps[number].size;
	s->lives--;
	for (size_t i = at; i < s->lives; i++)
		s->live[i] = s->live[i + 1];
}

static void release_all_but(struct script *s, size_t kept)
{
	while (s->lives > kept)
		release_at(s, kept);
}

/* As array libraries make them, for each expression. */
static void temporaries(struct script *s)
{
	for (int i = 0; i < 400; i++) {
		size_t size = 1 + below(s, 3000);
		while (s->lives > 0 && s->now + size > 18000)
			release_at(s, 0);
		create(s, size, 0);
	}
}

static void growing(struct script *s)
{
	create(s, 50, 1);
	for (size_t size = 75; size < 8000; size += size / 2) {
		create(s, size, 1);
		release_at(s, 0);
	}
}

/* Weights, activations that become more with the batch, and gradients. */
static void training(struct script *s)
{
	size_t sizes[12];
	for (size_t i = 0; i < 12; i++)
		create(s, sizes[i] = 10 + below(s, 500), 0);
	for (size_t round = 0; round < 20; round++) {
		size_t batch = 1 + below(s, 3);
		for (size_t i = 0; i < 12; i++)
			create(s, sizes[i] / 2 * batch + 1, 1 + i % 3);
		for (size_t i = 0; i < 12; i++) {
			create(s, sizes[11 - i], 3);
			release_at(s, s->lives - 1);
			release_at(s, s->lives - 1);
		}
	}
}

static void staying(struct script *s)
{
	for (size_t i = 0; i < 300; i++)
		create(s, 1 + below(s, 100), i % SITES);
}

/* Small ones for long, then large ones beside those that are left. */
static void rising(struct script *s)
{
	for (int i = 0; i < 40; i++) {
		while (s->lives < 30)
			create(s, 1 + below(s, 20), 1);
		release_all_but(s, 5);
	}
	for (int i = 0; i < 9; i++)
		create(s, 2000 - below(s, 300), 2);
}

static void anything(struct script *s)
{
	for (int i = 0; i < 1500; i++) {
		while (s->now > 12000 || (s->lives > 0 && below(s, 3) == 0))
			release_at(s, below(s, s->lives));
		create(s, 1 + below(s, (size_t)1 << (1 + below(s, 11))), below(s, SITES));
	}
}

static const struct shape {
	const char *name;
	void (*write)(struct script *s);
} shapes[] = {
	{"temporaries", temporaries}, {"growing", growing}, {"training", training},
	{"staying", staying},         {"rising", rising},   {"anything", anything},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

#define CREATES(name, flags)                                                                                           \
	static __attribute__((noinline)) cl_mem name(const struct gpu *gpu, size_t size, cl_int *status)               \
	{                                                                                                              \
		return clCreateBuffer(gpu->context, (flags), size, NULL, status);                                      \
	}

CREATES(first, CL_MEM_READ_WRITE)
CREATES(second, CL_MEM_READ_WRITE)
CREATES(third, CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY)
CREATES(fourth, CL_MEM_READ_WRITE)

static cl_mem (*const sites[SITES])(const struct gpu *gpu, size_t size, cl_int *status) = {first, second, third, fourth};

/* Whether flags are as asked for, and the last bytes those that were written. */
static bool intact(const struct gpu *gpu, cl_mem buffer, size_t size, size_t site, uint32_t number)
{
	cl_mem_flags flags = 0, wanted = site == 2 ? CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY : CL_MEM_READ_WRITE;
	uint32_t last = 0;
	CHECK(clGetMemObjectInfo(buffer, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, size - sizeof last, sizeof last, &last, 0, NULL, NULL));
	return flags == wanted && last == number;
}

static void play(const struct script *s, const struct shape *shape, size_t size)
{
	static cl_mem buffers[STEPS];
	struct gpu gpu = gpu_open(0);
	size_t failures = 0, lost = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct step *step = &s->steps[i], *made = step->size ? step : &s->steps[step->of];
		size_t number = (size_t)(made - s->steps), bytes = size / s->need * made->size & ~(size_t)3;
		uint32_t pattern = (uint32_t)number;
		if (step->size) {
			cl_int status;
			buffers[i] = sites[step->of](&gpu, bytes, &status);
			failures += status != CL_SUCCESS;
			if (buffers[i])
				CHECK(clEnqueueFillBuffer(gpu.queue, buffers[i], &pattern, sizeof pattern, bytes - sizeof pattern,
							  sizeof pattern, 0, NULL, NULL));
		} else if (buffers[number]) {
			lost += !intact(&gpu, buffers[number], bytes, made->of, pattern);
			CHECK(clReleaseMemObject(buffers[number]));
		}
	}
	gpu_close(&gpu);
	printf("%s: %zu of %zu steps failed, %zu buffers lost\n", shape->name, failures, s->count, lost);
}

static void run(const struct shape *shape, size_t size)
{
	static struct script script = {.random = 2463534242u};
	shape->write(&script);
	release_all_but(&script, 0);
	play(&script, shape, size);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[SIZE] [SHAPE]", 2);
	size_t size = arguments_size(&arguments, 0, 18u << 20), only = arguments_count(&arguments, 1, 0);
	if (only) {
		run(&shapes[(only - 1) % SHAPES], size);
		return EXIT_SUCCESS;
	}
	int bad = 0;
	for (int i = 0; i < SHAPES; i++) {
		pid_t child = fork();
		if (child == 0) {
			run(&shapes[i], size);
			return EXIT_SUCCESS;
		}
		int status = 0;
		bad += child < 0 || waitpid(child, &status, 0) != child || status != 0;
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
