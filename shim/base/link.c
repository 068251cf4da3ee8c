/* link.c: see link.h. A descriptor is ours if it leads to the same inode as at first. */
#define _GNU_SOURCE
#include "link.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
	int socket;
	dev_t device;
	ino_t inode;
} session_link = {.socket = -1};

static bool ours(void)
{
	struct stat now;
	return session_link.socket >= 0 && fstat(session_link.socket, &now) == 0 && now.st_dev == session_link.device &&
	       now.st_ino == session_link.inode;
}

void gmt_link_open(int socket)
{
	struct stat first;
	if (fstat(socket, &first) != 0)
		return;
	session_link.device = first.st_dev;
	session_link.inode = first.st_ino;
	session_link.socket = socket;
}

void gmt_link_close(void)
{
	if (ours())
		close(session_link.socket);
	session_link.socket = -1;
}

bool gmt_link_lost(uint32_t nanoseconds)
{
	struct timespec most = {.tv_nsec = (long)nanoseconds};
	struct pollfd session = {.fd = ours() ? session_link.socket : -1};
	return syscall(SYS_ppoll, &session, 1, &most, NULL, 0) == 1 && session.revents & POLLHUP;
}
