/* groups.c: see groups.h. */
#define _GNU_SOURCE
#include "groups.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOUNTED "/sys/fs/cgroup"
#define PATH_MOST 1024

/* Names of a group's files: its limit, what counts against it, and keys of its statistics whose bytes are freed when needed. */
struct files {
	const char *most, *now, *cached, *values[2];
};

struct resource {
	const char *controller; /* in version 1 */
	struct files first, second; /* of version 1 and 2 */
};

static const struct resource threads = {
	"pids", {.most = "pids.max", .now = "pids.current"}, {.most = "pids.max", .now = "pids.current"},
};

static const struct resource memory = {
	"memory",
	{"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", {"\ntotal_active_file ", "\ntotal_inactive_file "}},
	{"memory.max", "memory.current", "memory.stat", {"\nactive_file ", "\ninactive_file "}},
};

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool read_file(const char *group, const char *name, char *text, size_t size)
{
	char path[PATH_MOST + 32];
	return snprintf(path, sizeof path, "%s/%s", group, name) < (int)sizeof path && read_text(path, text, size);
}

/* Reads a number, at most UINT64_MAX. New versions of glibc have strtoull under a name that older ones lack. */
static uint64_t read_number(const char *text)
{
	uint64_t value = 0;
	for (text += strspn(text, " \t"); *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *text - '0', &value))
			return UINT64_MAX;
	return value;
}

static uint64_t room_in_group(const char *group, const struct files *files)
{
	char text[8192];
	if (!read_file(group, files->most, text, sizeof text) || text[0] == 'm') /* "max" */
		return GMT_NO_LIMIT;
	uint64_t most = read_number(text), cached = 0;
	if (most > INT64_MAX / 2 || !read_file(group, files->now, text, sizeof text)) /* no limit in version 1 */
		return GMT_NO_LIMIT;
	uint64_t now = read_number(text);
	if (files->cached && read_file(group, files->cached, text, sizeof text))
		for (int i = 0; i < 2; i++) {
			const char *value = strstr(text, files->values[i]);
			cached += value ? read_number(value + strlen(files->values[i])) : 0;
		}
	now -= cached < now ? cached : now;
	return most > now ? most - now : 0;
}

/*
 * The least that the group at path and those above it leave. In a container, path may be one of outside: then only the mounted
 * folder exists.
 */
static uint64_t least_room_upwards(const char *mount, const char *path, const struct files *files)
{
	char group[PATH_MOST];
	size_t top = strlen(mount);
	if (path[1] == 0 || snprintf(group, sizeof group, "%s%s", mount, path) >= (int)sizeof group)
		(void)snprintf(group, sizeof group, "%s", mount);
	uint64_t least = GMT_NO_LIMIT;
	for (;;) {
		uint64_t left = room_in_group(group, files);
		least = left < least ? left : least;
		if (strlen(group) <= top)
			return least;
		*strrchr(group, '/') = 0;
	}
}

static bool lists_controller(const char *controllers, const char *end, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = controllers; at < end; at += strcspn(at, ",:") + 1)
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == ':'))
			return true;
	return false;
}

/* The least that this process's groups leave. Each line of /proc/self/cgroup has one, as 0::PATH or NUMBER:CONTROLLERS:PATH. */
static uint64_t least_room(const struct resource *resource)
{
	char text[4096], mount[64], *next;
	uint64_t least = GMT_NO_LIMIT;
	if (!read_text("/proc/self/cgroup", text, sizeof text))
		return least;
	(void)snprintf(mount, sizeof mount, MOUNTED "/%s", resource->controller);
	for (char *line = text; *line; line = next) {
		size_t length = strcspn(line, "\n");
		next = line + length + (line[length] != 0);
		line[length] = 0;
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		uint64_t left = GMT_NO_LIMIT;
		if (path == controllers + 1)
			left = least_room_upwards(MOUNTED, path + 1, &resource->second);
		else if (lists_controller(controllers + 1, path, resource->controller))
			left = least_room_upwards(mount, path + 1, &resource->first);
		least = left < least ? left : least;
	}
	return least;
}

uint64_t gmt_groups_leave_threads(void)
{
	return least_room(&threads);
}

uint64_t gmt_groups_leave_memory(void)
{
	return least_room(&memory);
}

uint64_t gmt_groups_machine_leaves(void)
{
	char text[512];
	const char *available = read_text("/proc/meminfo", text, sizeof text) ? strstr(text, "MemAvailable:") : NULL;
	return available ? read_number(available + strlen("MemAvailable:")) << 10 : GMT_NO_LIMIT;
}
