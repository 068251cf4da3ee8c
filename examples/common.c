#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void fail(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

void check_status(cl_int status, const char *what, const char *file, int line)
{
	if (status != CL_SUCCESS)
		fail("%s:%d: OpenCL error %d: %s", file, line, status, what);
}

static _Noreturn void fail_usage(const struct arguments *arguments, const char *what, const char *word)
{
	fail("%s: %s \"%s\"\nusage: %s [-t] %s", arguments->program, what, word, arguments->program, arguments->usage);
}

struct arguments arguments_read(int argc, char **argv, const char *usage, int limit)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	struct arguments arguments = {
		.program = slash ? slash + 1 : argc > 0 ? argv[0] : "example",
		.values = argv + 1,
		.count = argc > 0 ? argc - 1 : 0,
		.usage = usage,
	};
	if (arguments.count > 0 && strcmp(arguments.values[0], "-t") == 0) {
		arguments.timing = true;
		arguments.values++;
		arguments.count--;
	}
	if (arguments.count > 0 && arguments.values[0][0] == '-')
		fail_usage(&arguments, "unknown option", arguments.values[0]);
	if (arguments.count > limit)
		fail_usage(&arguments, "too many words, from", arguments.values[limit]);
	return arguments;
}

size_t arguments_count(const struct arguments *arguments, int index, size_t fallback)
{
	if (index >= arguments->count)
		return fallback;
	const char *word = arguments->values[index];
	char *end;
	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);
	if (word[0] < '0' || word[0] > '9' || *end != '\0' || errno != 0 || value == 0 || value > SIZE_MAX)
		fail_usage(arguments, "want a count of at least 1, not", word);
	return (size_t)value;
}

bool arguments_merged(const struct arguments *arguments, int index)
{
	if (index >= arguments->count)
		return false;
	if (strcmp(arguments->values[index], "merged") != 0)
		fail_usage(arguments, "want merged, not", arguments->values[index]);
	return true;
}

/* log2 of what a size suffix stands for, -1 when it is none. */
static int suffix_shift(const char *suffix)
{
	if (suffix[0] == '\0')
		return 0;
	const char *known = "KMG";
	const char *found = strchr(known, suffix[0]);
	return found && suffix[1] == '\0' ? 10 * (int)(found - known + 1) : -1;
}

size_t arguments_size(const struct arguments *arguments, int index, size_t fallback)
{
	if (index >= arguments->count)
		return fallback;
	const char *word = arguments->values[index];
	char *end;
	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);
	int shift = suffix_shift(end);
	if (word[0] < '0' || word[0] > '9' || shift < 0 || errno != 0 || value > (SIZE_MAX >> shift) || (value << shift) < 4)
		fail_usage(arguments, "want a size of at least 4 bytes, such as 4096, 64K, 16M or 1G, not", word);
	return (size_t)(value << shift) & ~(size_t)3;
}

uint64_t checksum(uint64_t hash, const void *data, size_t size)
{
	const uint64_t prime = 0x100000001b3ull;
	const unsigned char *bytes = data;
	for (; size >= 8; size -= 8, bytes += 8) {
		uint64_t word;
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * prime;
	}
	for (; size > 0; size--, bytes++)
		hash = (hash ^ *bytes) * prime;
	return hash;
}

void fill_random(void *data, size_t size, uint64_t seed)
{
	unsigned char *bytes = data;
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (size_t at = 0; at < size; at += 8) {
		state ^= state << 13; /* xorshift64 */
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(bytes + at, &state, size - at < 8 ? size - at : 8);
	}
}

uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

void report_time(const struct arguments *arguments, uint64_t start)
{
	if (arguments->timing)
		fprintf(stderr, "%s: %.6f s\n", arguments->program, (double)(now_ns() - start) / 1e9);
}

void print_checksum(const struct arguments *arguments, uint64_t hash)
{
	printf("%s: checksum %016llx\n", arguments->program, (unsigned long long)hash);
	if (fflush(stdout) != 0)
		fail("%s: cannot write the result: %s", arguments->program, strerror(errno));
}

void *allocate(size_t size)
{
	void *memory = malloc(size);
	if (memory == NULL)
		fail("out of memory: %zu bytes", size);
	return memory;
}
