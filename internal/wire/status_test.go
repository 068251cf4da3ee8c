package wire_test

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// What the standard says is about a status that has a name, and begins like the rest of a sentence.
func TestWhyCallsAreRefused(t *testing.T) {
	check := func(call string, status int32, why string) {
		t.Helper()
		if why != "" && (wire.StatusName(status) == "" || strings.HasSuffix(why, ".") || strings.ToLower(why[:1]) != why[:1] && !strings.HasPrefix(why, "CL_")) {
			t.Errorf("%s, %d: %q", call, status, why)
		}
	}
	for status := int32(-1100); status < 0; status++ {
		for m := wire.MemoryBuffer; m <= wire.MemoryExternal+1; m++ {
			check(m.String(), status, wire.WhyCreateRefused(m, status))
		}
		for _, function := range []string{"clCreateKernel", "clBuildProgram", "clLinkProgram", "clCreateProgramWithIL", "clCreateCommandQueue", "clCreateContext",
			"clGetPlatformIDs", "clGetDeviceIDs", "clSetKernelArg", "clEnqueueTask", "clEnqueueReadBuffer", "clFlush"} {
			check(function, status, wire.WhyCallRefused(function, status))
		}
	}
	for _, test := range []struct{ got, want string }{
		{wire.WhyCreateRefused(wire.MemorySubBuffer, -61), "the size is 0"},
		{wire.WhyCreateRefused(wire.MemorySubBuffer, -13), "the offset is no multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN of any device"},
		{wire.WhyCreateRefused(wire.MemoryBuffer, -13), ""},
		{wire.WhyCallRefused("clCreateKernel", -46), "the program has no kernel of this name"},
		{wire.WhyCallRefused("clCreateKernelsInProgram", -45), "the program was not built for any device"},
		{wire.WhyCreateRefused(wire.MemoryImage, -38), ""},
		{wire.WhyCallRefused("clEnqueueWriteBufferRect", -59), "the buffer was made with CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS"},
		{wire.WhyCallRefused("clEnqueueReadBuffer", -59), "the buffer was made with CL_MEM_HOST_WRITE_ONLY or CL_MEM_HOST_NO_ACCESS"},
		{wire.WhyCallRefused("clEnqueueReadBuffer", -30), "the region lies beyond the end of the object, or a pointer is NULL"},
		{wire.WhyCallRefused("clEnqueueReadImage", -59), "the object was made without access for the host, or the device cannot do this"},
		{wire.WhyCallRefused("clFinish", -36), "the queue is not valid"},
		{wire.StatusNameAndNumber(-61), "CL_INVALID_BUFFER_SIZE (-61)"}, {wire.StatusNameAndNumber(-9999), "-9999"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
