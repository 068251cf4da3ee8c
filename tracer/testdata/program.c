/*
 * program.c: executes commands from its input, one a line, and answers each with "done".
 *
 *	program [LOADER [COMMAND...]]
 *
 * It loads an OpenCL library at its start, or on command. It executes the commands of its arguments before its input.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_ext.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFERS_MAX 4096

static __typeof__(&clGetPlatformIDs) platforms;
static __typeof__(&clGetDeviceIDs) devices;
static __typeof__(&clCreateContext) create_context;
static __typeof__(&clCreateBuffer) create_buffer;
static __typeof__(&clReleaseMemObject) release_memory;
static __typeof__(&clGetExtensionFunctionAddressForPlatform) extension;
static clDeviceMemAllocINTEL_fn allocate;
static clMemFreeINTEL_fn free_memory;

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_mem buffers[BUFFERS_MAX];
static int count;
static void *memory;
static char *self;

static void check(int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "program: %s\n", what);
	_exit(99);
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	check(library != NULL, path);
	platforms = (__typeof__(platforms))dlsym(library, "clGetPlatformIDs");
	devices = (__typeof__(devices))dlsym(library, "clGetDeviceIDs");
	create_context = (__typeof__(create_context))dlsym(library, "clCreateContext");
	create_buffer = (__typeof__(create_buffer))dlsym(library, "clCreateBuffer");
	release_memory = (__typeof__(release_memory))dlsym(library, "clReleaseMemObject");
	extension = (__typeof__(extension))dlsym(library, "clGetExtensionFunctionAddressForPlatform");
}

static void begin(void)
{
	check(platforms(1, &platform, NULL) == CL_SUCCESS, "no platform");
	check(devices(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS, "no device");
	context = create_context(NULL, 1, &device, NULL, NULL, NULL);
	check(context != NULL, "no context");
}

static void create(int n, size_t size)
{
	if (!context)
		begin();
	while (n--) {
		check(count < BUFFERS_MAX, "too many buffers");
		buffers[count++] = create_buffer(context, CL_MEM_READ_WRITE, size, NULL, NULL);
	}
}

static void release(void)
{
	while (count)
		release_memory(buffers[--count]);
}

static void fetch(void)
{
	if (!context)
		begin();
	allocate = (clDeviceMemAllocINTEL_fn)extension(platform, "clDeviceMemAllocINTEL");
	free_memory = (clMemFreeINTEL_fn)extension(platform, "clMemFreeINTEL");
	check(allocate && free_memory, "no extension");
}

static void child(int status)
{
	pid_t pid = fork();
	check(pid >= 0, "no child");
	if (pid == 0) {
		create(1, 333);
		_exit(status);
	}
	check(waitpid(pid, NULL, 0) == pid, "the child is lost");
	printf("%d\n", pid);
}

/* Nested children: all but the last only wait. */
static void generations(int n)
{
	pid_t pid = fork();
	check(pid >= 0, "no child");
	if (pid == 0) {
		if (n > 1) {
			generations(n - 1);
		} else {
			create(1, 444);
			printf("%d %d\n", getpid(), getppid());
			fflush(stdout);
		}
		_exit(0);
	}
	check(waitpid(pid, NULL, 0) == pid, "the child is lost");
}

static void idle_children(int n)
{
	while (n--) {
		pid_t pid = fork();
		check(pid >= 0, "no child");
		if (pid == 0)
			_exit(0);
		check(waitpid(pid, NULL, 0) == pid, "the child is lost");
	}
}

/* A child that creates buffers and executes another program, which creates one, too. */
static void executing_child(const char *path, int n)
{
	pid_t pid = fork();
	check(pid >= 0, "no child");
	if (pid == 0) {
		if (n)
			create(n, 555);
		check(dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO) >= 0, "no output"); /* it would answer, too */
		execl(path, path, "libOpenCL.so.1", "create 1 777", "exit 0", (char *)NULL);
		check(0, "exec");
	}
	check(waitpid(pid, NULL, 0) == pid, "the child is lost");
	printf("%d\n", pid);
}

static void *replace(void *loader)
{
	execl(self, self, loader, "create 1 777", (char *)NULL);
	check(0, "exec");
	return NULL;
}

static void replace_in_thread(char *loader)
{
	pthread_t thread;
	check(pthread_create(&thread, NULL, replace, loader) == 0, "no thread");
	for (;;)
		pause();
}

static void act(char *line)
{
	char word[16] = "", text[4096] = "";
	int a = 0, n = 0;
	size_t b = 0;
	line[strcspn(line, "\n")] = 0;
	sscanf(line, "%15s %4095s %d", word, text, &n);
	sscanf(line, "%15s %d %zu", word, &a, &b);
	if (strcmp(word, "load") == 0)
		load(text);
	else if (strcmp(word, "create") == 0)
		create(a, b);
	else if (strcmp(word, "release") == 0)
		release();
	else if (strcmp(word, "fetch") == 0)
		fetch();
	else if (strcmp(word, "allocate") == 0)
		memory = allocate(context, device, NULL, (size_t)a, 0, NULL);
	else if (strcmp(word, "free") == 0)
		free_memory(context, memory);
	else if (strcmp(word, "fork") == 0)
		child(a);
	else if (strcmp(word, "generations") == 0)
		generations(a);
	else if (strcmp(word, "idle") == 0)
		idle_children(a);
	else if (strcmp(word, "spawn") == 0)
		executing_child(text, n);
	else if (strcmp(word, "exec") == 0)
		replace(text);
	else if (strcmp(word, "threadexec") == 0)
		replace_in_thread(text);
	else if (strcmp(word, "kill") == 0)
		raise(a);
	else if (strcmp(word, "exit") == 0)
		_exit(a);
	else
		check(0, line);
	puts("done");
	fflush(stdout);
}

int main(int arguments, char **argument)
{
	char line[5000];
	self = argument[0];
	if (arguments > 1)
		load(argument[1]);
	puts("done");
	for (int i = 2; i < arguments; i++)
		act(argument[i]);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin))
		act(line);
	return 0;
}
