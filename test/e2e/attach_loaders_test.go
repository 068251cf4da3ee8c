package e2e

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Programs with a loader of their own, another root, or one that is deleted under them are seen like any other.
func TestAttachedToOtherLoaders(t *testing.T) {
	t.Parallel()
	private := filepath.Dir(copyOfLoader(t))
	for _, test := range []struct {
		name, script string
	}{
		{"private copy", `LD_LIBRARY_PATH="$2" exec "$0" "$1"`},
		{"another mount namespace", `mount --bind "$2/libOpenCL.so.1" "$3" && exec "$0" "$1"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, out := io.Pipe()
			reader := called(t, fault("reader"), "ownreader")
			p := start(t, command{stdin: in, args: []string{
				"unshare", "--mount", "sh", "-c", test.script, reader, "-t", private, systemLoader(t),
			}})
			pid := p.cmd.Process.Pid // all of them execute the next
			awaitReading(t, pid)
			w := attach(t, "-p", itoa(pid))
			checkReader(t, p, w, out)
		})
	}
}

// A loader that was deleted, as by an upgrade, is still the one that the program calls.
func TestAttachedToADeletedLoader(t *testing.T) {
	loader := copyOfLoader(t)
	in, out := io.Pipe()
	p := start(t, command{args: []string{fault("reader")}, stdin: in, env: []string{"LD_LIBRARY_PATH=" + filepath.Dir(loader)}})
	awaitReading(t, p.cmd.Process.Pid)
	if err := os.Remove(loader); err != nil {
		t.Fatal(err)
	}
	w := attach(t, "-p", itoa(p.cmd.Process.Pid))
	checkReader(t, p, w, out)
}

// checkReader sends a megabyte through a reader, which makes sixteen buffers for it, and demands all of them.
func checkReader(t *testing.T, p *process, w *watcher, out io.WriteCloser) {
	t.Helper()
	if _, err := out.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ends(t, p)
	w.end()
	f := figuresIn(t, w.file, false)
	if f.Creates < 16 || f.Requested != f.Creates<<16 || len(f.Findings) != 0 {
		t.Errorf("%d creates of %d bytes, findings %+v; want at least 16 of 64 KiB each", f.Creates, f.Requested, f.Findings)
	}
}

func copyOfLoader(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(systemLoader(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A loader may be one that logs calls and hands them on to another: both are probed, and a call counts once.
func TestAttachedToAForwardingLoader(t *testing.T) {
	t.Parallel()
	library := built(t, "libOpenCL.so.1", forwardingLoader, "-shared", "-fPIC", "-Wl,-soname,libOpenCL.so.1")
	program := called(t, fault("reader"), "forwarded")
	w := attach(t, "--comm", "forwarded")
	in, out := io.Pipe()
	p := start(t, command{args: []string{program}, stdin: in, env: []string{
		"LD_LIBRARY_PATH=" + filepath.Dir(library), "FORWARD_TO=" + systemLoader(t),
	}})
	awaitReading(t, p.cmd.Process.Pid)
	waitFor(t, "probes in the first loader", func() bool { return foreignCode(t, p.cmd.Process.Pid, library) > 0 })
	if _, err := out.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all creates in the recording", func() bool { return createsSoFar(t, w) >= 16 }) // it cannot be read once it has ended
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ends(t, p)
	w.leave()
	f := figuresIn(t, w.file, false)
	if f.Creates < 16 || f.Requested != f.Creates<<16 || f.Releases != f.Creates || f.InUse != 0 || len(f.Findings) != 0 {
		t.Errorf("%d creates of %d bytes, %d releases, %d in use, findings %+v", f.Creates, f.Requested, f.Releases, f.InUse, f.Findings)
	}
	for _, tag := range f.Tags {
		if strings.Contains(strings.Join(tag.Stack, " "), "+0x7fff") {
			t.Errorf("a call site lies where the kernel watches returns: %q", tag.Stack)
		}
	}
}

// forwardingLoader calls itself what the caller's other loader does, with as many arguments as any function has.
const forwardingLoader = `
#include <dlfcn.h>
#include <stdlib.h>
static void *next(const char *name)
{
	static void *library;
	if (!library)
		library = dlopen(getenv("FORWARD_TO"), RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, name) : NULL;
}
#define ALL(x) x a, x b, x c, x d, x e, x f, x g, x h, x i, x j, x k, x l, x m
#define FORWARD(name) \
	long name(ALL(long)) \
	{ \
		static long (*function)(ALL(long)); \
		if (!function) \
			function = (long (*)(ALL(long)))next(#name); \
		return function(ALL()); \
	}
FORWARD(clGetPlatformIDs) FORWARD(clGetDeviceIDs) FORWARD(clGetDeviceInfo) FORWARD(clGetPlatformInfo)
FORWARD(clCreateContext) FORWARD(clRetainContext) FORWARD(clReleaseContext)
FORWARD(clCreateCommandQueue) FORWARD(clCreateCommandQueueWithProperties) FORWARD(clReleaseCommandQueue)
FORWARD(clCreateBuffer) FORWARD(clRetainMemObject) FORWARD(clReleaseMemObject)
FORWARD(clCreateProgramWithSource) FORWARD(clBuildProgram) FORWARD(clGetProgramBuildInfo) FORWARD(clReleaseProgram)
FORWARD(clCreateKernel) FORWARD(clSetKernelArg) FORWARD(clReleaseKernel) FORWARD(clEnqueueNDRangeKernel)
FORWARD(clEnqueueReadBuffer) FORWARD(clEnqueueWriteBuffer) FORWARD(clEnqueueCopyBuffer) FORWARD(clEnqueueFillBuffer)
FORWARD(clEnqueueMapBuffer) FORWARD(clEnqueueUnmapMemObject) FORWARD(clFlush) FORWARD(clFinish)
`

// Two loaders in one process, which were loaded by their paths: the calls through both are seen.
func TestAttachedToTwoLoaders(t *testing.T) {
	t.Parallel()
	program := built(t, own("twoloaders"), twoLoaders)
	w := attach(t, "--comm", "twoloaders")
	in, out := io.Pipe()
	second := copyOfLoader(t)
	p := start(t, command{stdin: in, args: []string{program, systemLoader(t), second}})
	// An unknown file is probed soon after it is mapped, not at once: its code shows the entries, not yet the returns.
	waitFor(t, "a create through the second loader", func() bool {
		if _, err := out.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		return createsSoFar(t, w) > 4
	})
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ends(t, p)
	w.leave()
	f := figuresIn(t, w.file, false)
	if small := f.Requested % 4096; f.Requested/4096 != 8 || small == 0 || f.Creates != 8+small/4 || f.Releases != f.Creates {
		t.Errorf("%d creates of %d bytes, %d releases; want 8 of 4 KiB, the others of 4 bytes", f.Creates, f.Requested, f.Releases)
	}
}

// createsSoFar returns how many creates the recording of a running attach holds.
func createsSoFar(t *testing.T, w *watcher) uint64 {
	t.Helper()
	var f reportFigures
	text := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", w.file}}).stdout
	if json.Unmarshal(text, &f) != nil {
		return 0
	}
	return f.Creates
}

// twoLoaders creates four buffers through each loader that is named, and releases them. Through the second it first creates
// one of four bytes for each byte of its input.
const twoLoaders = `
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <unistd.h>
#define GET(name) __typeof__(name) *name##_of = (__typeof__(name) *)dlsym(library, #name)
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		GET(clGetPlatformIDs); GET(clGetDeviceIDs); GET(clCreateContext); GET(clCreateBuffer); GET(clReleaseMemObject);
		cl_platform_id platform;
		cl_device_id device;
		if (clGetPlatformIDs_of(1, &platform, NULL) || clGetDeviceIDs_of(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
			return 1;
		cl_context context = clCreateContext_of(NULL, 1, &device, NULL, NULL, NULL);
		char byte;
		while (i > 1 && read(0, &byte, 1) == 1)
			clReleaseMemObject_of(clCreateBuffer_of(context, CL_MEM_READ_WRITE, 4, NULL, NULL));
		for (int n = 0; n < 4; n++)
			clReleaseMemObject_of(clCreateBuffer_of(context, CL_MEM_READ_WRITE, 4096, NULL, NULL));
	}
	return 0;
}`
