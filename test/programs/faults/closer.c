/*
 * closer: closes every descriptor after its first OpenCL calls, as daemons do, then uses the numbers for sockets of its
 * own, and forks a child that has them, too. No library may read from them or close them.
 *
 *	closer [MESSAGES] [SIZE]
 */
#define _GNU_SOURCE
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 3, LAST = 301, PAIRS = (LAST - FIRST) / 2 };

static void open_sockets(int pair[PAIRS][2])
{
	for (int i = 0; i < PAIRS; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair[i]) != 0)
			fail("cannot make sockets: %s", strerror(errno));
}

/* Sends a message to both ends of each pair. */
static void send_all(int pair[PAIRS][2])
{
	for (int i = 0; i < PAIRS; i++)
		for (int end = 0; end < 2; end++)
			if (send(pair[i][end], "message", 8, MSG_NOSIGNAL) != 8)
				fail("cannot send: %s", strerror(errno));
}

static size_t receive_all(int pair[PAIRS][2])
{
	char message[8];
	size_t received = 0;
	for (int i = 0; i < PAIRS; i++)
		for (int end = 0; end < 2; end++)
			while (recv(pair[i][end], message, sizeof message, 0) > 0)
				received++;
	return received;
}

/* How many of the sockets a child has. */
static int inherited(int pair[PAIRS][2])
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		int open = 0;
		for (int i = 0; i < PAIRS; i++)
			open += (fcntl(pair[i][0], F_GETFD) >= 0) + (fcntl(pair[i][1], F_GETFD) >= 0);
		_exit(open == 2 * PAIRS ? 0 : 1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("cannot fork: %s", strerror(errno));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 2 * PAIRS : -1;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[MESSAGES] [SIZE]", 2);
	size_t messages = arguments_count(&arguments, 0, 100);
	size_t size = arguments_size(&arguments, 1, 64u << 10);
	static int pair[PAIRS][2];

	struct gpu gpu = gpu_open(0);
	uint64_t hash = work(&gpu, 1, size);
	for (int i = FIRST; i < 1024; i++)
		close(i);
	open_sockets(pair);
	for (size_t i = 0; i < messages; i++) {
		send_all(pair);
		hash = work_once(&gpu, i, size, hash);
	}
	size_t received = receive_all(pair);
	int child = inherited(pair);
	gpu_close(&gpu);
	printf("%zu of %zu messages, %d descriptors in the child\n", received, messages * PAIRS * 2, child);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
