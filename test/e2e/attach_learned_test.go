package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Memory from before the attach is recorded when the program uses it, with the size that the uses show: in several
// steps where later ones show more.
func TestAttachedLearnsSizes(t *testing.T) {
	t.Parallel()
	program := built(t, "learned", learned)
	in, out := io.Pipe()
	p := start(t, command{args: []string{program}, stdin: in})
	waitFor(t, "the buffers to be there", func() bool { return contains(p.stdout.bytes(), "ready") })
	w := attach(t, "-p", itoa(p.cmd.Process.Pid))
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ends(t, p)
	w.end()
	sizes := map[uint64][]uint64{} // by the number of the object
	var order []uint64
	for _, e := range eventsOf(t, w.file) {
		if e.Kind != "create" || e.Op == "subbuffer" {
			continue
		}
		if e.Flags&uint64(wire.FlagCarried) == 0 {
			t.Errorf("nothing but a part was created from there on: %+v", e)
		}
		if len(sizes[e.Object]) == 0 {
			order = append(order, e.Object)
		}
		sizes[e.Object] = append(sizes[e.Object], e.Size)
	}
	// The pitches of a rectangle are not seen, and small increases are not recorded: each is a lower bound.
	want := [][]uint64{{1000}, {3000, 4096}, {5000}, {5500}, {6000}, {6600}, {8000}, {9000}, {0}, {0}}
	var got [][]uint64
	for _, object := range order {
		got = append(got, sizes[object])
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("learned %d\nwant    %d", got, want)
	}
	f := figuresIn(t, w.file, false)
	const sum = 1000 + 4096 + 5000 + 5500 + 6000 + 6600 + 8000 + 9000
	before := slices.IndexFunc(f.Tags, func(tag tagFigures) bool { return tag.Tag == wire.BeforeAttach })
	if before < 0 || f.Tags[before].Peak != sum || f.Tags[before].Creates != 0 || f.Tags[before].Live != 0 {
		t.Errorf("%+v, want one of what was there before, with a peak of %d", f.Tags, sum)
	}
	if f.Creates != 0 || f.Peak != sum || f.InUse != 0 || len(f.Findings)+len(f.Leaks) != 0 {
		t.Errorf("%+v, want a peak of %d", f, sum)
	}
}

// eventsOf are the records of a recording.
func eventsOf(t *testing.T, file string) (list []event) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(textOf(t, file)))
	for decoder.More() {
		var e event
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// learned uses each of its buffers in another way, after a line on stdin, and then releases them. Of one it uses a
// part only, and of the last two it says no size.
const learned = `
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <unistd.h>
enum { BUFFERS = 10, SIZE = 10000 };
static cl_mem buffer[BUFFERS];
static char host[SIZE];
int main(void)
{
	static const char *source = "kernel void touch(global char *x) { x[0] = 1; }";
	cl_platform_id platform;
	cl_device_id device;
	if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
	if (clBuildProgram(program, 1, &device, "", NULL, NULL))
		return 2;
	cl_kernel kernel = clCreateKernel(program, "touch", NULL);
	for (int i = 0; i < BUFFERS; i++)
		buffer[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, NULL);
	puts("ready");
	fflush(stdout);
	char byte;
	(void)!read(0, &byte, 1);

	cl_int bad = clEnqueueReadBuffer(queue, buffer[0], CL_TRUE, 400, 600, host, 0, NULL, NULL);
	bad |= clEnqueueWriteBuffer(queue, buffer[1], CL_TRUE, 1000, 2000, host, 0, NULL, NULL);
	bad |= clEnqueueWriteBuffer(queue, buffer[1], CL_TRUE, 0, 500, host, 0, NULL, NULL); /* says nothing new */
	bad |= clEnqueueFillBuffer(queue, buffer[1], "fill", 4, 4000, 96, 0, NULL, NULL);
	bad |= clEnqueueCopyBuffer(queue, buffer[2], buffer[3], 1000, 1500, 4000, 0, NULL, NULL);
	cl_int code;
	void *mapped = clEnqueueMapBuffer(queue, buffer[4], CL_TRUE, CL_MAP_READ, 2000, 4000, 0, NULL, NULL, &code);
	bad |= code | clEnqueueUnmapMemObject(queue, buffer[4], mapped, 0, NULL, NULL);
	const size_t origin[3] = {200, 2, 1}, corner[3] = {0}, region[3] = {800, 3, 1};
	bad |= clEnqueueReadBufferRect(queue, buffer[5], CL_TRUE, origin, corner, region, 1000, 3000, 0, 0, host, 0, NULL, NULL);
	bad |= clEnqueueFillBuffer(queue, buffer[6], "fill", 4, 0, 8000, 0, NULL, NULL);
	bad |= clEnqueueFillBuffer(queue, buffer[6], "fill", 4, 0, 8200, 0, NULL, NULL);
	const cl_buffer_region part = {8192, 808};
	cl_mem of = clCreateSubBuffer(buffer[7], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &part, &code);
	bad |= code | clReleaseMemObject(of);
	const size_t one = 1;
	bad |= clSetKernelArg(kernel, 0, sizeof buffer[8], &buffer[8]);
	bad |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) | clFinish(queue);
	for (int i = 0; i < BUFFERS; i++)
		bad |= clReleaseMemObject(buffer[i]);
	return bad ? 3 : 0;
}`
