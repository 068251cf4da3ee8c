package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// When calls are reported, and with what. See the package's comment.
const (
	entry      = 0
	returned   = wire.ShapeReturn
	createSite = wire.ShapeReturn | wire.ShapeStack // creates memory or another object, so that its stack matters
	use        = wire.ShapeReturn | wire.ShapeUse
	copySite   = use | wire.ShapeStack // copies memory, so that its stack matters
	entryUse   = wire.ShapeUse
)

// Shapes count arguments and copies from 1, as event.h does, samples from 0.

// at copies bytes that an argument points to.
func at(argument, bytes uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: bytes} }

// list copies a list of handles, pointers or bytes, whose length another argument gives.
func list(argument, unit, count uint8) wire.Copy {
	return wire.Copy{Argument: argument, Unit: unit, Count: count}
}

// text copies a string that ends with NUL.
func text(argument uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: 1, Text: 1} }

func copies(copies ...wire.Copy) (c [wire.CallCopies]wire.Copy) {
	copy(c[:], copies)
	return c
}

// Bytes of what arguments point to.
const (
	formatBytes     = 8  // cl_image_format
	descBytes       = 72 // cl_image_desc
	regionBytes     = 16 // cl_buffer_region
	cornerBytes     = 24 // size_t[3]: an origin or a region
	propertiesBytes = 64 // four properties: a list has no count, and no call reads all of it
	handleBytes     = 8
)

