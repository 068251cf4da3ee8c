/* link.c: see link.h. A descriptor is ours if it leads to the same inode as at first. */
#define _GNU_SOURCE
#include "link.h"

#include "../../internal/wire/event.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct {
	int socket;
	dev_t device;
	ino_t inode;
} session_link = {.socket = -1};

/* glibc has fstat as a function since 2.33. */
static bool stat_socket(int socket, struct stat *now)
{
	return syscall(SYS_fstat, socket, now) == 0;
}

static bool socket_is_ours(void)
{
	struct stat now;
	return session_link.socket >= 0 && stat_socket(session_link.socket, &now) && now.st_dev == session_link.device &&
	       now.st_ino == session_link.inode;
}

void gmt_link_open(int socket)
{
	struct stat first;
	if (!stat_socket(socket, &first))
		return;
	session_link.device = first.st_dev;
	session_link.inode = first.st_ino;
	session_link.socket = socket;
}

void gmt_link_close(void)
{
	if (socket_is_ours())
		close(session_link.socket);
	session_link.socket = -1;
}

bool gmt_link_lost(uint32_t nanoseconds)
{
	struct timespec most = {.tv_nsec = (long)nanoseconds};
	struct pollfd session = {.fd = socket_is_ours() ? session_link.socket : -1};
	return syscall(SYS_ppoll, &session, 1, &most, NULL, 0) == 1 && session.revents & POLLHUP;
}

/* Connects by the socket's path, or by its abstract name (unix(7)), which works whatever files this process still sees. */
void gmt_link_knock(const char *folder, const char *program)
{
	static const char file[] = "/" GMT_OUTSIDERS_NAME;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(folder);
	if (length + sizeof file > sizeof address.sun_path)
		return;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	for (size_t hidden = 0, sent = 0; hidden < 2 && !sent; hidden++) {
		memset(address.sun_path, 0, sizeof address.sun_path);
		memcpy(address.sun_path + hidden, folder, length);
		memcpy(address.sun_path + hidden + length, file, sizeof file - 1);
		socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + hidden + length + sizeof file - 1);
		sent = sendto(fd, program, strnlen(program, GMT_OUTSIDER_MAX - 1) + 1, MSG_NOSIGNAL, (struct sockaddr *)&address, size) > 0;
	}
	close(fd);
}
