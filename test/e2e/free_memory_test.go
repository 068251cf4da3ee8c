package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/cprogram"
)

// freeMemory asks for free memory, with and without a buffer of 1 MiB, and with room for one number only.
const freeMemory = `#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
static void ask(cl_device_id device, size_t room)
{
	size_t kib[2] = {0, 0}, needed = 0;
	cl_int status = clGetDeviceInfo(device, 0x4039, room, kib, &needed);
	printf("%d %zu %zu %zu\n", status, needed, kib[0], kib[1]);
}
int main(void)
{
	cl_platform_id platform;
	cl_device_id device;
	if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	ask(device, 2 * sizeof(size_t));
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 20, NULL, NULL);
	ask(device, 2 * sizeof(size_t));
	ask(device, sizeof(size_t));
	return clReleaseMemObject(buffer) || clReleaseContext(context);
}
`

// PoCL does not know the query for free memory: it stays so unless gpumemtop is asked to answer.
func TestAnswersFreeMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "free.c"), filepath.Join(dir, "free")
	if err := os.WriteFile(source, []byte(freeMemory), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cprogram.RunCompiler(source, "-o", program, "-lOpenCL"); err != nil {
		t.Fatal(err)
	}
	const unknown = "-30 0 0 0\n"
	if r := run(t, command{args: []string{gpumemtop(), "--headless", program}}); string(r.stdout) != strings.Repeat(unknown, 3) {
		t.Errorf("unasked: %s\n%s%s", r, r.stdout, r.stderr)
	}
	for _, policy := range []string{"none", "futhark"} {
		r := run(t, command{args: []string{
			gpumemtop(), "--headless", "--policy", policy, "--answer-free-memory", "--device-memory", "64MiB", program,
		}})
		want := fmt.Sprintf("0 16 %d %d\n0 16 %d %d\n%s", 64<<10, 64<<10, 63<<10, 63<<10, unknown)
		if string(r.stdout) != want || r.code != 0 {
			t.Errorf("under %s: %s\n%s%swant %s", policy, r, r.stdout, r.stderr, want)
		}
	}
}
