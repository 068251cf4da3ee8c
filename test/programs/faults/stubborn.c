/*
 * stubborn: ignores SIGTERM, SIGINT, SIGHUP, SIGQUIT and SIGUSR1/2 and works on to its end, which comes when stdin ends
 * as well. That it is ready for them it says on stderr, and each when it comes, one line each.
 *
 *	stubborn [-t] [ITERATIONS] [SIZE]     ITERATIONS: of 10 ms
 */
#include "work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Says which signal was ignored; only write is allowed here. */
static void ignore(int number)
{
	char line[] = "stubborn: ignored signal NN\n";
	char *digits = strchr(line, 'N');
	digits[0] = (char)('0' + number / 10);
	digits[1] = (char)('0' + number % 10);
	if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
		return;
}

static void ignore_all(void)
{
	const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, NULL);
	fprintf(stderr, "stubborn: ready\n");
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	size_t iterations = arguments_count(&arguments, 0, 100);
	size_t size = arguments_size(&arguments, 1, 64u << 10);

	struct gpu gpu = gpu_open(0);
	uint64_t hash = work_once(&gpu, 0, size, CHECKSUM_START);
	/* Not before: at its first work a driver with LLVM sets LLVM's handlers, and that for SIGQUIT swallows it. */
	ignore_all();
	for (size_t i = 1; i < iterations; i++) {
		hash = work_once(&gpu, i, size, hash);
		struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
		while (nanosleep(&pause, &pause) != 0)
			continue;
	}
	while (getchar() != EOF)
		continue;
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
