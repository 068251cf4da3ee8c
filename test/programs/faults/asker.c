/*
 * asker: asks for devices of a type that there may be none of, then for all of them, and ends without a context.
 *
 *	asker [context]
 *
 * context makes one after all.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_uint count = 0;
	char name[256];
	CHECK(clGetPlatformIDs(1, &platform, NULL));
	for (int i = 0; i < 2; i++)
		printf("custom: %d\n", clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 0, NULL, &count));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
	puts(name);
	if (argc == 2 && strcmp(argv[1], "context") == 0) {
		cl_int status;
		cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
		CHECK(status);
		CHECK(clReleaseContext(context));
	}
	return 4;
}
