/*
 * generated: creates buffers from code that it generates, with frame pointers and no tables, as node and Java do. With "named"
 * it names that code at its end, in /tmp/perf-PID.map, whose path it prints.
 *
 *	generated [ITERATIONS] [SIZE] [named]
 */
#define _GNU_SOURCE
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 64, PIECES = 3 };

static struct gpu opened;

SITE(create)

static void create_and_release(void *size)
{
	CHECK(clReleaseMemObject(create(&opened, *(size_t *)size)));
}

/* Calls its second argument with the third; the first piece is a binding, which gets another piece as its first. */
static const unsigned char call_second[] = {0x55, 0x48, 0x89, 0xe5,             /* push %rbp; mov %rsp, %rbp */
					    0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, /* mov %rsi, %rax; mov %rdx, %rdi */
					    0xff, 0xd0, 0x5d, 0xc3};            /* call *%rax; pop %rbp; ret */
static const unsigned char call_first[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

typedef void binding(void *unused, void (*function)(void *), void *argument);
typedef void caller(binding *binding, void (*function)(void *), void *argument);

static void *piece(unsigned char *page, int number, const unsigned char *code, size_t bytes)
{
	return memcpy(page + number * PIECE, code, bytes);
}

static void name_pieces(const unsigned char *page)
{
	static const char *const names[PIECES] = {"long Binding.create(long)", "JS:~first /app/solve.js:7:1", "void Solver.step(int)"};
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	unlink(path); /* of an earlier process with this number */
	FILE *map = fopen(path, "wx");
	if (!map)
		fail("%s cannot be made", path);
	for (int i = 0; i < PIECES; i++)
		fprintf(map, "%zx %x %s\n", (size_t)(page + i * PIECE), PIECE, names[i]);
	fclose(map);
	puts(path);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE] [named]", 3);
	size_t iterations = arguments_count(&arguments, 0, 20), size = arguments_size(&arguments, 1, 4096);
	opened = gpu_open(0);
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		fail("no memory for code");
	void *code[PIECES];
	code[0] = piece(page, 0, call_second, sizeof call_second);
	for (int i = 1; i < PIECES; i++)
		code[i] = piece(page, i, call_first, sizeof call_first);
	binding *bound;
	memcpy(&bound, &code[0], sizeof bound);
	for (size_t n = 0; n < iterations; n++)
		for (int i = 1; i < PIECES; i++) {
			caller *call;
			memcpy(&call, &code[i], sizeof call);
			call(bound, create_and_release, &size);
		}
	gpu_close(&opened);
	if (arguments.count > 2)
		name_pieces(page);
	return EXIT_SUCCESS;
}
