/* options.c: the command line of soak. */
#include "soak.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const usage =
	"usage: soak [--ops N] [--threads N] [--queues N] [--skip LIST] [--light] [--list] [--trace] SEED\n"
	"  --ops N      operations of each thread (default 150)\n"
	"  --threads N  threads (default 2)\n"
	"  --queues N   command queues of each thread (default 2)\n"
	"  --skip LIST  operations to leave out, such as 3,17,20-40\n"
	"  --light      no user events and short kernels: some drivers hang on those, or only simulate\n"
	"  --list       print the operations instead of running them\n"
	"  --trace      say on stderr what is done";

static _Noreturn void wrong(const char *what, const char *word)
{
	fail("soak: %s \"%s\"\n%s", what, word, usage);
}

/* The number at *word, which is moved behind it. */
static uint64_t number_at(const char **word, uint64_t most, const char *what, const char *whole)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(*word, &end, 10);
	if (**word < '0' || **word > '9' || errno != 0 || value > most)
		wrong(what, whole);
	*word = end;
	return value;
}

static unsigned count(const char *word, unsigned most, const char *what)
{
	const char *at = word;
	uint64_t value = number_at(&at, most, what, word);
	if (*at != '\0' || value == 0)
		wrong(what, word);
	return (unsigned)value;
}

static void skip_read(struct options *options, const char *word)
{
	const char *const what = "--skip wants numbers of operations such as 3,17,20-40, not";
	uint64_t most = (uint64_t)options->ops * options->threads - 1;
	for (const char *at = word;; at++) {
		uint64_t first = number_at(&at, most, what, word), last = first;
		if (*at == '-') {
			at++;
			last = number_at(&at, most, what, word);
		}
		if (last < first || (*at != ',' && *at != '\0'))
			wrong(what, word);
		for (uint64_t i = first; i <= last; i++)
			options->skip[i] = true;
		if (*at == '\0')
			return;
	}
}

/* The option's word, NULL when the option is another one. */
static const char *value_of(const char *option, int argc, char **argv, int *at)
{
	if (strcmp(argv[*at], option) != 0)
		return NULL;
	if (*at + 1 >= argc)
		wrong("nothing follows", option);
	return argv[++*at];
}

/* Reads the option at *at. */
static void option_read(struct options *options, int argc, char **argv, int *at, const char **skip)
{
	const char *value;
	if (strcmp(argv[*at], "--light") == 0)
		options->light = true;
	else if (strcmp(argv[*at], "--list") == 0)
		options->list = true;
	else if (strcmp(argv[*at], "--trace") == 0)
		options->trace = true;
	else if ((value = value_of("--ops", argc, argv, at)))
		options->ops = count(value, OPS_MAX, "--ops wants a count from 1 to 100000, not");
	else if ((value = value_of("--threads", argc, argv, at)))
		options->threads = count(value, THREADS_MAX, "--threads wants a count from 1 to 16, not");
	else if ((value = value_of("--queues", argc, argv, at)))
		options->queues = count(value, QUEUES_MAX, "--queues wants a count from 1 to 8, not");
	else if ((value = value_of("--skip", argc, argv, at)))
		*skip = value;
	else
		wrong("unknown option", argv[*at]);
}

struct options options_read(int argc, char **argv)
{
	struct options options = {.ops = 150, .threads = 2, .queues = 2};
	const char *skip = NULL, *seed = NULL;
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			option_read(&options, argc, argv, &i, &skip);
		else if (seed)
			wrong("one seed, please; and what is", argv[i]);
		else
			seed = argv[i];
	}
	if (!seed)
		fail("soak: which seed?\n%s", usage);
	const char *at = seed;
	options.seed = number_at(&at, UINT64_MAX, "the seed is a number, not", seed);
	if (*at != '\0')
		wrong("the seed is a number, not", seed);
	options.skip = calloc((size_t)options.ops * options.threads, sizeof *options.skip);
	if (!options.skip)
		fail("soak: out of memory");
	if (skip)
		skip_read(&options, skip);
	return options;
}
