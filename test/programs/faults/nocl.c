/*
 * nocl: uses no OpenCL at all and is not linked with it.
 */
#include <stdio.h>

int main(void)
{
	return puts("nocl: checksum 0000000000000000") == EOF;
}