// Functions are all functions that the eBPF program reports, by number. They are those of shim/base/hooks.def that matter
// without a pool, and those that the shim need not hook because it asks the driver.
var Functions = []Function{
	{"clCreateContext", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createContext},
	{"clCreateContextFromType", false, wire.Shape{Flags: createSite, Error: 5}, (*Tracker).createContext},
	{"clRetainContext", false, wire.Shape{Flags: entry}, (*Tracker).retainContext},
	{"clReleaseContext", false, wire.Shape{Flags: entry}, (*Tracker).releaseContext},

	{"clCreateCommandQueue", false, wire.Shape{Flags: createSite, Error: 4}, (*Tracker).createQueue},
	{"clCreateCommandQueueWithProperties", false, wire.Shape{Flags: createSite, Error: 4, Copy: copies(at(3, propertiesBytes))}, (*Tracker).createQueueWithProperties},
	{"clCreateCommandQueueWithPropertiesKHR", true, wire.Shape{Flags: createSite, Error: 4, Copy: copies(at(3, propertiesBytes))}, (*Tracker).createQueueWithProperties},
	{"clRetainCommandQueue", false, wire.Shape{Flags: entry}, (*Tracker).retainQueue},
	{"clReleaseCommandQueue", false, wire.Shape{Flags: entry}, (*Tracker).releaseQueue},

	{"clCreateBuffer", false, wire.Shape{Flags: createSite, Error: 5}, (*Tracker).createBuffer},
	{"clCreateBufferWithProperties", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createBufferWithProperties},
	{"clCreateBufferWithPropertiesINTEL", true, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createBufferWithProperties},
	{"clCreateSubBuffer", false, wire.Shape{Flags: createSite, Error: 5, Copy: copies(at(4, regionBytes))}, (*Tracker).createSubBuffer},
	{"clCreateImage", false, wire.Shape{Flags: createSite, Error: 6, Copy: copies(at(3, formatBytes), at(4, descBytes))}, (*Tracker).createImage},
	{"clCreateImageWithProperties", false, wire.Shape{Flags: createSite, Copy: copies(at(4, formatBytes), at(5, descBytes))}, (*Tracker).createImageWithProperties},
	{"clCreateImage2D", false, wire.Shape{Flags: createSite, Copy: copies(at(3, formatBytes))}, (*Tracker).createImage2D},
	{"clCreateImage3D", false, wire.Shape{Flags: createSite, Copy: copies(at(3, formatBytes))}, (*Tracker).createImage3D},
	{"clCreatePipe", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createPipe},
	{"clCreateFromGLBuffer", false, wire.Shape{Flags: createSite, Error: 4}, (*Tracker).createFromGL},
	{"clCreateFromGLRenderbuffer", false, wire.Shape{Flags: createSite, Error: 4}, (*Tracker).createFromGL},
	{"clCreateFromGLTexture", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createFromGL},
	{"clCreateFromGLTexture2D", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createFromGL},
	{"clCreateFromGLTexture3D", false, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).createFromGL},
	{"clRetainMemObject", false, wire.Shape{Flags: entry}, (*Tracker).retainMemory},
	{"clReleaseMemObject", false, wire.Shape{Flags: entry}, (*Tracker).releaseMemory},

	{"clSVMAlloc", false, wire.Shape{Flags: createSite}, (*Tracker).allocateSVM},
	{"clSVMFree", false, wire.Shape{Flags: entry}, (*Tracker).freeOne},
	{"clEnqueueSVMFree", false, wire.Shape{Flags: entry, Copy: copies(list(3, handleBytes, 2))}, (*Tracker).freeAll},
	{"clHostMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 5}, (*Tracker).allocateHost},
	{"clDeviceMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).allocateDevice},
	{"clSharedMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, (*Tracker).allocateShared},
	{"clMemFreeINTEL", true, wire.Shape{Flags: entry}, (*Tracker).freeOne},
	{"clMemBlockingFreeINTEL", true, wire.Shape{Flags: entry}, (*Tracker).freeOne},

	{"clCreateProgramWithSource", false, wire.Shape{Flags: createSite, Error: 5}, (*Tracker).createProgram},
	{"clCreateProgramWithBinary", false, wire.Shape{Flags: createSite}, (*Tracker).createProgram},
	{"clCreateProgramWithBuiltInKernels", false, wire.Shape{Flags: createSite, Error: 5}, (*Tracker).createProgram},
	{"clCreateProgramWithIL", false, wire.Shape{Flags: createSite, Error: 4}, (*Tracker).createProgram},
	{"clLinkProgram", false, wire.Shape{Flags: createSite}, (*Tracker).createProgram},
	{"clRetainProgram", false, wire.Shape{Flags: entry}, (*Tracker).retainProgram},
	{"clReleaseProgram", false, wire.Shape{Flags: entry}, (*Tracker).releaseProgram},
	{"clCreateKernel", false, wire.Shape{Flags: createSite, Error: 3, Copy: copies(text(2))}, (*Tracker).createKernel},
	{"clCreateKernelsInProgram", false, wire.Shape{Flags: createSite, Copy: copies(list(3, handleBytes, 2), at(4, 4))}, (*Tracker).createKernels},
	{"clCloneKernel", false, wire.Shape{Flags: createSite, Error: 2}, (*Tracker).cloneKernel},
	{"clRetainKernel", false, wire.Shape{Flags: entry}, (*Tracker).retainKernel},
	{"clReleaseKernel", false, wire.Shape{Flags: entry}, (*Tracker).releaseKernel},
	{"clSetKernelArg", false, wire.Shape{Flags: use, Object: 1, Like: 1, Copy: copies(list(4, 1, 3))}, (*Tracker).setArgument},
	{"clSetKernelArgSVMPointer", false, wire.Shape{Flags: use}, (*Tracker).setPointer},
	{"clSetKernelArgMemPointerINTEL", true, wire.Shape{Flags: use}, (*Tracker).setPointer},
	{"clCreateSampler", false, wire.Shape{Flags: use, Error: 5}, (*Tracker).createSampler},
	{"clCreateSamplerWithProperties", false, wire.Shape{Flags: use, Error: 3}, (*Tracker).createSampler},
	{"clRetainSampler", false, wire.Shape{Flags: entryUse}, (*Tracker).retainSampler},
	{"clReleaseSampler", false, wire.Shape{Flags: entryUse}, (*Tracker).releaseSampler},

	{"clEnqueueNDRangeKernel", false, wire.Shape{Flags: use, Event: 9}, (*Tracker).runKernel},
	{"clEnqueueTask", false, wire.Shape{Flags: use, Event: 5}, (*Tracker).runKernel},
	{"clEnqueueNativeKernel", false, wire.Shape{Flags: use, Event: 10, Copy: copies(list(6, handleBytes, 5))}, (*Tracker).runNative},
	{"clEnqueueReadBuffer", false, wire.Shape{Flags: use, Event: 9}, bufferTransfer(wire.CommandRead, reads, 3, 2)},
	{"clEnqueueReadBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, rectTransfer(wire.CommandRead, reads)},
	{"clEnqueueWriteBuffer", false, wire.Shape{Flags: use, Event: 9}, bufferTransfer(wire.CommandWrite, writes, 3, 0)},
	{"clEnqueueWriteBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, rectTransfer(wire.CommandWrite, writes)},
	{"clEnqueueCopyBuffer", false, wire.Shape{Flags: copySite, Event: 9}, (*Tracker).copyBuffer},
	{"clEnqueueCopyBufferRect", false, wire.Shape{Flags: copySite, Event: 13, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, (*Tracker).copyRect},
	{"clEnqueueFillBuffer", false, wire.Shape{Flags: use, Event: 9}, bufferTransfer(wire.CommandFill, writes, 4, 0)},
	{"clEnqueueReadImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, imageTransfer(wire.CommandRead, reads)},
	{"clEnqueueWriteImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, imageTransfer(wire.CommandWrite, writes)},
	{"clEnqueueCopyImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(at(6, cornerBytes))}, (*Tracker).copyImage},
	{"clEnqueueFillImage", false, wire.Shape{Flags: use, Event: 8, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, imageTransfer(wire.CommandFill, writes)},
	{"clEnqueueCopyImageToBuffer", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, (*Tracker).copyImageToBuffer},
	{"clEnqueueCopyBufferToImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(at(6, cornerBytes), at(5, cornerBytes))}, (*Tracker).copyBufferToImage},
	{"clEnqueueMapBuffer", false, wire.Shape{Flags: use, Event: 9}, (*Tracker).mapBuffer},
	{"clEnqueueMapImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(at(6, cornerBytes), at(5, cornerBytes))}, (*Tracker).mapImage},
	{"clEnqueueUnmapMemObject", false, wire.Shape{Flags: use, Event: 6}, (*Tracker).unmap},
	{"clEnqueueMigrateMemObjects", false, wire.Shape{Flags: use, Event: 7, Copy: copies(list(3, handleBytes, 2))}, (*Tracker).migrate},
	{"clEnqueueMigrateMemObjectEXT", true, wire.Shape{Flags: use, Event: 7, Copy: copies(list(3, handleBytes, 2))}, (*Tracker).migrate},
	{"clEnqueueAcquireGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copies(list(3, handleBytes, 2))}, (*Tracker).shareGL},
	{"clEnqueueReleaseGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copies(list(3, handleBytes, 2))}, (*Tracker).shareGL},
	{"clEnqueueSVMMemcpy", false, wire.Shape{Flags: copySite, Event: 8}, (*Tracker).copyPointers},
	{"clEnqueueMemcpyINTEL", true, wire.Shape{Flags: copySite, Event: 8}, (*Tracker).copyPointers},
	{"clEnqueueSVMMemFill", false, wire.Shape{Flags: use, Event: 8}, (*Tracker).fillPointer},
	{"clEnqueueMemFillINTEL", true, wire.Shape{Flags: use, Event: 8}, (*Tracker).fillPointer},
	{"clEnqueueSVMMap", false, wire.Shape{Flags: use, Event: 8}, (*Tracker).mapPointer},
	{"clEnqueueSVMUnmap", false, wire.Shape{Flags: use, Event: 5}, (*Tracker).unmapPointer},
	{"clEnqueueSVMMigrateMem", false, wire.Shape{Flags: use, Event: 8, Copy: copies(list(3, handleBytes, 2), list(4, handleBytes, 2))}, (*Tracker).migratePointers},
	{"clEnqueueMigrateMemINTEL", true, wire.Shape{Flags: use, Event: 7}, (*Tracker).migratePointer},

	{"clEnqueueMarker", false, wire.Shape{Flags: use, Event: 2}, (*Tracker).returnsEvent},
	{"clEnqueueMarkerWithWaitList", false, wire.Shape{Flags: use, Event: 4}, (*Tracker).returnsEvent},
	{"clEnqueueBarrierWithWaitList", false, wire.Shape{Flags: use, Event: 4}, (*Tracker).returnsEvent},
	{"clCreateUserEvent", false, wire.Shape{Flags: use, Error: 2}, (*Tracker).createUserEvent},
	{"clRetainEvent", false, wire.Shape{Flags: entryUse}, (*Tracker).retainEvent},
	{"clReleaseEvent", false, wire.Shape{Flags: entryUse}, (*Tracker).releaseEvent},

	{"clFinish", false, wire.Shape{Flags: use}, (*Tracker).finish},
	{"clFlush", false, wire.Shape{Flags: entryUse}, (*Tracker).flush},
	{"clWaitForEvents", false, wire.Shape{Flags: use}, (*Tracker).wait},

	{"clGetExtensionFunctionAddress", false, wire.Shape{Flags: returned, Copy: copies(text(1))}, nil},
	{"clGetExtensionFunctionAddressForPlatform", false, wire.Shape{Flags: returned, Copy: copies(text(2))}, nil},
	{platformQuery, false, wire.Shape{Flags: entry}, nil},

	{"clEnqueueCommandBufferKHR", true, wire.Shape{Flags: use, Event: 6}, (*Tracker).replay},
}
